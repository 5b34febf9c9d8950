package session

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Switch makes the stream follow other parts of its watches, if what its holder may see has
// changed. It calls f, if not nil, for each watch that the stream follows instead of another.
// It reports whether there was any. After that, nothing of the former parts is sent, except
// deletes.
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
		c.Deps.switchTo(&c.Follows[i], to, s.Differences)
		c.Deps.Metrics.Switched()
		if f != nil {
			f(from, to)
		}
	}
	return switched
}

// switchTo makes a follow one of another part of its watch.
func (d *Deps) switchTo(f *Follow, to *watch.Watch, differences *log.Differences) {
	before := *f
	holds := before.Sub.Holds(differences)
	if holds != nil {
		// A client that is cut off before the end of the switch may have some of the difference.
		nowhere := stream.Nowhere(to.Name())
		f.resumedFrom = &nowhere
	}
	f.Watch = to
	f.Sub = to.Subscribe(log.SubscribeOptions{
		Resume:    f.resumedFrom,
		Invalid:   f.invalid,
		Holds:     holds,
		AheadWait: d.AheadWait,
		MinRate:   d.MinRate,
	})
	f.quietSince = time.Now()
	f.counts = counts{synced: before.synced, resumed: before.resumed}
	before.Sub.Close()
}

// withdraw sends deletes of all that the client has of the watches that it may not see any
// more. The id that is sent before is that of a client that has nothing of these watches, so
// that the client gets all of them if it may see them again later. Watches of which it was sent
// changes that their positions do not cover are withdrawn too, since no id can be sent before.
func (c *Session) withdraw(out Encoder) {
	for i := range c.Follows {
		if f := &c.Follows[i]; f.Sub.Uncovered() {
			c.take(f, f.Watch.HoldsUnknown(), out)
		}
	}
	for _, s := range c.Pass.Losses() {
		f := &c.Follows[s.Index]
		switch holds := f.Sub.Holds(s.Differences); {
		case f.withdrawn:
		case holds != nil:
			c.take(f, holds, out)
		case f.resumedFrom != nil:
			c.take(f, f.Watch.HoldsUnknown(), out)
		}
	}
}

// take deletes what the client holds of a watch.
func (c *Session) take(f *Follow, holds *log.Holding, out Encoder) {
	f.withdrawn = true
	holds.Withdraw(&c.Batch, func() { c.WriteBatch(f, out) })
	holds.Release()
}
