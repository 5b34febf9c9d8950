package views

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// world is an upstream, two replicas of a watch of it and of views of that watch, and
// subscribers of the views.
type world struct {
	t        *testing.T
	random   *rand.Rand
	upstream *streamtest.Upstream
	deletes  streamtest.DeleteRevisions
	parts    []*part
	replicas []*replica
	clients  []*client
	padding  string // makes values large, so that readers pause within a walk
	epochs   int
}

// part is a definition, and what the subscribers of its views have seen.
type part struct {
	definition *view.Definition
	history    *streamtest.History
	marks      []*streamtest.Mark // every id that was sent
}

type replica struct {
	name     string
	endpoint *streamtest.Replica
	registry *watch.Registry
	base     *watch.Watch
	views    *Views
}

type client struct {
	name string
	slow bool
	lazy bool            // it reads only what it was woken for
	idle <-chan struct{} // is closed when there is more; nil: not known
	of   *part
	conn *streamtest.Connection // nil: it was refused
	at   *replica
	last *streamtest.Mark
}

// TestAgainstTheModel lets resources enter and leave views in every way, and checks what
// their subscribers see against a model of each view, with all checkers.
func TestAgainstTheModel(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		for _, deletes := range []streamtest.DeleteRevisions{
			streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen, streamtest.Vanishing,
		} {
			t.Run(fmt.Sprint(seed, "/", deletes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newWorld(t, seed, deletes).run() })
			})
		}
	}
}

// definitions are found by an index, met by every change, and costly.
var definitions = []view.Params{
	{Prefix: "a/", Filter: `value.team == "red" && value.n > 1`, Fields: []string{"team,n"}},
	{Prefix: "a/"},
	{Filter: `value.n > 1`},
	{Filter: `value.exists(k, k == "team" && value[k] == "red")`},
	{Fields: []string{"n"}},
	{Filter: `key.startsWith("a/") || value.n == 2`, Fields: []string{"x"}},
	{Filter: `value.team in ["red", "green"]`},
}

func newWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 7)), deletes: deletes, upstream: streamtest.NewUpstream("e0", deletes)}
	for i := range uint64(3) {
		w.parts = append(w.parts, &part{
			definition: definition(t, definitions[(seed+i*i)%uint64(len(definitions))]),
			history:    &streamtest.History{DeletesUnnumbered: deletes != streamtest.OwnRevision, Truth: w.upstream.Truth()},
		})
	}
	if seed%5 == 4 {
		w.padding = strings.Repeat("x", 30_000)
	}
	for _, name := range []string{"A", "B"} {
		w.start(name)
	}
	for i := range 8 {
		c := &client{name: fmt.Sprint("client ", i), slow: i > 5, lazy: i%2 == 1, of: w.parts[i%len(w.parts)]}
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
	if r.base, err = r.registry.Add(watch.Config{
		Name: "w", Source: r.endpoint, Backoff: backoff, BehindTimeout: time.Hour,
		History: log.History{MaxDeletes: []int{3, 20, 1000}[w.random.IntN(3)]},
	}); err != nil {
		w.t.Fatal(err)
	}
	c := Config{Linger: []time.Duration{time.Millisecond, time.Second, 2 * time.Second}[w.random.IntN(3)]}
	if w.random.IntN(3) == 0 {
		c.MaxBytes = int64(20_000 + 3*len(w.padding))
	}
	r.views = New(c)
	w.t.Cleanup(r.views.Close)
	w.replicas = append(w.replicas, r)
}

