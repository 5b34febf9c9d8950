//go:build !linux

package files

import "io/fs"

// stampOf uses what every system has.
func stampOf(i fs.FileInfo) stamp {
	return stamp{size: i.Size(), modified: i.ModTime().UnixNano()}
}
