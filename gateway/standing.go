package gateway

import (
	"slices"
	"sync"

	"github.com/watchtide/watchtide/stream/log"
)

// standing is what a stream with its own goroutine shows to others: how far it was at
// its last turn.
type standing struct {
	// Static after construction.
	who       identity
	transport string
	gzip      bool
	names     []string // of its watches

	mu        sync.Mutex // guards the following fields
	delivered delivered
	progress  []log.Progress // for each of its watches
}

func newStanding(who identity, transport string, gzip bool, names ...string) *standing {
	return &standing{
		who: who, transport: transport, gzip: gzip, names: names,
		progress: make([]log.Progress, len(names)),
	}
}

// show records how far the stream is.
func (s *standing) show(d delivered, progress func(i int) log.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delivered = d
	for i := range s.progress {
		s.progress[i] = progress(i)
	}
}

func (s *standing) follows(watch string) bool {
	return watch == "" || slices.Contains(s.names, watch)
}

func (s *standing) lag() (lag uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.progress {
		lag += s.progress[i].Lag()
	}
	return lag
}

// subscriber returns the stream's entry in the list, without its user agent.
func (s *standing) subscriber() subscriber {
	out := subscriber{Transport: s.transport, Encoding: encodingName(s.gzip)}
	out.identify(s.who)
	s.mu.Lock()
	defer s.mu.Unlock()
	out.count(s.delivered)
	for i, name := range s.names {
		out.follow(name, s.progress[i])
	}
	return out
}
