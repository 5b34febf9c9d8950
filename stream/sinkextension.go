package stream

import (
	"fmt"
	"math"
	"time"
)

// AllDeletes is the default of a source that never calls DeletesCompleteTo: its upstream reports
// deletes in the order of its revisions, so that a commit is complete.
const AllDeletes = math.MaxUint64

// SinkExtension has the methods of a Sink that only some upstreams need. A Sink of a test can embed
// a [PlainSink].
type SinkExtension interface {
	// DeletesCompleteTo declares how far deletes without a revision are complete: with the next
	// Commit, all those have been passed on that happened while the newest revision of the upstream
	// was below revision. It holds until the next call. A source whose upstream reports such deletes
	// in the order of its revisions needs no call: each Commit is then complete.
	//
	// A source that looks for them now and then by a list calls it before its first Commit, with a
	// revision that was the newest before the list began. Such a delete is passed on with a Commit of
	// a revision that was the newest after the list was complete, or of a later one.
	DeletesCompleteTo(revision uint64)
	// DeletesCompleteAfter declares that, of the snapshot under way, the deletes are those that the
	// upstream knows of the time before it, each with a revision of its own: without the call a
	// delete in a snapshot only takes back a resource of it. None is missing that happened after
	// revision, so positions from that revision on are resumed. The largest number means that some
	// may be missing.
	DeletesCompleteAfter(revision uint64)
	// RaiseHorizon declares that the upstream may have missed changes before a revision, in the
	// revision order of the last Reset, or of the Resume that Watch was given. Another gateway may
	// have, and says so in a bookmark. Call it before sending what is newer than the last Commit.
	RaiseHorizon(revision uint64) error
	// Mark declares that what was sent so far belongs to the place from which the next connection
	// would continue. A source that continues the same Watch call after losing its connection needs
	// it: the next connection may be to a replica that is behind, and then the part of a transaction
	// that was sent would become visible as if it were the whole.
	Mark()
	// Rewind discards what was sent since the last Mark, Reset or Commit, whichever was last. Watch
	// must return its error, which discards what was sent.
	Rewind() error
	// Charge reports that the source holds so many more bytes; fewer if negative. A source that
	// holds much data itself, before it hands it over or in addition, must report it: it counts
	// towards the memory of the watch. If that is too much, the context of Watch ends. It may be
	// called from any goroutine until Watch returns, and counts until then.
	Charge(bytes int64)
	// MaxBytes is how many bytes a source may hold and stage at most, together; 0: any number.
	MaxBytes() int64
	// SetTimestamp declares when the upstream made a change of the next Commit, by the upstream's
	// clock. The earliest one counts. It only serves to measure how long changes take to reach
	// subscribers. A snapshot has no such time.
	SetTimestamp(at time.Time)
	// Conflated declares that the upstream may have left out values between those of the last Commit
	// and those of the next one: of a resource that changed more than once, only the newest value
	// need be there. Filters of values must know: a client that comes from another replica may hold
	// one of those left out.
	Conflated()
}

// PlainSink has the methods of a SinkExtension for a Sink that keeps nothing of what they say.
type PlainSink struct{}

// DeletesCompleteTo does nothing.
func (PlainSink) DeletesCompleteTo(uint64) {}

// DeletesCompleteAfter does nothing.
func (PlainSink) DeletesCompleteAfter(uint64) {}

// RaiseHorizon returns ErrUnresumable, so that the next Watch call begins with a snapshot.
func (PlainSink) RaiseHorizon(revision uint64) error {
	return fmt.Errorf("%w: changes before revision %d may be missing, and the sink does not remember that", ErrUnresumable, revision)
}

// Mark does nothing.
func (PlainSink) Mark() {}

// Rewind returns an error.
func (PlainSink) Rewind() error {
	return fmt.Errorf("half a transaction was received, and the sink cannot forget it: connecting again")
}

// Charge does nothing.
func (PlainSink) Charge(int64) {}

// MaxBytes returns 0.
func (PlainSink) MaxBytes() int64 { return 0 }

// SetTimestamp does nothing.
func (PlainSink) SetTimestamp(time.Time) {}

// Conflated does nothing.
func (PlainSink) Conflated() {}

// LargestMessage returns how many bytes of one message a source should read at most: a number
// of its own (0: it has none), or half of what the watch may hold, if that is less. A message
// and what is made of it are held at once. 0: any number.
func LargestMessage(sink Sink, own int) int {
	most := sink.MaxBytes()
	if most == 0 {
		return own
	}
	half := int(min(max(most/2, 1), math.MaxInt32))
	if own == 0 {
		return half
	}
	return min(own, half)
}

// RefuseMessage tells the sink that a message is larger than LargestMessage, of which a source
// has read no more. If that is because of what the watch may hold, the context of Watch ends.
func RefuseMessage(sink Sink, largest int) { sink.Charge(2*int64(largest) + 2) }
