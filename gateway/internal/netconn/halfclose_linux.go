package netconn

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayRead reports whether a client that has ended its side of a connection may still
// read: the connection was not reset.
func mayRead(c net.Conn) (may bool) {
	bottom, ok := Bottom(c).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := bottom.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		// Errors and hang-ups are always reported.
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		may = err == nil && n == 0
	})
	return err == nil && may
}
