package session

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// Switch makes the stream follow other parts of its watches, if what its holder may see has
// changed, or if a window was moved. It calls f, if not nil, for each watch that the stream follows instead of another.
// It reports whether there was any. After that, nothing of the former parts is sent.
func (s *Session) Switch(f func(from, to *watch.Watch)) (switched bool) {
	for i, next := range s.Authorization.Switches() {
		if next.Keep && !s.Follows[i].Sub.CanMove() {
			s.Authorization.Postpone(next) // it makes the switch once it has what it is being sent
			continue
		}
		from := s.Follows[i].Watch
		to := next.Open()
		if from == to && next.Move == 0 {
			continue // it may see the same again, after a change that it did not notice
		}
		if !switched {
			s.watches = slices.Clone(s.watches) // streams of a group share them
		}
		switched = true
		s.watches[i].View = introspection.ViewOf(next.Part.Name(), next.Part.Shared(to))
		s.Follows[i].switchTo(to, next)
		s.Deps.Metrics.Switched(next.Move > 0)
		if f != nil {
			f(from, to)
		}
	}
	return switched
}

// switchTo makes f follow another part of its watch.
func (f *Follow) switchTo(to *watch.Watch, s authz.Switch) {
	former, keep := f.Sub, s.Keep && f.Watch.Of() == to.Of()
	f.Watch, f.Sub = to, to.Subscribe(log.SubscribeOptions{Former: former, Keep: keep, Move: s.Move})
	f.quietSince = time.Now()
	f.counts = counts{synced: f.synced, resumed: f.resumed}
	former.Close()
}

// withdraw takes from the client all that it has of the watches that it may not see any more. A watch
// of which it was sent changes that the position does not cover is taken too, since no id could be
// sent otherwise.
func (s *Session) withdraw(out Encoder) {
	var taken []*Follow
	for i := range s.Follows {
		f := &s.Follows[i]
		if (f.Sub.Uncovered() || slices.Contains(s.Authorization.Losses(), i)) && f.Sub.Withdraw(&s.Batch) {
			taken = append(taken, f)
		}
	}
	for _, f := range taken { // now that the position of each of them is that of nothing
		f.Sub.Withdraw(&s.Batch)
		s.WriteBatch(f, out)
	}
}
