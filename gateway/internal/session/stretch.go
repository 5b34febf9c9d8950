package session

import (
	"time"

	"github.com/watchtide/watchtide/internal/log"
)

// Spot returns the spot where the stream is, if it follows one watch and all others at the spot are sent
// the same from there on, in the same form. It must be asked for before each stretch: it also decides
// whether the stream waits for its turn.
func (s *Session) Spot() (log.Spot, bool) {
	if len(s.Follows) != 1 || s.Until && s.Follows[0].Sub.Synced() {
		return log.Spot{}, false
	}
	s.check(&s.Follows[0])
	return s.Follows[0].Sub.Spot()
}

// Share lets a stream that goes on after its snapshot begin where others have begun a moment ago. One that ends with the snapshot
// asks for the newest state.
func (s *Session) Share() {
	if len(s.Follows) == 1 && !s.Until {
		s.Follows[0].Sub.Share()
	}
}

// Take does all that sending a stretch takes except for its bytes. It returns false, and does
// nothing, if the stream must read by itself.
func (s *Session) Take(at log.Spot, t *log.Stretch) bool {
	f := &s.Follows[0]
	if !f.Sub.Take(at, t, &s.Batch) {
		return false
	}
	s.Lease.Moved()
	f.waits, f.quietSince = false, time.Now()
	s.countBatch(f)
	return true
}
