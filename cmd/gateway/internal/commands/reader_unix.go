//go:build unix

package commands

import (
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether f, a pipe or a socket, has lost its reader. It
// does not need to write.
func readerGone(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
