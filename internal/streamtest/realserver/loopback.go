package realserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// The range, which no system that Go's tests run on hands out by itself.
const lowest, highest = 16000, 32000

// Listen listens on 127.0.0.1, on some free port.
func Listen() (net.Listener, error) {
	var last error
	for range 100 {
		address := Address(lowest + rand.IntN(highest-lowest))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no free port between %d and %d after 100 attempts: %w", lowest, highest, last)
}

// given are the ports that FreePort has returned. A server of this process may need one that
// it does not listen on yet.
var given sync.Map

// FreePort returns a port of 127.0.0.1 on which nothing listened just now, and never the
// same one twice: for a server that must keep it across a restart.
func FreePort(t testing.TB) int {
	t.Helper()
	for {
		l, err := Listen()
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, again := given.LoadOrStore(port, true); !again {
			return port
		}
	}
}

// Address returns 127.0.0.1 with a port.
func Address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
