package watch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"pgregory.net/rapid"
)

// keys are few, so that they are changed, deleted and created again often.
var keys = []string{"a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "c", "d", "e", "f", "g", "h"}

const (
	worldHeartbeat     = 5 * time.Second
	worldStaleAfter    = time.Second
	worldBehindTimeout = 10 * time.Second
)

// world is one history under way, inside a synctest bubble: nothing happens by
// itself except with time.
type world struct {
	t           *rapid.T
	eventCounts *eventCounts
	upstream    *streamtest.Upstream
	history     *streamtest.History
	gateways    []*gateway
	clients     []*client
	marks       []*streamtest.Mark // every id ever sent
	seen        map[stream.Position]bool
	heavy       bool // values are large
	patchy      bool // upstreams forget history, so replicas have gaps
	stealth     bool // the upstream went back without a new name
	restores    int
	values      int
	beats       int
}

func newWorld(t *rapid.T, eventCounts *eventCounts) *world {
	deletes := rapid.SampledFrom([]streamtest.DeleteRevisions{
		streamtest.OwnRevision, streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen,
	}).Draw(t, "revisions of deletes")
	w := &world{
		t: t, eventCounts: eventCounts,
		upstream: streamtest.NewUpstream("e0", deletes),
		seen:     map[stream.Position]bool{},
		heavy:    rapid.IntRange(0, 3).Draw(t, "heavy") == 0,
		patchy:   rapid.IntRange(0, 3).Draw(t, "patchy") > 0,
	}
	w.history = &streamtest.History{
		Truth: w.upstream.Truth(), Heartbeat: worldHeartbeat, StaleAfter: worldStaleAfter,
		Freshness:         map[string][]streamtest.Freshness{},
		DeletesUnnumbered: deletes != streamtest.OwnRevision,
	}
	limits := log.Retention{
		MaxAge:     rapid.SampledFrom([]time.Duration{5 * time.Second, time.Hour}).Draw(t, "max age"),
		MaxDeletes: rapid.SampledFrom([]int{2, 5, 1000}).Draw(t, "max deletes"),
	}
	for _, name := range []string{"A", "B"} {
		g := &gateway{name: name, world: w, endpoint: w.upstream.Replica(), limits: limits}
		if w.patchy && rapid.IntRange(0, 3).Draw(t, "forgetful") == 0 {
			g.endpoint.Forget()
		}
		if deletes == streamtest.OwnRevision && rapid.Bool().Draw(t, "recalls") {
			g.endpoint.Recall()
			eventCounts.add("deletes told with snapshots")
		}
		g.start()
		w.gateways = append(w.gateways, g)
	}
	if deletes == streamtest.OwnRevision {
		eventCounts.add("deletes with their own revision")
	} else {
		eventCounts.add("deletes without one")
	}
	w.settle()
	return w
}

var padding = strings.Repeat("x", 40<<10)

func (w *world) value() string {
	w.values++
	if w.heavy {
		return fmt.Sprintf(`{"n":%d,"pad":"%s"}`, w.values, padding)
	}
	return streamtest.ValueOf(w.values)
}

// gateway is one replica: a registry with one watch.
type gateway struct {
	name     string
	world    *world
	endpoint *streamtest.Replica
	limits   log.Retention
	registry *watch.Registry
	watch    *watch.Watch

	mostBytes, horizon uint64
	starts             int
}

// replica names the gateway since its last start: it knows nothing from before.
func (g *gateway) replica() string { return fmt.Sprintf("%s%d", g.name, g.starts) }

func (g *gateway) start() {
	g.registry = watch.NewRegistry()
	watch, err := g.registry.Add(watch.Config{
		Name: "w", SourceName: "upstream", Source: g.endpoint, History: g.limits,
		StaleAfter: worldStaleAfter, BehindTimeout: worldBehindTimeout,
		Backoff: watch.Backoff{Min: 100 * time.Millisecond, Max: 100 * time.Millisecond},
	})
	if err != nil {
		g.world.t.Fatal(err)
	}
	g.watch = watch
	g.starts++
	g.mostBytes, g.horizon = 0, 0
}

func (g *gateway) restart() {
	for _, c := range g.world.clients {
		if c.up() && c.at == g {
			g.world.hangUp(c)
		}
	}
	g.stop()
	g.start()
}

func (g *gateway) stop() {
	g.world.eventCounts.addN("snapshots refused as behind", int(g.watch.Stats().Reconnects["behind"]))
	g.registry.Close()
}

// look counts what can only be seen from outside: a log that shrinks has
// rewritten segments, a horizon that rises has dropped tombstones.
func (g *gateway) look() {
	v := g.watch.Snapshot()
	bytes := uint64(v.Bytes())
	if bytes+256<<10 < g.mostBytes {
		g.world.eventCounts.add("segments rewritten")
		g.mostBytes = 0
	}
	g.mostBytes = max(g.mostBytes, bytes)
	horizon, _ := v.Horizon()
	if g.horizon > 0 && horizon > g.horizon {
		g.world.eventCounts.add("tombstones dropped")
	}
	g.horizon = horizon
}

// client is a subscriber, with or without a connection.
type client struct {
	name  string
	slow  bool
	holds bool // it applies events when an id comes, and drops those without one
	conn  *streamtest.Connection
	at    *gateway
	last  *streamtest.Mark // its last id
	left  bool             // it hung up
	held  streamtest.State // what it held then, unless that is what it held at its last id
	ahead uint64           // the head of the replica that it got that from
}

func (c *client) up() bool { return c.conn != nil && c.conn.Live() }

// dial connects a client from an id, with the state that it held at that id or,
// after its last connection, the state that it holds.
func (w *world) dial(c *client, g *gateway, from *streamtest.Mark, held streamtest.State) {
	c.at, c.last, c.held, c.left = g, from, nil, false
	c.conn = w.history.Connect(g.watch, streamtest.Dial{
		Client: c.name, Replica: g.replica(), Slow: c.slow, From: from, Begin: held, Ahead: c.ahead,
	})
	if from != nil && from.Position.Partial() {
		w.eventCounts.add("resumes in mid-snapshot or mid-catch-up")
	}
}

func (w *world) hangUp(c *client) {
	if c.conn == nil || c.left {
		return
	}
	w.note(c)
	w.countOutcome(c.conn)
	c.left = true
	if !c.holds {
		c.held = c.conn.State()
		c.ahead = max(c.ahead, c.at.watch.Snapshot().Revision())
	}
	c.conn.Close()
}

// step reads one flush of a client and keeps its id.
func (w *world) step(c *client) bool {
	ok := c.conn.Step()
	w.note(c)
	return ok
}

// note keeps the ids of a connection.
func (w *world) note(c *client) {
	for _, m := range c.conn.Marks() {
		if c.last = m; !w.seen[m.Position] {
			w.seen[m.Position] = true
			w.marks = append(w.marks, m)
		}
	}
}

// settle lets everything come to rest, and lets the fast readers read.
func (w *world) settle() {
	synctest.Wait()
	for _, g := range w.gateways {
		g.look()
	}
	for _, c := range w.clients {
		if c.up() && !c.slow {
			for w.step(c) {
			}
		}
	}
}

// readAll lets the slow readers catch up as well.
func (w *world) readAll() {
	for _, c := range w.clients {
		for c.up() && w.step(c) {
		}
	}
}

// advance lets seconds pass, one by one.
func (w *world) advance(seconds int) {
	for range seconds {
		<-time.After(time.Second)
		w.settle()
		if w.beats++; w.beats%int(worldHeartbeat/time.Second) == 0 {
			w.beat()
		}
	}
}

func (w *world) beat() {
	for _, c := range w.clients {
		if c.up() && !c.slow {
			c.conn.Beat()
			w.note(c)
		}
	}
}

// level brings both gateways to where the upstream is.
func (w *world) level() {
	for _, g := range w.gateways {
		g.endpoint.Refuse(nil)
		g.endpoint.CutSnapshot(-1)
		g.endpoint.Move()
		g.endpoint.Catch(-1)
		g.endpoint.Say(stream.InSync, "")
	}
	w.settle()
	w.advance(2 + int(worldBehindTimeout/time.Second))
	for _, g := range w.gateways {
		if v := g.watch.Snapshot(); v.Revision() != w.upstream.Revision() || v.Status().State != stream.InSync {
			w.t.Fatalf("gateway %s does not come to the upstream's revision %d: it is at %v, %v", g.name,
				w.upstream.Revision(), v.Position(), v.Status())
		}
	}
}

// finish tries every id, while the replicas are where they are and again when
// everything has come to rest for good, and checks.
func (w *world) finish() {
	w.partReplicas()
	w.tryEveryID()
	w.readAll()
	w.advance(4)
	w.readAll()
	w.level()
	w.tryEveryID()
	for _, c := range w.clients {
		if !c.up() {
			w.dial(c, w.gateways[0], c.last, c.held)
		}
	}
	w.advance(6)
	w.readAll()
	w.history.Settled = true
	for _, g := range w.gateways {
		for ; g.starts > 0; g.starts-- {
			w.history.Freshness[g.replica()] = g.endpoint.Freshness()
		}
	}
	w.check()
	w.count()
}

// partReplicas makes one replica faster than the other, with a subscriber that gets
// ids there that are ahead of the other.
func (w *world) partReplicas() {
	fast := w.gateways[0]
	fast.endpoint.Catch(-1)
	c := &client{name: "ahead"}
	w.clients = append(w.clients, c)
	w.dial(c, fast, nil, nil)
	for range 3 {
		w.upstream.Commit(1, streamtest.Write{Key: "a/1", Value: w.value()})
		fast.endpoint.Catch(-1)
		w.settle()
	}
}

// tryEveryID resumes from each id ever sent, at each gateway.
func (w *world) tryEveryID() {
	marks := w.marks
	if w.heavy {
		marks = marks[max(0, len(marks)-10):] // each is many megabytes
	}
	for i, m := range marks {
		for _, g := range w.gateways {
			c := &client{name: fmt.Sprintf("try %d", i), slow: true}
			w.dial(c, g, m, nil)
			w.clients = append(w.clients, c)
			w.eventCounts.add("resumes tried at the end")
		}
	}
}

func (w *world) check() {
	err := streamtest.CheckAll(w.history)
	for _, c := range w.history.Connections() {
		if err == nil {
			err = c.CheckBytes()
		}
	}
	if err == nil {
		return
	}
	for _, c := range w.history.Connections() {
		if strings.Contains(err.Error(), c.String()) {
			w.describe(c)
		}
	}
	w.t.Fatalf("%v", err)
}

// describe logs a connection, and the one that its id came from.
func (w *world) describe(c *streamtest.Connection) {
	for _, giver := range w.history.Connections() {
		if slices.Contains(giver.Marks(), c.From) {
			w.t.Logf("the id was given by %s", giver.Describe())
		}
	}
	w.t.Logf("%s", c.Describe())
}

func (w *world) close() {
	for _, g := range w.gateways {
		g.stop()
	}
}
