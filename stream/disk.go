package stream

import "time"

// DiskStats is what a source that keeps its resources in a file says about its disk.
type DiskStats struct {
	Path                 string
	FileBytes, FreeBytes int64
	Commits              uint64        // transactions of the file; several writes share one
	Waited               time.Duration // for all of them
	Failed               bool          // no write is taken until a restart
}