func (w *world) run() {
	for range 150 {
		w.act()
		synctest.Wait()
		w.read(false)
	}
	for _, r := range w.replicas {
		r.views.config.MaxBytes = 1 << 30
		r.endpoint.Refuse(nil)
		r.endpoint.CutSnapshot(-1)
		r.endpoint.Move()
		r.endpoint.Catch(-1)
		r.endpoint.Poll()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, c := range w.clients {
		if c.conn == nil {
			w.dial(c, c.last)
		}
	}
	for _, p := range w.parts {
		w.tryAll(p)
	}
	for range 5 { // a view may have to be built again for an older position
		time.Sleep(time.Minute)
		synctest.Wait()
		w.read(true)
	}
	w.check()
}

// tryAll resumes from each id at each replica.
func (w *world) tryAll(p *part) {
	for i, m := range p.marks {
		if w.padding != "" && i%8 > 0 {
			continue // each is many kilobytes
		}
		for _, r := range w.replicas {
			c := &client{name: fmt.Sprint("again ", i), at: r, of: p}
			w.connect(c, m)
			w.clients = append(w.clients, c)
		}
	}
}

// check compares what was seen with the model.
func (w *world) check() {
	for _, p := range w.parts {
		d := p.definition
		p.history.Truth = w.upstream.Truth().Narrow(d.Epoch, func(r stream.Resource) (stream.Resource, bool) {
			in, _ := d.Matches(r)
			r, err := d.Project(r)
			return r, in && err == nil
		})
		p.history.Settled = true
		if err := streamtest.CheckAll(p.history); err != nil {
			w.t.Error(err)
		}
		for _, c := range p.history.Connections() {
			if err := c.CheckBytes(); err != nil {
				w.t.Error(err)
			}
		}
	}
	for _, c := range w.clients {
		c.conn.Close()
	}
	for _, r := range w.replicas {
		r.views.Close()
		if held := r.views.holds(); held != 0 || r.views.leaving.Load() != 0 {
			w.t.Errorf("in the end, %d bytes are counted, %d of them as leaving", held, r.views.leaving.Load())
		}
	}
}

// act does something at random.
func (w *world) act() {
	r := w.replicas[w.random.IntN(len(w.replicas))]
	switch n := w.random.IntN(24); {
	case n < 8:
		w.upstream.Commit(1, w.writes()...)
	case n < 13:
		r.endpoint.Catch(1 + w.random.IntN(4))
	case n < 14:
		r.endpoint.Disconnect(errors.New("cut"))
		time.Sleep(time.Second)
	case n < 15:
		r.endpoint.CutSnapshot(w.random.IntN(3))
		r.endpoint.Disconnect(nil)
		time.Sleep(time.Second)
	case n < 16 && w.random.IntN(4) == 0:
		w.epochs++
		w.upstream.Restore(fmt.Sprint("e", w.epochs), w.upstream.Oldest())
		r.endpoint.Move()
	case n < 16:
		r.endpoint.Move()
	case n < 18:
		w.disturb(r)
	default:
		c := w.clients[w.random.IntN(len(w.clients))]
		if c.conn != nil {
			c.conn.Close()
		}
		time.Sleep(time.Duration(w.random.IntN(4)) * time.Second)
		w.dial(c, c.last)
	}
}

// disturb does something seldom.
func (w *world) disturb(r *replica) {
	switch w.random.IntN(7) {
	case 0:
		r.endpoint.Foreign()
		time.Sleep(time.Second)
	case 1:
		r.endpoint.FallBack(w.random.IntN(3))
		time.Sleep(time.Second)
		r.endpoint.Catch(3)
	case 2:
		r.endpoint.Compact()
		r.endpoint.Disconnect(nil)
	case 3:
		r.endpoint.Say(stream.Stale, "far behind")
		synctest.Wait()
		w.read(false)
		r.endpoint.Say(stream.InSync, "")
	default:
		if w.deletes == streamtest.Vanishing {
			w.upstream.Vanish(keys[w.random.IntN(len(keys))])
			r.endpoint.Poll()
		}
	}
}

var keys = []string{"a/1", "a/2", "a/3", "a/4", "b/1"}

// writes are changes of a few keys, in and beside the view.
func (w *world) writes() (out []streamtest.Write) {
	for _, at := range w.random.Perm(len(keys))[:1+w.random.IntN(3)] {
		value := fmt.Sprintf(`{"x":"%d%s","team":"%s","n":%d}`, w.random.IntN(100), w.padding, []string{"red", "blue"}[w.random.IntN(2)], w.random.IntN(5))
		if w.random.IntN(10) == 0 {
			value = `"no object"`
		}
		out = append(out, streamtest.Write{Key: keys[at], Value: value, Delete: w.random.IntN(5) == 0})
	}
	return out
}

func (w *world) dial(c *client, from *streamtest.Mark) {
	c.at = w.replicas[w.random.IntN(len(w.replicas))]
	w.connect(c, from)
}

func (w *world) connect(c *client, from *streamtest.Mark) {
	c.last = from
	request := Request{Client: c.name}
	if from != nil && w.random.IntN(2) == 0 {
		request.Resume = &from.Position
	}
	c.conn, c.idle = nil, nil
	v, err := c.at.views.Open(c.at.base, c.of.definition, request)
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.Reason == NoMemory {
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	c.conn = c.of.history.Connect(v, streamtest.Dial{Client: c.name, Replica: c.at.name, Slow: c.slow, From: from})
}

// read lets the clients read what there is; slow ones a flush now and then.
func (w *world) read(all bool) {
	for _, c := range w.clients {
		if c.conn == nil || c.slow && !all && w.random.IntN(4) > 0 {
			continue
		}
		for c.conn.Live() && !c.sleeps() {
			if !c.conn.Step() {
				c.idle = c.conn.Changed()
				break
			}
			c.note()
			if c.slow && !all {
				break
			}
		}
	}
}

// sleeps reports whether the client waits to be woken.
func (c *client) sleeps() bool {
	if !c.lazy || c.idle == nil {
		return false
	}
	select {
	case <-c.idle:
		c.idle = nil
		return false
	default:
		return true
	}
}

// note keeps the ids of a connection.
func (c *client) note() {
	for _, m := range c.conn.Marks() {
		if c.last != m {
			c.last = m
			c.of.marks = append(c.of.marks, m)
		}
	}
}
