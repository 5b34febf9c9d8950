package stream

import "fmt"

// Rewinder is implemented by the Sink that a watch gives to its source. A source
// that goes on with the same Watch call after its connection was lost needs it:
// the next connection may be to a replica that is behind, and then what was sent
// of a transaction would become visible as if it were the whole.
type Rewinder interface {
	// Mark says that what was sent so far belongs to the place from which the
	// next connection would go on.
	Mark()
	// Rewind forgets what was sent since the last Mark, Reset or Commit,
	// whichever was last.
	Rewind()
}

// Mark marks a place in what was sent to the sink; see Rewinder.
func Mark(sink Sink) {
	if r, ok := sink.(Rewinder); ok {
		r.Mark()
	}
}

// Rewind takes the sink back to the last Mark; see Rewinder. The error says that it
// cannot: Watch must return it then, and forgets with that what was sent.
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
		return // what was collected may also have been let go, if it was too much
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
