package storage

// The sizes at which a log, and what is sent to a subscriber, is divided. They are variables so
// that tests can make them small: with few and short events, a reader then takes several flushes
// for a transaction, and for the deletes of a catch-up, and the log has several segments. Nothing
// else may change them, and no log may exist when they are changed.
var (
	// FlushSize is the number of bytes from which a flush ends at the next place where it may: an
	// id is sent at least as often.
	FlushSize = 64 << 10
	// ReplaySize is the number of bytes of the tail of a log that stays as written, so that readers
	// near the head get every change in the upstream's order. A larger transaction takes several
	// flushes.
	ReplaySize = 1 << 20
	// TurnEntries is the most entries that a walk examines in one turn, give or take a segment.
	TurnEntries = 4 << 10
	// SegmentSize is the number of bytes in the slab of a full segment. A snapshot is read, and an
	// id is sent, at least once for each.
	SegmentSize = 64 << 10
)
