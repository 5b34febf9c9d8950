//go:build servers

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

const (
	// keys is how many resources a collection may have; four fifths exist.
	keys = 256
	// filling is how many transactions make the first resources.
	filling = keys
	// folders is how many prefixes they are in.
	folders = 8
	// window is how long the history of an upstream is kept: longer than a connection
	// of a sampled subscriber lasts, plus the age of its id, plus the time to check
	// it on a busy machine.
	window = 4 * time.Minute
)

// collection is one watch: its upstream, the proxy in front of it, its writer, and
// the truth.
type collection struct {
	// Static after construction.
	watch    string
	upstream upstream
	proxy    *realserver.Proxy
	largest  int // changes in a transaction
	rate     int // changes per second
	truth    *streamtest.Truth
	said     *freshness

	mu     sync.Mutex // held while the upstream is written to, or loses its content
	state  map[string]bool
	values int
	times  int // transactions

	// Atomic.
	changes atomic.Int64
}

// run writes until ctx ends. Writes in progress are finished.
func (c *collection) run(ctx context.Context) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	began, owed := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			due := int(now.Sub(began).Seconds() * float64(c.rate))
			if due-owed > c.rate {
				owed = due - c.rate // it was delayed; a burst is enough
			}
			for owed < due {
				n, err := c.transaction(1 + rand.IntN(c.largest))
				if err != nil {
					return fmt.Errorf("write to %s: %w", c.watch, err)
				}
				owed += n
			}
		}
	}
}

// fill creates the initial resources.
func (c *collection) fill() error {
	for range filling {
		if _, err := c.transaction(c.largest); err != nil {
			return err
		}
	}
	return nil
}

// transaction changes at most n random resources at once.
func (c *collection) transaction(n int) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := c.writes(n)
	revision, err := c.upstream.commit(ctx, writes)
	if err != nil {
		return 0, err
	}
	c.note(revision, writes)
	return len(writes), nil
}

// writes are of different keys. mu is held.
func (c *collection) writes(n int) (out []write) {
	for _, i := range rand.Perm(keys)[:n] {
		key := fmt.Sprintf("f%d/%03d", i%folders, i)
		w := write{key: key}
		if !c.state[key] || rand.IntN(4) > 0 {
			c.values++
			w.value = fmt.Appendf(nil, `{"n":%d,"team":"%s","text":"%s"}`, c.values, team(), strings.Repeat("tide ", rand.IntN(40)))
		}
		out = append(out, w)
	}
	return out
}

// team is one of a few, by which views select.
func team() string { return fmt.Sprint("t", rand.IntN(4)) }

// note records the writes. mu is held.
func (c *collection) note(revision uint64, writes []write) {
	var changes []log.Change
	for _, w := range writes {
		changes = append(changes, w.change(revision))
		c.state[w.key] = w.value != nil
	}
	c.truth.Append(revision, changes...)
	c.changes.Add(int64(len(writes)))
	if c.times++; c.times%1000 == 0 {
		c.truth.Keep(c.transactionsIn(window))
	}
}

// transactionsIn is about how many transactions there are in a time.
func (c *collection) transactionsIn(d time.Duration) int {
	return int(d.Seconds()) * c.rate / ((1 + c.largest) / 2)
}

// noted returns once every observable write so far is recorded.
func (c *collection) noted() {
	c.mu.Lock()
	defer c.mu.Unlock()
}

// begin starts the truth with the present resources, in an order that is served
// under a name.
func (c *collection) begin(ctx context.Context, epoch string) error {
	resources, revision, err := c.upstream.list(ctx)
	if err != nil {
		return err
	}
	if c.truth == nil {
		c.truth = streamtest.NewTruth(epoch, 0)
	} else {
		c.truth.Begin(epoch, 0)
	}
	clear(c.state)
	var changes []log.Change
	for _, r := range resources {
		changes = append(changes, log.Change{Resource: r})
		c.state[r.Key] = true
	}
	c.truth.Append(revision, changes...)
	return nil
}

// checkFinal checks that the truth is what the upstream has; call it when the writers have
// ended.
func (c *collection) checkFinal(ctx context.Context) error {
	resources, _, err := c.upstream.list(ctx)
	if err != nil {
		return err
	}
	state := streamtest.State{}
	for _, r := range resources {
		state.Apply(stream.Event{Type: stream.Upsert, Resource: r})
	}
	_, newest := c.truth.Newest()
	if diff := state.Diff(newest.After); diff != "" {
		return fmt.Errorf("the upstream of %s differs from the writes to it: %s", c.watch, diff)
	}
	return nil
}

// freshness is when a watch reported itself as fresh, according to its
// subscribers. Safe for concurrent use.
type freshness struct {
	mu   sync.Mutex
	said []streamtest.Freshness
}

func newFreshness() *freshness {
	return &freshness{said: []streamtest.Freshness{{At: time.Now(), Fresh: true}}}
}

// add adds the statuses of a subscriber.
func (f *freshness) add(e stream.Event) {
	if e.Type != stream.StatusChange || own(e) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := streamtest.Freshness{At: e.Since, Fresh: e.State == stream.InSync}
	at, found := slices.BinarySearchFunc(f.said, s, func(a, b streamtest.Freshness) int { return a.At.Compare(b.At) })
	if !found {
		f.said = slices.Insert(f.said, at, s)
	}
}

// all returns the moments at which it changed.
func (f *freshness) all() []streamtest.Freshness {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.CompactFunc(slices.Clone(f.said), func(a, b streamtest.Freshness) bool { return a.Fresh == b.Fresh })
}
