package realserver

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes has the system kill the server if the tests die, even if it is paused or
// ignores the end of its standard input, and run it as a user if the tests are root.
func attributes(name string) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if name == "" || os.Getuid() != 0 {
		return a, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return a, nil
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
