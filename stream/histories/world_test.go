package histories

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// keys are few, so that they are changed, deleted and created again often.
var keys = []string{"a/1", "a/2", "a/3", "b/1", "b/2", "c", "d", "e"}

// manyKeys make transactions that take a while.
var manyKeys = func() (out []string) {
	for i := range 500 {
		out = append(out, fmt.Sprintf("k/%03d", i))
	}
	return out
}()

func (w *world) keys() []string {
	if w.shape.wide {
		return manyKeys
	}
	return keys
}

// world is one history under way, inside a synctest bubble: nothing happens by
// itself except with time.
type world struct {
	*choices
	shape      shape
	upstream   *streamtest.Upstream
	parts      []*part // all of the watch, then views of it
	windows    []*part // those with which clients begin, and then those to which they move
	newHistory func() *streamtest.History
	counts     []*part
	roots      []*node
	nodes      []*node // the roots, then the nodes behind them
	clients    []*client
	wires      []*wire
	programs   []*program
	besides    *streamtest.Upstream // of the other watch
	beside     *part                // what clients have of it
	principals []*principal
	began      time.Time
	restores   int
	stealth    bool // the upstream went back without a new name
	values     int
	beats      int
	served     []string // names of orders as nodes have served them
	untrue     error    // the reports of a node about itself
	dir        string   // of the journals; "": there are none

	mu    sync.Mutex // guards the following field
	trace []string
}

// given is an id and how its holders got it.
type given struct {
	at    stream.Position
	holds int // number of resources: where deletes have no revision, an id alone is not enough
	exact bool
}

// shape has the parameters of a history that are fixed at its start.
type shape struct {
	deletes  streamtest.DeleteRevisions
	roots    int
	others   int
	heavy    bool // values are large
	wide     bool // there are many keys
	views    bool // there are views; then the upstream never goes back without a new name
	narrow   bool // there is a node that follows a view
	windows  bool // there are windows, and counts if deletes have revisions
	patchy   bool // endpoints forget history, and fall behind
	recalls  bool // endpoints tell of deletes with their snapshots
	guarded  bool // principals come to second gateways; then the upstream keeps its order, and nothing falls back
	wires    int  // how many clients beyond a network there are at most
	keeps    bool // nodes have journals
	programs int  // how many programs there are at most
	steps    int
}

func newShape(c *choices) shape {
	s := shape{
		deletes: oneOf(c, streamtest.OwnRevision, streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen,
			streamtest.Vanishing, streamtest.Vanishing),
		roots:  1 + c.pick(2),
		others: c.pick(*behind + 1),
		heavy:  c.rarely(6),
		patchy: c.pick(4) > 0,
		steps:  5 + c.pick(26),
	}
	s.views = c.rarely(2)
	s.narrow = s.views && c.rarely(2)
	s.wires = oneOf(c, 0, 1, 2, 3)
	if s.guarded = c.rarely(4) && !*detours; s.guarded {
		s.patchy = false
	}
	if *deletes >= 0 {
		s.deletes = streamtest.DeleteRevisions(*deletes)
	}
	s.recalls = s.deletes == streamtest.OwnRevision && c.pick(2) == 0
	if *windows {
		s.views = true
	}
	s.programs = oneOf(c, 0, 0, 1, 2)
	if *repairs {
		s.roots, s.programs, s.wires = 2, 2, 0
	}
	if *detours {
		s.roots, s.others, s.wires, s.programs = 2, 0, 0, 0
		s.views, s.narrow = false, false
	}
	s.windows = s.views && s.deletes != streamtest.Vanishing
	s.keeps = c.rarely(3) && !*detours || *keep
	if s.wide = c.rarely(40) || *wide; s.wide {
		s.heavy, s.steps = false, 3+s.steps%4 // each costs as much as a hundred others
	}
	return s
}

func newWorld(c *choices) *world {
	s := newShape(c)
	u := streamtest.NewUpstream("e0", s.deletes)
	other := streamtest.NewUpstream("x0", streamtest.OwnRevision)
	beside := &part{name: "the other watch", beside: true, seen: map[given]bool{}, history: &streamtest.History{
		Truth: other.Truth(), Heartbeat: heartbeat, StaleAfter: staleAfter,
	}}
	newHistory := func() *streamtest.History {
		return &streamtest.History{
			Truth: u.Truth(), Heartbeat: heartbeat, StaleAfter: staleAfter,
			Freshness:         map[string][]streamtest.Freshness{},
			Large:             storage.ReplaySize,
			DeletesUnnumbered: s.deletes != streamtest.OwnRevision,
		}
	}
	w := &world{choices: c, shape: s, upstream: u, besides: other, beside: beside, began: time.Now(), newHistory: newHistory, parts: newParts(newHistory)}
	if s.windows {
		w.windows = w.newWindows()
	}
	if s.windows && s.deletes == streamtest.OwnRevision {
		w.counts = newCounts(newHistory)
	}
	return w
}

