package session

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// Switch makes the stream follow other parts of its watches, if what its holder may see has
// changed. It calls f, if not nil, for each watch that the stream follows instead of another.
// It reports whether there was any. After that, nothing of the former parts is sent.
func (c *Session) Switch(f func(from, to *watch.Watch)) (switched bool) {
	for i, s := range c.Pass.Switches() {
		from := c.Follows[i].Watch
		to := s.Open()
		if from == to {
			continue // it may see the same again, after a change that it did not notice
		}
		if !switched {
			c.watches = slices.Clone(c.watches) // streams of a group share them
		}
		switched = true
		c.watches[i].View = introspection.ViewOf(s.Part.Name(), s.Part.Shared(to))
		c.Follows[i].switchTo(to)
		c.Deps.Metrics.Switched()
		if f != nil {
			f(from, to)
		}
	}
	return switched
}

// switchTo makes f follow another part of its watch.
func (f *Follow) switchTo(to *watch.Watch) {
	former := f.Sub
	f.Watch, f.Sub = to, to.Subscribe(log.SubscribeOptions{Former: former})
	f.quietSince = time.Now()
	f.counts = counts{synced: f.synced, resumed: f.resumed}
	former.Close()
}

// withdraw takes from the client all that it has of the watches that it may not see any more. A watch
// of which it was sent changes that the position does not cover is taken too, since no id could be
// sent otherwise.
func (c *Session) withdraw(out Encoder) {
	var taken []*Follow
	for i := range c.Follows {
		f := &c.Follows[i]
		if (f.Sub.Uncovered() || slices.Contains(c.Pass.Losses(), i)) && f.Sub.Withdraw(&c.Batch) {
			taken = append(taken, f)
		}
	}
	for _, f := range taken { // now that the position of each of them is that of nothing
		f.Sub.Withdraw(&c.Batch)
		c.WriteBatch(f, out)
	}
}
