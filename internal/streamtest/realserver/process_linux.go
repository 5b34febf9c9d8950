package realserver

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the system kill the server if the tests die, even if it is
// paused or ignores the end of its standard input.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitStopped waits until a child that was sent SIGSTOP has stopped: signals take a
// moment.
func awaitStopped(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
