// Package loopback gives tests addresses on this machine that no other process gets.
//
// A listener on port 0 gets a port from the range that outgoing connections use too.
// If the listener is closed for a while (a server is restarted, a proxy refuses), an
// outgoing connection may take the port; worse, a client that keeps dialing the
// closed port is eventually given that same port as its own, and is then connected
// to itself. The ports of this package are below that range.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
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
// same one twice.
func FreePort() (int, error) {
	for {
		l, err := Listen()
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, err
		}
		if _, again := given.LoadOrStore(port, true); !again {
			return port, nil
		}
	}
}

// Address returns 127.0.0.1 with a port.
func Address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
