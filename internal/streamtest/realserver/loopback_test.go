package realserver_test

import (
	"net"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// TestPortsAreNotThoseOfOutgoingConnections, which begin at 32768 at the lowest.
func TestPortsAreNotThoseOfOutgoingConnections(t *testing.T) {
	for range 50 {
		port := realserver.FreePort(t)
		if port < 1024 || port >= 32768 {
			t.Fatalf("port %d: want one that is neither privileged nor handed out by the system", port)
		}
	}
}

// TestNoPortIsGivenTwice: two servers of one test never get the same port.
func TestNoPortIsGivenTwice(t *testing.T) {
	given := map[int]bool{}
	for range 500 {
		port := realserver.FreePort(t)
		if given[port] {
			t.Fatalf("port %d is given twice", port)
		}
		given[port] = true
	}
}

func TestListenIsReachable(t *testing.T) {
	l, err := realserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", realserver.Address(l.Addr().(*net.TCPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
