//go:build unix && !linux

package disk

import (
	"fmt"
	"os"
	"syscall"
)

// birthOf tells a file from its copies in the same file system; "": it is not known.
func birthOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d", s.Ino)
	}
	return ""
}
