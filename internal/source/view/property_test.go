package view

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/parts"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// world is an upstream, replicas, some of them late, of a watch of it and of a view of that watch, and
// subscribers of the view.
type world struct {
	t          *testing.T
	random     *rand.Rand
	upstream   *parts.Upstream
	history    *streamtest.History
	definition *view.Definition
	replicas   []*replica
	clients    []*client
	marks      []*streamtest.Mark // every id that was sent
}

type replica struct {
	name       string
	endpoint   *streamtest.Replica
	registry   *watch.Registry
	base, view *watch.Watch
}

type client struct {
	name string
	slow bool
	conn *streamtest.Connection
	at   *replica
	last *streamtest.Mark
}

// TestAgainstTheModel lets resources enter and leave a view in every way, and checks what
// its subscribers see against a model of the view, with all checkers.
func TestAgainstTheModel(t *testing.T) {
	seeds := uint64(50)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		for _, deletes := range []streamtest.DeleteRevisions{streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen} {
			t.Run(fmt.Sprint(seed, "/", deletes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newWorld(t, seed, deletes).run() })
			})
		}
	}
}

func newWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions) *world {
	d, err := view.Parse(view.Params{Prefix: "a/", Filter: `value.team == "red" && value.n > 1`, Fields: []string{"team,n"}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 7)), definition: d}
	w.upstream = parts.NewUpstream(w.random, deletes)
	w.upstream.Marked = true
	w.history = &streamtest.History{DeletesUnnumbered: deletes != streamtest.OwnRevision, Truth: w.upstream.Truth(), Hides: true}
	for _, name := range []string{"A", "B"} {
		w.start(name)
	}
	for i := range 4 {
		c := &client{name: fmt.Sprint("client ", i), slow: i == 3}
		w.clients = append(w.clients, c)
		w.dial(c, nil)
	}
	return w
}

// start starts a replica.
func (w *world) start(name string) {
	r := &replica{name: name, endpoint: w.upstream.Replica(), registry: watch.NewRegistry()}
	w.t.Cleanup(r.registry.Close)
	backoff := watch.Backoff{Min: 100 * time.Millisecond, Max: 100 * time.Millisecond}
	var err error
	if r.base, err = r.registry.Add(watch.Config{Name: "w", Source: r.endpoint, Backoff: backoff}); err != nil {
		w.t.Fatal(err)
	}
	r.view, err = r.registry.Add(watch.Config{
		Name: "v", Source: New("w", func(context.Context) (*watch.Watch, error) { return r.base, nil }, w.definition), Backoff: backoff,
		OnDemand: w.random.IntN(2) == 0, Linger: 2 * time.Second, History: log.Retention{MaxDeletes: 20},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.replicas = append(w.replicas, r)
}

func (w *world) run() {
	for range 150 {
		w.act()
		synctest.Wait()
		w.read(false)
	}
	for _, r := range w.replicas {
		parts.Heal(r.endpoint)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	for i, m := range w.marks { // each id, at each replica
		for _, r := range w.replicas {
			c := &client{name: fmt.Sprint("again ", i), at: r}
			w.connect(c, m)
			w.clients = append(w.clients, c)
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	w.read(true)
	w.check()
}

// check compares what was seen with the model.
func (w *world) check() {
	w.history.Truth = parts.Truth(w.upstream.Truth(), w.definition)
	w.history.Settled = true
	if err := streamtest.CheckAll(w.history); err != nil {
		w.t.Error(err)
	}
	for _, c := range w.clients {
		c.conn.Close()
	}
}

// act does something at random.
func (w *world) act() {
	r := w.replicas[w.random.IntN(len(w.replicas))]
	switch n := w.random.IntN(50); {
	case n == 0 && len(w.replicas) < 4: // a late one
		w.start(fmt.Sprint("late ", len(w.replicas)))
		return
	case n < 3 && !w.history.DeletesUnnumbered: // one that is sent the newest values only
		r.endpoint.Conflate()
		r.endpoint.Catch(w.random.IntN(4))
		r.endpoint.Disconnect(nil)
		time.Sleep(time.Second)
		return
	case n < 40:
		time.Sleep(w.upstream.Act(r.endpoint))
		return
	}
	c := w.clients[w.random.IntN(len(w.clients))]
	c.conn.Close()
	time.Sleep(time.Duration(w.random.IntN(4)) * time.Second)
	w.dial(c, c.last)
}

func (w *world) dial(c *client, from *streamtest.Mark) {
	c.at = w.replicas[w.random.IntN(len(w.replicas))]
	w.connect(c, from)
}

func (w *world) connect(c *client, from *streamtest.Mark) {
	c.last = from
	c.conn = w.history.Connect(c.at.view, streamtest.Dial{Client: c.name, Replica: c.at.name, Slow: c.slow, From: from})
}

// read lets the clients read what there is; slow ones only now and then.
func (w *world) read(all bool) {
	for _, c := range w.clients {
		if c.slow && !all && w.random.IntN(10) > 0 {
			continue
		}
		for c.conn.Live() && c.conn.Step() {
			for _, m := range c.conn.Marks() {
				if c.last != m {
					c.last = m
					w.marks = append(w.marks, m)
				}
			}
		}
	}
}
