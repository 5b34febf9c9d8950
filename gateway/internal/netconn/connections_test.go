package netconn

import (
	"log/slog"
	"net"
	"testing"
)

// TestMaxConnections checks that the limit leaves room below any limit on
// descriptors.
func TestMaxConnections(t *testing.T) {
	for descriptors, want := range map[int]int{256: 144, 1024: 768, 2000: 1561, 20_000: 18_400, 1 << 20: 1<<20 - 1600} {
		if got := maxConnections(descriptors); got != want {
			t.Errorf("%d of %d descriptors, want %d", got, descriptors, want)
		}
	}
}

// TestConnectionsOfGRPC checks that gRPC connections have no room beyond the limit.
func TestConnectionsOfGRPC(t *testing.T) {
	c := NewConnections(1, slog.New(slog.DiscardHandler))
	near, _ := net.Pipe()
	first, second := &StallTimeoutConn{Conn: near, connections: c}, &StallTimeoutConn{Conn: near, connections: c}
	if !c.enter(first, false) || c.enter(second, false) || c.Count() != 1 {
		t.Errorf("%d connections are open", c.Count())
	}
	first.Close()
	first.Close()
	if c.Count() != 0 || !c.enter(second, false) {
		t.Errorf("%d connections are open", c.Count())
	}
}
