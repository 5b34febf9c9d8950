package peers

import "syscall"

// dieWithParent has the system end the server if the bench dies, by SIGTERM: a
// server that is killed leaves its workers behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
