package stream

import (
	"fmt"
	"math"
	"time"
)

// The Sink that a watch gives to its source implements the interfaces of this file as
// well. Sources call the functions, which do nothing for another Sink unless they say
// otherwise.

// AllSwept is the default of a source that never calls Swept: its upstream reports
// deletes in the order of its revisions, so that a commit is complete.
const AllSwept = math.MaxUint64

// Sweeper is implemented by the Sink that a watch gives to its source.
type Sweeper interface {
	// Swept declares that, with the next Commit, all deletes have been passed on
	// that happened while the newest revision of the upstream was below this one.
	Swept(revision uint64)
}

// Swept tells the sink, if it is a Sweeper, how far deletes without a revision are
// complete: with the next Commit, all those have been passed on that happened while
// the newest revision of the upstream was below revision. It holds until the next
// call. A source whose upstream reports such deletes in the order of its revisions
// needs no call: each Commit is then complete.
//
// A source that looks for them now and then by a list calls it before its first
// Commit, with a revision that was the newest before the list began. Such a delete
// is passed on with a Commit of a revision that was the newest after the list was
// complete, or of a later one.
func Swept(sink Sink, revision uint64) {
	if s, ok := sink.(Sweeper); ok {
		s.Swept(revision)
	}
}

// HorizonRaiser is implemented by the Sink that a watch gives to its source.
type HorizonRaiser interface {
	// RaiseHorizon declares that changes before a revision may be missing, in the
	// revision order of the last Reset, or of the Resume that Watch was given. Call
	// it before sending what is newer than the last Commit.
	RaiseHorizon(revision uint64) error
}

// RaiseHorizon passes on that an upstream may have missed changes before a revision.
// Another gateway may have, and says so in a bookmark. A source whose upstream never
// misses any does not need it. A sink that does not implement HorizonRaiser would
// resume readers where it must not. The error is then ErrUnresumable, so that the
// next Watch call begins with a snapshot.
func RaiseHorizon(sink Sink, revision uint64) error {
	if h, ok := sink.(HorizonRaiser); ok {
		return h.RaiseHorizon(revision)
	}
	return fmt.Errorf("%w: changes before revision %d may be missing, and the sink does not remember that", ErrUnresumable, revision)
}

// Rewinder is implemented by the Sink that a watch gives to its source. A source
// that continues the same Watch call after losing its connection needs it: the next
// connection may be to a replica that is behind, and then the part of a transaction
// that was sent would become visible as if it were the whole.
type Rewinder interface {
	// Mark declares that what was sent so far belongs to the place from which the
	// next connection would continue.
	Mark()
	// Rewind discards what was sent since the last Mark, Reset or Commit, whichever
	// was last.
	Rewind()
}

// Mark marks a place in what was sent to the sink; see Rewinder.
func Mark(sink Sink) {
	if r, ok := sink.(Rewinder); ok {
		r.Mark()
	}
}

// Rewind takes the sink back to the last Mark; see Rewinder. It returns an error if
// it cannot. Watch must then return that error, which discards what was sent.
func Rewind(sink Sink) error {
	r, ok := sink.(Rewinder)
	if !ok {
		return fmt.Errorf("half a transaction was received, and the sink %T cannot forget it: connecting again", sink)
	}
	r.Rewind()
	return nil
}

// Holder is implemented by the Sink that a watch gives to its source. A source that
// holds much data itself, before it hands it over or in addition, must report it: it
// counts towards the memory of the watch.
type Holder interface {
	// Hold reports that the source holds so many more bytes; fewer if negative. If
	// that is too much, the context of Watch ends. It may be called where the
	// methods of Sink may be, and counts until Watch returns.
	Hold(bytes int64)
}

// Hold tells the sink, if it is a Holder, that a source holds so many more bytes;
// fewer if negative.
func Hold(sink Sink, bytes int64) {
	if h, ok := sink.(Holder); ok {
		h.Hold(bytes)
	}
}

// Bounder is implemented by the Sink that a watch gives to its source.
type Bounder interface {
	// MostHeld is how many bytes a source may hold and stage at most, together; 0: any
	// number.
	MostHeld() int64
}

// LargestMessage returns how many bytes of one message a source should read at most: a number
// of its own (0: it has none), or half of what the watch may hold, if that is less. A message
// and what is made of it are held at once. 0: any number.
func LargestMessage(sink Sink, own int) int {
	b, ok := sink.(Bounder)
	if !ok || b.MostHeld() == 0 {
		return own
	}
	half := int(min(max(b.MostHeld()/2, 1), math.MaxInt32))
	if own == 0 {
		return half
	}
	return min(own, half)
}

// RefuseMessage tells the sink that a message is larger than LargestMessage, of which a source
// has read no more. If that is because of what the watch may hold, the context of Watch ends.
func RefuseMessage(sink Sink, largest int) { Hold(sink, 2*int64(largest)+2) }

// Dater is implemented by the Sink that a watch gives to its source.
type Dater interface {
	// MadeAt declares when the upstream made a change of the next Commit. The earliest
	// one counts.
	MadeAt(at time.Time)
}

// MadeAt tells the sink, if it is a Dater, when the upstream made a change of the next
// Commit, by the upstream's clock. It only serves to measure how long changes take to reach
// subscribers. A snapshot has no such time.
func MadeAt(sink Sink, at time.Time) {
	if d, ok := sink.(Dater); ok {
		d.MadeAt(at)
	}
}

// Conflater is implemented by the Sink that a watch gives to its source.
type Conflater interface {
	// Conflated declares that the next Commit may lack values: of a resource that
	// changed more than once, only the newest value need be there.
	Conflated()
}

// Conflated tells the sink, if it is a Conflater, that its upstream may have left out
// values between those of the last Commit and those of the next one. Whoever selects
// resources by their values must know: a client that comes from another replica may hold
// one of them.
func Conflated(sink Sink) {
	if c, ok := sink.(Conflater); ok {
		c.Conflated()
	}
}