// play plays the whole history. The error is the failure found.
func (w *world) play() error {
	defer w.end()
	if w.shape.guarded {
		if err := w.guard(); err != nil {
			return err
		}
	}
	if err := w.grow(); err != nil {
		return err
	}
	w.settle()
	for range w.pick(3) {
		if err := w.connect(); err != nil {
			return err
		}
	}
	for range w.shape.steps {
		if err := w.act(); err != nil {
			return err
		}
		w.settle()
	}
	return w.finish()
}

func (w *world) say(format string, args ...any) {
	at := time.Since(w.began).Round(10 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%8v  %s", at, fmt.Sprintf(format, args...)))
}

// grow starts the tree.
func (w *world) grow() error {
	limits := log.Retention{
		MaxAge:     oneOf(w.choices, time.Hour, 3*time.Second),
		MaxDeletes: oneOf(w.choices, 1000, 1, 2, 5),
	}
	others := w.shape.others
	if w.shape.narrow {
		others++
	}
	for i := range w.shape.roots + others {
		n := &node{world: w, history: limits, maxBytes: w.ceiling()}
		if err := w.keep(n, i); err != nil {
			return err
		}
		if i < w.shape.roots {
			n.name, n.endpoint, n.besides = fmt.Sprint("R", i), w.upstream.Replica(), w.besides.Replica()
			if w.shape.patchy && w.rarely(4) {
				n.endpoint.Forget()
			}
			if w.shape.recalls {
				n.endpoint.Recall()
			}
			w.roots = append(w.roots, n)
		} else {
			n.name = fmt.Sprint("M", i-w.shape.roots)
			n.narrow = i-w.shape.roots == w.shape.others
			if err := w.link(n); err != nil {
				return err
			}
		}
		w.nodes = append(w.nodes, n)
		if err := n.start(); err != nil {
			return err
		}
		w.say("%s starts: history %v, ceiling %d, journal %t, follows %s", n.name, n.history, n.maxBytes, n.kept != nil, n.follows())
	}
	return nil
}

// keep gives a node a journal: in a history with journals, the first one and half of the others.
func (w *world) keep(n *node, i int) (err error) {
	if w.shape.keeps && (i == 0 || w.pick(2) == 0) {
		n.kept, err = w.newJournal(fmt.Sprint("node", i))
	}
	return err
}

// ceiling is the memory limit of a watch, in bytes; 0: none.
func (w *world) ceiling() int64 {
	if !w.shape.heavy {
		return 0
	}
	return oneOf(w.choices, int64(0), 700_000, 500_000, 350_000)
}

// link puts a load balancer in front of the roots, or of the gateways behind them,
// for a node to follow.
func (w *world) link(n *node) error {
	targets := w.roots
	if more := w.nodes[len(w.roots):]; len(more) > 0 && w.rarely(2) {
		targets = more
	}
	for _, to := range targets {
		if to.followed {
			continue
		}
		if to.followed = true; to.listener.Load() == nil {
			if err := to.serve(); err != nil {
				return err
			}
		}
	}
	n.link = newLink(n.name, slices.Clone(targets))
	n.link.turns, n.link.target = w.rarely(2), w.pick(len(targets))
	return nil
}

func (n *node) follows() string {
	if n.endpoint != nil {
		return "the upstream"
	}
	var names []string
	for _, to := range n.link.targets {
		names = append(names, to.name)
	}
	return strings.Join(names, ", ")
}

// end stops everything.
func (w *world) end() {
	for _, c := range w.clients {
		if c.conn != nil {
			c.conn.Close()
		}
	}
	for _, c := range w.wires {
		c.hangUp()
		links.Delete(c.link.host)
	}
	for _, p := range w.programs {
		p.close()
	}
	for _, n := range slices.Backward(w.nodes) {
		if n.link != nil {
			n.link.cut()
			links.Delete(n.link.host)
		}
		n.stop()
	}
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

// settle waits until nothing more happens, and lets the fast readers read.
func (w *world) settle() {
	synctest.Wait()
	for _, n := range w.nodes {
		w.serves(n)
		if err := n.truthful(); err != nil && w.untrue == nil {
			w.untrue = err
			w.say("%v", err)
		}
	}
	for _, c := range w.clients {
		if c.up() && c.rate > 0 {
			c.conn.Look()
		}
		if c.up() && !c.slow {
			c.repair()
			c.drain()
		}
	}
	for _, p := range w.programs {
		p.note()
	}
	for _, c := range w.wires {
		if err := c.collect(); err != nil && w.untrue == nil {
			w.untrue = err
			w.say("%v", err)
		}
	}
}

// serves records the order that a node serves.
func (w *world) serves(n *node) {
	if epoch := n.watch.Snapshot().Epoch(); epoch != "" && !slices.Contains(w.served, epoch) {
		w.served = append(w.served, epoch)
	}
}

// readAll lets the slow readers read as well.
func (w *world) readAll() {
	for _, c := range w.clients {
		if c.up() {
			c.drain()
			c.finishRepair()
		}
		if c.up() {
			c.drain()
		}
	}
}

// advance lets time pass.
func (w *world) advance(d time.Duration) {
	const step = time.Second
	for ; d > 0; d -= step {
		time.Sleep(min(d, step))
		w.settle()
		if w.beats++; w.beats%int(heartbeat/step) == 0 {
			w.beat()
		}
	}
}

func (w *world) beat() {
	for _, c := range w.clients {
		if c.up() && !c.slow {
			c.conn.Beat()
			c.note()
		}
	}
}

// level brings every node to the upstream's position.
func (w *world) level() error {
	for _, n := range w.roots {
		n.endpoint.Refuse(nil)
		n.endpoint.CutSnapshot(-1)
		n.endpoint.Move()
		n.endpoint.Catch(-1)
		n.endpoint.Poll()
		n.endpoint.Say(stream.InSync, "")
		n.besides.Catch(-1)
	}
	for _, c := range w.wires {
		c.link.free()
	}
	for _, n := range w.nodes[len(w.roots):] {
		n.link.set(func() { n.link.refuses, n.link.turns = false, false })
		n.link.free()
	}
	w.settle()
	w.advance(4*time.Second + 2*behindTimeout)
	for _, n := range w.nodes {
		v := n.watch.Snapshot()
		if n.fits() && (v.Revision() != w.upstream.Revision() || v.Status().State != stream.InSync) {
			return fmt.Errorf("%s does not reach the upstream's revision %d: it is at %v, %v",
				n.name, w.upstream.Revision(), v.Position(), v.Status())
		}
	}
	return nil
}

// atHead reports whether every node is at the upstream's position.
func (w *world) atHead() bool {
	return !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.watch.Snapshot().Revision() != w.upstream.Revision() })
}

