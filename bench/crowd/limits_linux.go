package main

import "golang.org/x/sys/unix"

// descriptors is how many a process may have.
func descriptors() (int, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return int(l.Max), err
}
