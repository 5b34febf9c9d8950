//go:build unix

package netconn

import "syscall"

// descriptorLimit returns how many descriptors this process may have.
func descriptorLimit() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return int(min(uint64(l.Cur), 1<<30))
}
