package views

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// busy is a large upstream that changes all the time, and remembers only its state. It is
// the source of each replica.
type busy struct {
	random *rand.Rand // of the goroutine that changes it

	mu      sync.Mutex // guards the following fields
	state   map[string]stream.Resource
	changes []log.Change // from revision 2 on
	changed chan struct{}
}

const (
	busyKeys   = 20_000
	busyOwners = 1_000
)

func newBusy() *busy {
	u := &busy{random: rand.New(rand.NewPCG(1, 2)), state: map[string]stream.Resource{}, changed: make(chan struct{})}
	u.change(busyKeys)
	return u
}

// change makes n changes, each a transaction: a resource gets another owner, or is deleted.
func (u *busy) change(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range n {
		c := log.Change{Resource: stream.Resource{Key: fmt.Sprint("k", u.random.IntN(busyKeys)), Revision: uint64(len(u.changes)) + 2}}
		_, there := u.state[c.Key]
		if c.Deleted = there && u.random.IntN(20) == 0; c.Deleted {
			delete(u.state, c.Key)
		} else {
			c.Value = fmt.Appendf(nil, `{"owner":"u%d","x":"%s"}`, u.random.IntN(busyOwners), strings.Repeat("x", 250))
			u.state[c.Key] = c.Resource
		}
		u.changes = append(u.changes, c)
	}
	close(u.changed)
	u.changed = make(chan struct{})
}

// Watch implements [stream.Source].
func (u *busy) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	u.mu.Lock()
	seen, changed := len(u.changes), u.changed
	err := u.snapshot(sink)
	u.mu.Unlock()
	for err == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		u.mu.Lock()
		news := u.changes[seen:]
		seen, changed = len(u.changes), u.changed
		u.mu.Unlock()
		err = pass(sink, news)
	}
	return err
}

func (u *busy) snapshot(sink stream.Sink) error {
	if err := sink.Reset("e"); err != nil {
		return err
	}
	for _, r := range u.state {
		if err := sink.Upsert(r); err != nil {
			return err
		}
	}
	return sink.Commit(uint64(len(u.changes)) + 1)
}

// pass passes changes on, each as a transaction.
func pass(sink stream.Sink, news []log.Change) (err error) {
	for _, c := range news {
		if c.Deleted {
			err = sink.Delete(c.Key, c.Revision)
		} else {
			err = sink.Upsert(c.Resource)
		}
		if err != nil {
			return err
		}
		if err = sink.Commit(c.Revision); err != nil {
			return err
		}
	}
	return nil
}

// restarting is three replicas of a busy upstream, which are restarted one after the other.
type restarting struct {
	t        *testing.T
	upstream *busy
	random   *rand.Rand
	replicas [3]*fixture
	clients  []*owner

	resumed, reset int // reconnections by their outcome
}

// owner follows what it owns.
type owner struct {
	*subscriber
	definition *view.Definition
	at         int // replica; -1: none
	last       *stream.Position
	told       time.Time // when its position was last renewed
	counted    bool
}

func (r *restarting) start(i int) {
	f := &fixture{t: r.t, registry: watch.NewRegistry(), views: New(Config{MaxBytes: 1 << 30})}
	var err error
	if f.base, err = f.registry.Add(watch.Config{Name: "w", Source: r.upstream}); err != nil {
		r.t.Fatal(err)
	}
	r.replicas[i] = f
	synctest.Wait()
}

func (r *restarting) stop(i int) {
	for _, c := range r.clients {
		if c.at == i {
			c.Close()
			c.at = -1
		}
	}
	r.replicas[i].views.Close()
	r.replicas[i].registry.Close()
	r.replicas[i] = nil
}

// connect lets a client follow its view at any replica.
func (r *restarting) connect(c *owner) {
	for c.at = r.random.IntN(3); r.replicas[c.at] == nil; c.at = r.random.IntN(3) {
	}
	f := r.replicas[c.at]
	w, err := f.views.Open(f.base, c.definition, Request{Client: c.definition.ID(), Resume: c.last})
	if err != nil {
		r.t.Fatal(err)
	}
	c.subscriber = &subscriber{Subscription: w.Subscribe(log.SubscribeOptions{Resume: c.last})}
	c.counted = false
}

// heartbeat is after how long a client without news is told how far it is.
const heartbeat = 15 * time.Second

// second lets a second pass, in which there are some changes.
func (r *restarting) second(changes int) {
	r.upstream.change(changes)
	time.Sleep(time.Second)
	synctest.Wait()
	for _, c := range r.clients {
		if c.at >= 0 {
			r.read(c)
		}
	}
}

func (r *restarting) read(c *owner) {
	news := false
	for c.Next(&c.batch) {
		news = true
	}
	if !news && time.Since(c.told) >= heartbeat {
		news = c.Bookmark(&c.batch)
	}
	if p, ok := c.Position(); ok && news {
		c.last, c.told = &p, time.Now()
	}
	if c.counted || c.Outcome() == log.OutcomePending {
		return
	}
	c.counted = true
	switch c.Outcome() {
	case log.OutcomeExact:
		r.resumed++
	case log.OutcomeSnapshot:
	default:
		r.reset++
	}
}

// TestRollingRestart counts how many of a thousand readers, each with a policy of its own,
// get a reset while three replicas are restarted one after the other. While changes are so
// few that the watch remembers those of two heartbeats, nobody does. Two of its cases are due each day; see -all.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it feeds a large watch to thousands of views")
	}
	for i, c := range []struct {
		changes int  // a second
		hides   bool // the views do
		none    bool // nobody gets a reset
	}{
		{20, true, true}, {100, true, true}, {500, true, false}, {500, false, true},
	} {
		if !*all && i%2 != time.Now().YearDay()%2 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			r := &restarting{t: t, upstream: newBusy(), random: rand.New(rand.NewPCG(3, 4))}
			r.restart(c.changes, c.hides)
			t.Logf("%d changes a second, views that hide: %t: %d resume, and %d get a reset", c.changes, c.hides, r.resumed, r.reset)
			if r.resumed+r.reset < busyOwners || c.none && r.reset > 0 {
				t.Errorf("%d resume, and %d get a reset", r.resumed, r.reset)
			}
		})
	}
}

func (r *restarting) restart(changes int, hides bool) {
	for i := range r.replicas {
		r.start(i)
	}
	for i := range busyOwners {
		text := fmt.Sprintf("value.owner == 'u%d'", i)
		d := definition(r.t, view.Params{Filter: text})
		if hides {
			d = definition(r.t, view.Params{Grants: []view.Grant{{Filter: text}}})
		}
		c := &owner{definition: d}
		r.clients = append(r.clients, c)
		r.connect(c)
	}
	for range 30 {
		r.second(changes)
	}
	for i := range r.replicas {
		r.stop(i)
		for range 3 { // until the clients return, all at once
			r.second(changes)
		}
		for _, c := range r.clients {
			if c.at < 0 {
				r.connect(c)
			}
		}
		for range 5 {
			r.second(changes)
		}
		r.start(i)
		for range 30 {
			r.second(changes)
		}
	}
	for i := range r.replicas {
		r.stop(i)
	}
}
