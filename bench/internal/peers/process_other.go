//go:build !linux

package peers

import "syscall"

// dieWithParent does nothing here: a server whose bench dies ends when it reads
// the end of its standard input, if it reads that.
func dieWithParent() *syscall.SysProcAttr { return nil }
