package views

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// world is an upstream, two replicas of a watch of it and of views of that watch, and
// subscribers of the views.
type world struct {
	t        *testing.T
	random   *rand.Rand
	upstream *streamtest.ViewUpstream
	deletes  streamtest.DeleteRevisions
	parts    []*part
	replicas []*replica
	clients  []*client
}

// part is a definition, and what the subscribers of its views have seen.
type part struct {
	definition *view.Definition
	truth      truthOf
	sees       truthOf // what the subscribers of a window may see; nil: truth
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
	t.Parallel()
	seeds := seeds(40, 8)
	switches := 0
	for _, seed := range seeds {
		for _, deletes := range []streamtest.DeleteRevisions{
			streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen, streamtest.Vanishing,
		} {
			t.Run(fmt.Sprint(seed, "/", deletes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { switches += newWorld(t, seed, deletes).run() })
			})
		}
	}
	if switches < len(seeds) {
		t.Errorf("only %d connections took the place of another", switches)
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
	{Grants: []view.Grant{{Filter: `value.team == "red"`, Fields: []string{"n"}}, {Filter: `key.startsWith("a/") && value.n == 2`}}},
	{Filter: "value.n > 1", Grants: []view.Grant{{Filter: `value.team == "red"`, Fields: []string{"team"}}, {Filter: "value.n > 2", Fields: []string{"n"}}}},
}

func newWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions) *world {
	w := newEmptyWorld(t, rand.New(rand.NewPCG(seed, 7)), deletes)
	for i := range uint64(3) {
		w.follow(definition(t, definitions[(seed+i*i)%uint64(len(definitions))]), streamtest.TruthOfView)
	}
	if seed%5 == 4 {
		w.upstream.Padding = strings.Repeat("x", 30_000) // so that readers pause within a walk
	}
	w.begin("A", "B")
	return w
}

// newEmptyWorld has nobody in it yet.
func newEmptyWorld(t *testing.T, random *rand.Rand, deletes streamtest.DeleteRevisions) *world {
	w := &world{t: t, random: random, deletes: deletes}
	w.upstream = streamtest.NewViewUpstream(w.random, deletes)
	w.upstream.Marked = true
	return w
}

// truthOf returns the truth of the part of an upstream that a definition selects.
type truthOf func(all *streamtest.Truth, d *view.Definition, served ...string) *streamtest.Truth

// follow adds a definition.
func (w *world) follow(d *view.Definition, truth truthOf) {
	w.parts = append(w.parts, &part{definition: d, truth: truth, history: &streamtest.History{
		DeletesUnnumbered: w.deletes != streamtest.OwnRevision, Truth: w.upstream.Truth(), Hides: d.Hides(),
	}})
}

// begin starts the replicas, and connects the clients.
func (w *world) begin(replicas ...string) {
	for _, name := range replicas {
		w.start(name)
	}
	for i := range 8 {
		c := &client{name: fmt.Sprint("client ", i), slow: i > 5, lazy: i%2 == 1, of: w.parts[i%len(w.parts)]}
		w.clients = append(w.clients, c)
		w.dial(c, nil)
	}
}

// start starts a replica.
func (w *world) start(name string) {
	r := &replica{name: name, endpoint: w.upstream.Replica(), registry: watch.NewRegistry()}
	if w.deletes == streamtest.OwnRevision && w.random.IntN(2) == 0 {
		r.endpoint.Recall()
	}
	w.t.Cleanup(r.registry.Close)
	backoff := watch.Backoff{Min: 100 * time.Millisecond, Max: 100 * time.Millisecond}
	var err error
	if r.base, err = r.registry.Add(watch.Config{
		Name: "w", Source: r.endpoint, Backoff: backoff, BehindTimeout: time.Hour,
		History: log.Retention{MaxDeletes: []int{3, 20, 1000}[w.random.IntN(3)]},
	}); err != nil {
		w.t.Fatal(err)
	}
	c := Config{Linger: []time.Duration{time.Millisecond, time.Second, 2 * time.Second}[w.random.IntN(3)]}
	if w.random.IntN(3) == 0 {
		c.MaxBytes = int64(20_000 + 3*len(w.upstream.Padding))
		for _, p := range w.parts {
			p.history.ViewsBounded = true
		}
	}
	r.views = New(c)
	w.t.Cleanup(r.views.Close)
	w.replicas = append(w.replicas, r)
}

