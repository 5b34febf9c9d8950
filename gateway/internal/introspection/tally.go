package introspection

import (
	"sync/atomic"
	"time"
)

// Tally counts what is delivered of one watch, between two samples. A nil Tally counts nothing.
//
// All methods may be called from any goroutine.
type Tally struct {
	events, bytes atomic.Uint64
	latency       counted // from the commit until it is written
	delivery      counted // until a browser has painted it
}

// Sent counts events that were sent, and their bytes before compression.
func (t *Tally) Sent(events, bytes uint64) {
	if t == nil || events == 0 {
		return
	}
	t.events.Add(events)
	t.bytes.Add(bytes)
}

// Written counts a commit that was written so long after it became visible.
func (t *Tally) Written(took time.Duration) {
	if t != nil {
		t.latency[bucketOf(took)].Add(1)
	}
}

// Delivered counts a change that a browser has painted so long after its commit.
func (t *Tally) Delivered(took time.Duration) {
	if t != nil {
		t.delivery[bucketOf(took)].Add(1)
	}
}

// counts is what a Tally counted in one interval, together with what the watch knows itself.
type counts struct {
	seconds           float64 // that the interval lasted
	changes           uint64
	events, bytes     uint64
	latency, delivery distribution
	lag, subscribers  uint64
	state             State
}

// take moves what was counted to c.
func (t *Tally) take(c *counts) {
	c.events, c.bytes = t.events.Swap(0), t.bytes.Swap(0)
	t.latency.take(&c.latency)
	t.delivery.take(&c.delivery)
}

// then adds the interval that follows.
func (c *counts) then(o *counts) {
	c.seconds += o.seconds
	c.subscribers = o.subscribers
	c.changes += o.changes
	c.merge(o)
}

// beside adds the same interval of another watch.
func (c *counts) beside(o *counts) {
	c.subscribers += o.subscribers
	c.changes += o.changes
	c.merge(o)
}

func (c *counts) merge(o *counts) {
	c.events += o.events
	c.bytes += o.bytes
	c.latency.add(&o.latency)
	c.delivery.add(&o.delivery)
	c.lag = max(c.lag, o.lag)
	c.state = max(c.state, o.state)
}
