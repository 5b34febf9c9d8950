package views

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// declaredWorld is an upstream, replicas, some of them late, of a watch of it and of views of that watch, and
// subscribers of one of the views.
type declaredWorld struct {
	t        *testing.T
	random   *rand.Rand
	upstream *streamtest.ViewUpstream
	history  *streamtest.History
	follow   followed
	replicas []*declaredReplica
	clients  []*declaredClient
	marks    []*streamtest.Mark // every id that was sent
}

type declaredReplica struct {
	name       string
	endpoint   *streamtest.Replica
	registry   *watch.Registry
	declared   *Views
	asked      *Views // by clients
	base, view *watch.Watch
	viewOfView *watch.Watch
}

type declaredClient struct {
	name string
	slow bool
	conn *streamtest.Connection
	at   *declaredReplica
	last *streamtest.Mark
}

// followed is what the subscribers follow.
type followed string

const (
	declaredView    followed = "a view"
	declaredTwice   followed = "a view of the view"
	askedOfDeclared followed = "a view of the view that clients ask for"
)

// The definitions of the view, and of a view of it.
var (
	declaredParams = view.Params{Prefix: "a/", Filter: `value.team == "red" && value.n > 1`, Fields: []string{"team,n"}}
	furtherParams  = view.Params{Filter: `value.n > 2 || key == "a/1"`}
)

// TestDeclaredAgainstTheModel lets resources enter and leave a view in every way, and checks what
// its subscribers see against a model of the view, with all checkers.
func TestDeclaredAgainstTheModel(t *testing.T) {
	t.Parallel()
	seeds := seeds(50, 15)
	for _, seed := range seeds {
		for _, deletes := range []streamtest.DeleteRevisions{streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen} {
			for _, follow := range []followed{declaredView, declaredTwice, askedOfDeclared} {
				t.Run(fmt.Sprint(seed, "/", deletes, "/", follow), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { newDeclaredWorld(t, seed, deletes, follow).run() })
				})
			}
		}
	}
}

func newDeclaredWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions, follow followed) *declaredWorld {
	w := &declaredWorld{t: t, random: rand.New(rand.NewPCG(seed, 7)), follow: follow}
	w.upstream = streamtest.NewViewUpstream(w.random, deletes)
	w.upstream.Marked = true
	w.history = &streamtest.History{DeletesUnnumbered: deletes != streamtest.OwnRevision, Truth: w.upstream.Truth(), Hides: follow != askedOfDeclared}
	for _, name := range []string{"A", "B"} {
		w.start(name)
	}
	for i := range 4 {
		c := &declaredClient{name: fmt.Sprint("client ", i), slow: i == 3}
		w.clients = append(w.clients, c)
		w.dial(c, nil)
	}
	return w
}

// start starts a replica.
func (w *declaredWorld) start(name string) {
	r := &declaredReplica{name: name, endpoint: w.upstream.Replica(), registry: watch.NewRegistry(), declared: NewDeclared(), asked: New(Config{})}
	w.t.Cleanup(r.declared.Close)
	w.t.Cleanup(r.registry.Close)
	w.t.Cleanup(r.asked.Close)
	backoff := watch.Backoff{Min: 100 * time.Millisecond, Max: 100 * time.Millisecond}
	var err error
	if r.base, err = r.registry.Add(watch.Config{Name: "w", Source: r.endpoint, Backoff: backoff}); err != nil {
		w.t.Fatal(err)
	}
	declare := func(name string, of *watch.Watch, p view.Params) *watch.Watch {
		v, err := r.registry.Add(watch.Config{
			Name: name, View: r.declared.View(of.Name(), func() (*watch.Watch, error) { return of, nil }, definition(w.t, p)), Backoff: backoff,
			OnDemand: w.random.IntN(2) == 0, Linger: 2 * time.Second, History: log.Retention{MaxDeletes: 20},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		return v
	}
	r.view = declare("v", r.base, declaredParams)
	r.viewOfView = declare("vv", r.view, furtherParams)
	w.replicas = append(w.replicas, r)
}

func (w *declaredWorld) run() {
	for range 150 {
		w.act()
		synctest.Wait()
		w.read(false)
	}
	for _, r := range w.replicas {
		streamtest.Heal(r.endpoint)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	for i, m := range w.marks { // each id, at each replica
		for _, r := range w.replicas {
			c := &declaredClient{name: fmt.Sprint("again ", i), at: r}
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
func (w *declaredWorld) check() {
	w.history.Truth = streamtest.TruthOfView(w.upstream.Truth(), definition(w.t, declaredParams))
	if w.follow != declaredView {
		w.history.Truth = streamtest.TruthOfView(w.history.Truth, definition(w.t, furtherParams))
	}
	w.history.Settled = true
	if err := streamtest.CheckAll(w.history); err != nil {
		w.t.Error(err)
	}
	for _, c := range w.clients {
		c.conn.Close()
	}
}

// act does something at random.
func (w *declaredWorld) act() {
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

func (w *declaredWorld) dial(c *declaredClient, from *streamtest.Mark) {
	c.at = w.replicas[w.random.IntN(len(w.replicas))]
	w.connect(c, from)
}

func (w *declaredWorld) connect(c *declaredClient, from *streamtest.Mark) {
	c.last = from
	c.conn = w.history.Connect(w.followed(c.at), streamtest.Dial{Client: c.name, Replica: c.at.name, Slow: c.slow, From: from})
}

// followed returns what subscribers follow at a replica.
func (w *declaredWorld) followed(r *declaredReplica) *watch.Watch {
	switch w.follow {
	case declaredTwice:
		return r.viewOfView
	case askedOfDeclared:
		v, err := r.asked.Open(r.view, definition(w.t, furtherParams), Request{Client: "c"})
		if err != nil {
			w.t.Fatal(err)
		}
		return v
	}
	return r.view
}

// read lets the clients read what there is; slow ones only now and then.
func (w *declaredWorld) read(all bool) {
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
