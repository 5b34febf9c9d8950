//go:build unix

package kubernetes

import (
	"os/exec"
	"syscall"
)

// ownGroup has a program run in a process group of its own, with all that it starts.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends it.
func killGroup(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
