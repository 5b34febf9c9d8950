package files

import (
	"io/fs"
	"syscall"
	"time"
)

// stampOf includes the time of the last change of the inode, which no program
// can set: not touch, and not cp -p.
func stampOf(i fs.FileInfo) stamp {
	s := stamp{size: i.Size(), modified: i.ModTime().UnixNano()}
	if sys, ok := i.Sys().(*syscall.Stat_t); ok {
		s.device, s.inode = uint64(sys.Dev), sys.Ino
		s.changed = time.Unix(sys.Ctim.Unix()).UnixNano()
	}
	return s
}
