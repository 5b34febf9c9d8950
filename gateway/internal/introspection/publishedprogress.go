package introspection

import (
	"sync"

	"github.com/watchtide/watchtide/internal/log"
)

// PublishedProgress is the progress that a stream with its own goroutine publishes for
// readers of the list, as of its last turn.
type PublishedProgress struct {
	// Static after construction.
	who       Identity
	transport string
	encoding  string

	mu        sync.Mutex // guards the following fields
	followed  []Followed
	delivered Delivered
	progress  []log.Progress // for each of its watches
}

// NewPublishedProgress returns the progress of a stream that has been sent nothing
// yet.
func NewPublishedProgress(who Identity, transport, encoding string, followed ...Followed) *PublishedProgress {
	return &PublishedProgress{
		who: who, transport: transport, encoding: encoding, followed: followed,
		progress: make([]log.Progress, len(followed)),
	}
}

// Show records how far the stream is.
func (s *PublishedProgress) Show(d Delivered, progress func(i int) log.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delivered = d
	for i := range s.progress {
		s.progress[i] = progress(i)
	}
}

// Follow records that the stream follows other parts of its watches.
func (s *PublishedProgress) Follow(followed ...Followed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed = followed
}

// subscriber returns the stream's entry in the list, without its client.
func (s *PublishedProgress) subscriber() Subscriber {
	out := Subscriber{Transport: s.transport, Encoding: s.encoding}
	out.Identify(s.who)
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Count(s.delivered)
	for i, f := range s.followed {
		out.Follow(f, s.progress[i])
	}
	return out
}
