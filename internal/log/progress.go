package log

import "github.com/watchtide/watchtide/stream"

// Progress is how far a subscription has come: a value that any goroutine may keep
// and query while the subscription goes on.
type Progress struct {
	// Position is the place after what was delivered; zero before the first
	// delivery.
	Position stream.Position
	// CatchingUp reports whether values are being skipped now.
	CatchingUp bool

	log        *Log
	begun      bool
	generation uint64
	cursor     uint64 // every change up to this seq was delivered, or is part of what is being delivered
	left       int    // of what is being delivered
}

// Progress returns how far the subscription has come.
func (s *Subscription) Progress() Progress {
	p := Progress{
		Position: s.position, CatchingUp: s.catchingUp(),
		log: s.log, begun: s.begun, generation: s.generation, cursor: s.cursor,
	}
	if w := s.walk; w != nil && w.purpose == snapshot {
		p.cursor, p.left = w.paused.asOf, max(w.paused.count-w.delivered, 0)
	}
	return p
}

// Lag is how many committed changes have not been delivered yet and, before the end
// of a snapshot, how many of its resources. It is an upper bound for a subscription
// that is catching up.
func (p Progress) Lag() uint64 {
	v := p.log.newest()
	if !p.begun || p.generation != v.Generation {
		return uint64(v.Count()) // a snapshot is to come
	}
	return p.log.changesAfter(v, p.cursor) + uint64(p.left)
}
