//go:build !unix

package changes

import "os/exec"

func ownGroup(*exec.Cmd)          {}
func terminate(c *exec.Cmd) error { return c.Process.Kill() }
func kill(*exec.Cmd)              {}
