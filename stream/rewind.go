package stream

import "fmt"

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

// Mark implements Rewinder.
func (s *stagingSink) Mark() { s.marked = len(s.pending.changes) }

// Rewind implements Rewinder.
func (s *stagingSink) Rewind() {
	changes := s.pending.changes
	if s.marked >= len(changes) {
		return // what was collected may also have been released, if it was too much
	}
	dropped := changes[s.marked:]
	for i := range dropped {
		s.staging.pending -= stagedCost(&dropped[i])
	}
	s.received.Add(-int64(len(dropped)))
	clear(dropped)
	s.pending.changes = changes[:s.marked]
	_ = s.count() // it holds less, which is always allowed
}
