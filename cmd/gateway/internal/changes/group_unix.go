//go:build unix

package changes

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the processes of a command into a group of their own, so that a Ctrl-C on the
// terminal, which goes to the group of this process, does not end them half-way.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the processes of a command to end.
func terminate(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }

// kill ends those that have not.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
