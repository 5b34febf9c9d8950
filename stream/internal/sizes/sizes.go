// Package sizes has the sizes at which what is sent to a subscriber is divided. They are
// variables so that tests can make them small: with few and short events, a reader then takes
// several flushes for a transaction, and for the deletes of a catch-up. Nothing else may change
// them, and no log may exist when they are changed.
package sizes

var (
	// Flush is the number of bytes from which a flush ends at the next place where it may: an
	// id is sent at least as often.
	Flush = 64 << 10
	// Replay is the number of bytes of the tail of a log that stays as written, so that readers
	// near the head get every change in the upstream's order. A larger transaction takes several
	// flushes.
	Replay = 1 << 20
	// TurnEntries is the most entries that a walk examines in one turn, give or take a segment.
	TurnEntries = 4 << 10
)
