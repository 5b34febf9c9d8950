package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// birthOf tells a file from its copies in the same file system: its number and, where the file system
// has it, when it was made. "": neither is known.
func birthOf(path string) string {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &s)
	if err != nil {
		return ""
	}
	if s.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprintf("%d", s.Ino)
	}
	return fmt.Sprintf("%d %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
