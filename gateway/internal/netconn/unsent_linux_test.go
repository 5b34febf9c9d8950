package netconn

import (
	"io"
	"log/slog"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestConnectionsKeepLittleUnsent checks that connections returned by Accept have the
// limit, whatever the listener is.
func TestConnectionsKeepLittleUnsent(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	go func() {
		if c, err := net.Dial("tcp", plain.Addr().String()); err == nil {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	c, err := Listen(plain, 0, slog.New(slog.DiscardHandler)).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*StallTimeoutConn).NetConn().(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); err != nil || got != unsentBytes {
			t.Errorf("the limit is %d, error %v: want %d", got, err, unsentBytes)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
