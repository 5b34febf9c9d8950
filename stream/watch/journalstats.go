package watch

import "time"

// JournalStats is how a journal is.
type JournalStats struct {
	FileBytes, FreeBytes int64
	Commits              uint64        // transactions of the file
	Written              uint64        // changes
	Waited               time.Duration // for the transactions
	Behind               time.Duration // how old the oldest commit is that is not written
	Failed               bool          // nothing is written until a restart
}
