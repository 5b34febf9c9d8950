package commands

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// memoryCeiling is a memory limit.
type memoryCeiling struct {
	// Bytes is how much may be used.
	Bytes int64
	// File holds the limit.
	File string
}

// unlimited is far below what cgroup v1 reports where there is no limit: the
// largest number that is a whole number of pages. No machine has that much memory.
const unlimited = 1 << 60

// cgroupLimit returns the smallest limit of the process's own cgroup and of those
// around it, as far as they are visible; false: there is none. root is the root
// of the file system.
func cgroupLimit(root fs.FS) (smallest memoryCeiling, found bool, err error) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return memoryCeiling{}, false, nil // not Linux, or without cgroups
	}
	if err != nil {
		return memoryCeiling{}, false, err
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return memoryCeiling{}, false, err
	}
	for _, h := range hierarchies(string(own), string(mounts)) {
		for dir := h.dir; ; dir = path.Dir(dir) {
			l, ok, err := h.read(root, dir)
			if err != nil {
				return memoryCeiling{}, false, err
			}
			if ok && (!found || l.Bytes < smallest.Bytes) {
				smallest, found = l, true
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return smallest, found, nil
}

// read returns the limit of one cgroup of the hierarchy. The top has no file.
func (h hierarchy) read(root fs.FS, dir string) (memoryCeiling, bool, error) {
	file := path.Join(h.mount, dir, h.file)
	data, err := fs.ReadFile(root, strings.TrimPrefix(file, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return memoryCeiling{}, false, nil
	}
	if err != nil {
		return memoryCeiling{}, false, err
	}
	text := strings.TrimSpace(string(data))
	if text == "max" {
		return memoryCeiling{}, false, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return memoryCeiling{}, false, fmt.Errorf("%s: %q: want a number of bytes, or max", file, text)
	}
	return memoryCeiling{n, file}, n > 0 && n < unlimited, nil
}
