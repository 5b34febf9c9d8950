//go:build !unix

package kubernetes

import "os/exec"

// ownGroup does nothing: there are no process groups.
func ownGroup(*exec.Cmd) {}

// killGroup ends the program, but not what it has started.
func killGroup(c *exec.Cmd) error { return c.Process.Kill() }
