package introspection

import "github.com/watchtide/watchtide/internal/log"

// WatchLags has the greatest lag of all streams, by watch.
//
// Owned by the caller of AskLags; by a carrier while it answers.
type WatchLags map[string]uint64

// Add adds one watch of a stream.
func (l WatchLags) Add(watch string, p log.Progress) {
	if lag := p.Lag(); lag > l[watch] {
		l[watch] = lag
	}
}

// AskLags asks all streams, in slices, as Query.Ask does.
func AskLags(all *List, carriers []Carrier) WatchLags {
	l := WatchLags{}
	for _, one := range all.Standalone() {
		one.lags(l)
	}
	for _, c := range carriers {
		for from := int32(0); from >= 0; {
			from = c.Lags(l, from)
		}
	}
	return l
}

func (s *PublishedProgress) lags(l WatchLags) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.followed {
		l.Add(f.Watch, s.progress[i])
	}
}
