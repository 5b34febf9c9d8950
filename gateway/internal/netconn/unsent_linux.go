package netconn

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unsentBytes is the most bytes not yet on the wire that the kernel keeps for a
// connection. Without it that would be its whole buffer, several MiB.
const unsentBytes = 128 << 10

// limitUnsent makes a connection take no more bytes while unsentBytes of them wait,
// see TCP_NOTSENT_LOWAT in tcp(7). It is best effort: nothing depends on it. Setting
// it on the listener would not be enough: Go listens for Multipath TCP where it can,
// and such a listener hands out connections without a limit.
func limitUnsent(c net.Conn) {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