// run returns how many connections took the place of one to another view.
func (w *world) run() (switches int) {
	for i := range 150 {
		if i == 75 {
			w.start("late")
		}
		w.act()
		synctest.Wait()
		w.read(false)
	}
	for _, r := range w.replicas {
		r.unlimit()
		streamtest.Heal(r.endpoint)
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
	for _, p := range w.parts {
		for _, c := range p.history.Connections() {
			if c.Switched() {
				switches++
			}
		}
	}
	return switches
}

// unlimit ends the limit of the memory of views. All feeders are idle, and are woken so that
// each reads the new limit after it was written.
func (r *replica) unlimit() {
	synctest.Wait()
	r.views.Reconfigure(Config{MaxBytes: 1 << 30, Linger: r.views.limits().Linger, Max: r.views.limits().Max, MaxPerClient: r.views.limits().MaxPerClient})
	r.views.mu.Lock()
	defer r.views.mu.Unlock()
	for _, p := range r.views.watches {
		for _, l := range p.feeders {
			l.wake()
		}
	}
}

// tryAll resumes from each id at each replica.
func (w *world) tryAll(p *part) {
	for i, m := range p.marks {
		if w.upstream.Padding != "" && i%8 > 0 {
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
		if p.history.Truth = p.truth(w.upstream.Truth(), p.definition); p.sees != nil {
			p.history.Sees = p.sees(w.upstream.Truth(), p.definition)
		}
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
	switch n := w.random.IntN(30); {
	case n < 16:
		time.Sleep(w.upstream.Act(r.endpoint))
	case n < 18:
		w.disturb(r)
	case n < 20:
		w.visit(r)
	case n < 24:
		w.move(w.clients[w.random.IntN(len(w.clients))])
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
	case 4:
		if w.deletes == streamtest.OwnRevision {
			r.endpoint.Conflate()
		}
		r.endpoint.Catch(w.random.IntN(4))
		r.endpoint.Disconnect(nil)
	case 5:
		w.list(w.parts[w.random.IntN(len(w.parts))], r)
	case 3:
		r.endpoint.Say(stream.Stale, "far behind")
		synctest.Wait()
		w.read(false)
		r.endpoint.Say(stream.InSync, "")
	default:
		if w.deletes == streamtest.Vanishing {
			w.upstream.Vanish(w.upstream.Key(w.random.IntN(len(streamtest.ViewKeys))))
			r.endpoint.Poll()
		}
	}
}

// visit lets clients come to views with any position, and the upstream change, while no view can be
// made. A view that had the newest state has it again: nobody who follows it waits for what is made
// for others.
func (w *world) visit(r *replica) {
	time.Sleep(time.Second)
	synctest.Wait()
	views, live, base := r.views, r.live(), r.base.Snapshot()
	release := views.builders.hold()
	defer release()
	for range 1 + w.random.IntN(3) {
		of := w.parts[w.random.IntN(len(w.parts))]
		if len(of.marks) == 0 {
			continue
		}
		m := of.marks[w.random.IntN(len(of.marks))]
		c := &client{name: fmt.Sprint("visitor ", len(w.clients)), at: r, of: of}
		v, err := views.Open(r.base, of.definition, Request{Client: c.name, Resume: &m.Position})
		if err != nil {
			continue
		}
		c.conn = of.history.Connect(v, streamtest.Dial{Client: c.name, Replica: r.name, From: m})
		w.clients = append(w.clients, c)
		defer c.conn.Close()
	}
	synctest.Wait()
	w.read(false)
	w.upstream.Commit(1, streamtest.Write{Key: w.upstream.Key(w.random.IntN(len(streamtest.ViewKeys))), Delete: w.random.IntN(2) == 0, Value: `{"team":"red","n":2}`})
	r.endpoint.Catch(-1)
	synctest.Wait()
	w.read(false)
	now := r.base.Snapshot()
	if now.Generation() != base.Generation() || now.Forgotten() > base.Seq() {
		return // every view is made again
	}
	for _, e := range live {
		if s := e.watch.Snapshot(); !e.removed.Load() && !e.full.Load() && (s.Revision() != now.Revision() || s.Status() != now.Status()) {
			w.t.Errorf("broke Fresh: while others came with old positions, view %s of replica %s stayed at %d, %v: its watch is at %d, %v",
				e.id(), r.name, s.Revision(), s.Status(), now.Revision(), now.Status())
		}
	}
}

// live returns the views of a replica that have the newest state, and are fed with the others. No
// view is being made.
func (r *replica) live() (live []*entry) {
	now := r.base.Snapshot()
	r.views.mu.Lock()
	defer r.views.mu.Unlock()
	p := r.views.watches[r.base]
	if p == nil || !now.Primed() {
		return nil
	}
	for _, e := range p.views {
		if s := e.watch.Snapshot(); !e.costly && e.inUse() && s.Primed() && s.Revision() == now.Revision() && s.Status() == now.Status() {
			live = append(live, e)
		}
	}
	return live
}

// hold keeps builders from beginning anything, until release is called.
func (b *builders) hold() (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.most
	b.most = 0
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for b.most = most; b.running < min(most, len(b.clients)); b.running++ {
			b.goroutines.Go(b.run)
		}
	}
}

// move makes a client switch to another view, or to the same one, at the replica where it is.
func (w *world) move(c *client) {
	if c.conn == nil || !c.conn.Live() {
		return
	}
	of := w.parts[w.random.IntN(len(w.parts))]
	v, err := c.at.views.Open(c.at.base, of.definition, Request{Client: c.name})
	if err != nil {
		return
	}
	c.of, c.last, c.idle = of, nil, nil
	c.conn = c.conn.Switch(of.history, v)
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
