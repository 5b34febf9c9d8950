package filesource

import (
	"io/fs"
	"syscall"
	"time"
)

// stampOf takes the time of the last change of the inode as well, which nobody
// can set: not by touch, and not by cp -p.
func stampOf(i fs.FileInfo) stamp {
	s := stamp{size: i.Size(), modified: i.ModTime().UnixNano()}
	if sys, ok := i.Sys().(*syscall.Stat_t); ok {
		s.device, s.inode = uint64(sys.Dev), sys.Ino
		s.changed = time.Unix(sys.Ctim.Unix()).UnixNano()
	}
	return s
}
