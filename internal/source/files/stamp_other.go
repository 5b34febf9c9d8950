//go:build !linux

package files

import "io/fs"

// stampOf uses the attributes available on every system.
func stampOf(i fs.FileInfo) stamp {
	return stamp{size: i.Size(), modified: i.ModTime().UnixNano()}
}