// finish tries ids at the nodes' current positions, and again when everything
// has settled, and checks.
func (w *world) finish() error {
	w.tryIDs()
	w.readAll()
	w.advance(aheadWait + time.Second)
	w.readAll()
	if err := w.level(); err != nil {
		return err
	}
	w.tryIDs()
	for _, c := range w.clients {
		if !c.up() {
			c.dial(w.nodeOf(c.part), c.last, c.held)
		}
	}
	for _, c := range w.wires {
		if !c.up() {
			if err := c.connect(w.nodeFor(c)); err != nil {
				return err
			}
		}
	}
	w.advance(aheadWait + time.Second)
	w.readAll()
	for range 2 { // a view may have to be built again for an older position
		w.advance(5 * time.Second)
		w.readAll()
	}
	for _, p := range w.allParts() {
		p.history.Settled = !slices.ContainsFunc(w.nodes, func(n *node) bool { return !n.fits() })
		if p.beside {
			p.history.Settled = p.history.Settled && !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.joined && !n.hasBeside() })
			continue
		}
		for _, n := range w.roots {
			for life := range n.lives {
				p.history.Freshness[fmt.Sprint(n.name, "/", life+1)] = n.endpoint.Freshness()
			}
		}
		p.narrow(w.upstream.Truth(), w.served)
	}
	w.awaitPrograms()
	w.readAll()
	w.count()
	return w.check()
}

// tryIDs resumes from issued ids, at each node.
func (w *world) tryIDs() {
	most := 12
	if w.shape.wide {
		most = 2
	}
	for _, p := range slices.Concat(w.parts, w.windows, w.counts) {
		w.tryIDsOf(p, most)
	}
}

func (w *world) tryIDsOf(p *part, most int) {
	ids := p.ids
	for i := range min(len(ids), most) {
		m := ids[len(ids)-1-i]
		if len(ids) > most && i > most/2 {
			m = ids[w.pick(len(ids)-most/2)]
		}
		for _, n := range w.nodes {
			if !p.isAt(n) {
				continue
			}
			c := &client{world: w, part: p, name: fmt.Sprint("try ", len(w.clients)), slow: true, holds: true}
			w.clients = append(w.clients, c)
			c.dial(n, m, nil)
		}
	}
}

func (w *world) check() error {
	err := errors.Join(w.untrue, w.audit())
	for _, p := range w.allParts() {
		if broken := streamtest.CheckAll(p.history); broken != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.name, broken))
		}
	}
	for _, c := range w.connections() {
		err = errors.Join(err, c.CheckBytes())
	}
	for _, p := range w.programs {
		err = errors.Join(err, p.check())
	}
	return err
}

// report describes a failed history in full.
func (w *world) report(err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n\n%+v\n%s\n", err, w.shape, strings.Join(w.trace, "\n"))
	for _, c := range w.connections() {
		if strings.Contains(err.Error(), c.String()) {
			w.describe(&b, c, 0)
			break
		}
	}
	return b.String()
}

// describe writes a connection, and those that its ids came from.
func (w *world) describe(b *strings.Builder, c *streamtest.Connection, depth int) {
	for _, giver := range w.connections() {
		if depth < 4 && c.From != nil && slices.Contains(giver.Marks(), c.From) {
			w.describe(b, giver, depth+1)
		}
	}
	fmt.Fprintf(b, "\n%s", c.Describe())
}
