package gateway

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestSwitchHistories plays random histories of streams whose clients may see something else
// again and again, and checks them against a model of what each may see now.
func TestSwitchHistories(t *testing.T) {
	histories := gatewaytest.Length(12, 3)
	counts := map[string]int{}
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSwitchWorld(t, seed, counts).play() })
			counts["histories"]++
		})
	}
	t.Log(counts)
	if testing.Short() || counts["histories"] < histories {
		return
	}
	for _, what := range []string{"switches", "withdrawn", "revoked"} {
		if counts[what] == 0 {
			t.Errorf("no history has %s", what)
		}
	}
}

// switchWorld is one history.
type switchWorld struct {
	// Static after construction.
	t       *testing.T
	random  *rand.Rand
	deletes streamtest.DeleteRevisions
	guard   *guard
	padding string
	began   time.Time

	mu         sync.Mutex // guards the following fields, and the clients
	watches    map[string]*switchWatch
	parts      []*grantedPart
	gateways   []*switchGateway
	principals []*switchPrincipal
	clients    []*switchClient
	streams    []*switchStream
	order      int
	markers    int
	epochs     int
	revocation uint64
	counts     map[string]int
	broken     []error
	trace      []string
}

// switchWatch is the upstream of a watch.
type switchWatch struct {
	*streamtest.Upstream
	served []string // the names of orders
}

// switchGateway is a gateway, with the rules that it has now.
type switchGateway struct {
	*rig
	world     *switchWorld
	name      string
	endpoints map[string]*streamtest.Replica
	sets      map[string]int
	changed   time.Time // its rules
}

// switchPrincipal is somebody, with the groups of their newest token.
type switchPrincipal struct {
	name    string
	groups  []string
	revoked bool
	at      time.Time // when that changed
}

func (p *switchPrincipal) header(w *switchWorld) string {
	return w.guard.asJWT(p.name, 24*time.Hour, p.groups...)
}

var groupSets = [][]string{{"red"}, {"blue"}, {"red", "blue"}, {}}

func newSwitchWorld(t *testing.T, seed uint64, counts map[string]int) *switchWorld {
	w := &switchWorld{
		t: t, random: rand.New(rand.NewPCG(seed, 29)), guard: newGuard(t), began: time.Now(), counts: counts,
		padding: strings.Repeat("x", []int{0, 3_000, 30_000}[seed%3]), watches: map[string]*switchWatch{},
		revocation: 1,
	}
	if seed%4 == 3 {
		w.deletes = streamtest.DeleteRevisions(seed / 4 % 3)
	}
	for _, name := range []string{"a", "b"} {
		w.watches[name] = &switchWatch{Upstream: streamtest.NewUpstream("e0", w.deletes)}
		for set := range ruleSets {
			for _, groups := range groupSets {
				w.part(name, set, groups)
			}
		}
	}
	w.addGateway()
	if w.deletes == streamtest.OwnRevision {
		w.addGateway() // elsewhere a second replica may repeat deletes: they share a position
	}
	for _, name := range []string{"ann", "bob"} {
		w.principals = append(w.principals, &switchPrincipal{name: name, groups: groupSets[w.pick(3)]})
	}
	for i := range 6 {
		w.clients = append(w.clients, &switchClient{world: w, name: fmt.Sprint("client ", i), who: w.principals[i%2], held: i%3 == 0, gzip: i%4 == 1})
	}
	return w
}

func (w *switchWorld) addGateway() {
	g := &switchGateway{world: w, name: fmt.Sprint("G", len(w.gateways)), endpoints: map[string]*streamtest.Replica{}, sets: map[string]int{"a": w.pick(len(ruleSets) - 1), "b": w.pick(len(ruleSets) - 1)}}
	g.rig = newRig(w.t, g.config(), "revocations")
	g.Prime("revocations", 1)
	for _, name := range []string{"a", "b"} {
		g.endpoints[name] = w.watches[name].Replica()
		if _, err := g.Registry.Add(watch.Config{
			Name: name, Source: g.endpoints[name], StaleAfter: time.Second, Logger: slog.New(slog.DiscardHandler),
			History: log.Retention{MaxDeletes: 20},
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.gateways = append(w.gateways, g)
}

// config returns the configuration with the rules of now.
func (g *switchGateway) config() Config {
	a := g.world.guard.access(nil)
	a.Policy = compileRules(g.world.t, g.sets)
	a.Revoked = "revocations"
	return Config{Access: a, StreamSettings: StreamSettings{MaxAge: 5 * time.Minute, Drain: -1}}
}

// grants is what members of some groups may see of a watch by the rules of now; nil: nothing.
func (g *switchGateway) grants(watch string, groups []string) *grantedPart {
	return g.world.part(watch, g.sets[watch], groups)
}

func (w *switchWorld) pick(n int) int          { return w.random.IntN(n) }
func (w *switchWorld) rarely(n int) bool       { return w.pick(n) == 0 }
func (w *switchWorld) gateway() *switchGateway { return w.gateways[w.pick(len(w.gateways))] }
func (w *switchWorld) name() string            { return []string{"a", "b"}[w.pick(2)] }

func (w *switchWorld) say(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8v  %s", time.Since(w.began).Round(time.Millisecond), fmt.Sprintf(format, args...)))
}

// play plays the history, and checks it.
func (w *switchWorld) play() {
	for range 3 {
		w.write("a")
		w.write("b")
	}
	for _, g := range w.gateways {
		for _, e := range g.endpoints {
			e.Catch(-1)
		}
	}
	for range 140 {
		w.settle()
		w.mu.Lock()
		w.act()
		w.mu.Unlock()
	}
	w.finish()
	for _, p := range w.parts {
		p.history.Truth, p.history.Settled = w.truth(p), true
		if err := streamtest.CheckAll(p.history); err != nil {
			w.broken = append(w.broken, fmt.Errorf("%v: %w", p, err))
		}
	}
	if err := errors.Join(w.broken...); err != nil {
		w.t.Errorf("%v\n%s", err, strings.Join(w.trace, "\n"))
	}
}

// truth returns the history of the upstream as a part has it.
func (w *switchWorld) truth(p *grantedPart) *streamtest.Truth {
	u := w.watches[p.watch]
	if p.definition == nil {
		return u.Truth()
	}
	return u.Truth().Narrow(p.name, p.see, u.served...)
}

// settle waits until nothing more happens without time.
func (w *switchWorld) settle() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve()
}

// serve notes the names of the orders that gateways serve.
func (w *switchWorld) serve() {
	for name, u := range w.watches {
		for _, g := range w.gateways {
			a, _ := g.Registry.Watch(name)
			if epoch := a.Snapshot().Epoch(); epoch != "" && !slices.Contains(u.served, epoch) {
				u.served = append(u.served, epoch)
			}
		}
	}
}

// act does something at random. The mutex is held.
func (w *switchWorld) act() {
	switch n := w.pick(34); {
	case n < 6:
		w.write(w.name())
	case n < 8:
		w.gateway().endpoints[w.name()].Catch(w.pick(4))
	case n < 9:
		w.disturb()
	case n < 11:
		w.sleep(time.Duration(w.random.Int64N(int64(6 * time.Second))))
	case n < 12:
		w.sleep(time.Duration(w.random.Int64N(int64(50 * time.Second))))
	case n < 16:
		w.reload()
	case n < 18:
		w.renew()
	case n < 21:
		w.connect()
	case n < 23:
		w.slow()
	case n < 25:
		w.hangUp()
	case n < 29:
		w.midway()
	case n < 33:
		w.away()
	default:
		w.revoke()
	}
}

func (w *switchWorld) sleep(d time.Duration) {
	w.mu.Unlock()
	defer w.mu.Lock()
	time.Sleep(d)
}

func (w *switchWorld) write(name string) {
	var writes []streamtest.Write
	for key := range 24 {
		if w.rarely(5) {
			writes = append(writes, streamtest.Write{
				Key: fmt.Sprintf("%c/%d%s", "ab"[key%2], key, streamtest.Marker(key)), Value: w.value(), Delete: w.rarely(4),
			})
		}
	}
	if len(writes) > 0 {
		w.watches[name].Commit(1+w.random.Uint64N(2), writes...)
		w.say("%s is at %d, %d writes", name, w.watches[name].Revision(), len(writes))
	}
	if w.rarely(2) {
		for _, g := range w.gateways {
			g.endpoints[name].Catch(-1)
		}
	}
}

func (w *switchWorld) value() string {
	marker := func() string { w.markers++; return streamtest.Marker(100 + w.markers) }
	if w.rarely(12) {
		return fmt.Sprintf("%q", "no object "+marker())
	}
	return fmt.Sprintf(`{"x":"%s%s","team":"%s","n":%d,"y":["%s"]}`, marker(), w.padding, []string{"red", "blue", "green"}[w.pick(3)], w.pick(4), marker())
}

// disturb makes an upstream fail, or restores it from a backup.
func (w *switchWorld) disturb() {
	g, name := w.gateway(), w.name()
	e := g.endpoints[name]
	w.say("%s is disturbed at %s", name, g.name)
	switch w.pick(6) {
	case 0:
		e.Disconnect(streamtest.ErrCut)
	case 1:
		e.Compact()
		e.Disconnect(nil)
	case 2:
		e.Say(stream.Stale, "far behind")
		w.sleep(time.Second)
		e.Say(stream.InSync, "")
	case 3:
		e.CutSnapshot(w.pick(4))
		e.Disconnect(streamtest.ErrCut)
	case 4:
		e.FallBack(w.pick(3))
	case 5:
		w.epochs++
		w.watches[name].Restore(fmt.Sprint("e", w.epochs), w.watches[name].Revision()/2)
		e.Move()
	}
}

// reload puts other rules into effect, at one gateway or at all, once or several times in a row.
func (w *switchWorld) reload() {
	sets := map[string]int{"a": w.pick(len(ruleSets)), "b": w.pick(len(ruleSets))}
	back := w.rarely(2)
	for _, g := range w.gateways {
		if w.rarely(4) {
			continue
		}
		before := g.sets
		for range 1 + w.pick(2) {
			next := map[string]int{"a": g.sets["a"], "b": g.sets["b"]}
			name := w.name()
			next[name] = sets[name]
			if w.rarely(3) {
				next = sets
			}
			g.reload(next)
			if w.rarely(2) {
				w.yield()
			}
		}
		if back {
			g.reload(before)
		}
	}
}

// yield lets others go on, without waiting until they have nothing to do.
func (w *switchWorld) yield() {
	w.sleep(time.Duration(w.random.Int64N(int64(200 * time.Millisecond))))
}

func (g *switchGateway) reload(sets map[string]int) {
	w := g.world
	w.say("%s gets the rules %v", g.name, sets)
	for _, s := range w.streams {
		if s.at == g && !s.ended {
			w.leaves(s, sets, s.groups)
		}
	}
	g.sets, g.changed = sets, time.Now()
	c := g.config()
	w.mu.Unlock()
	defer w.mu.Lock()
	reloadWith(w.t, g.gateway, c)
}

// leaves notes which parts a stream is about to switch from.
func (w *switchWorld) leaves(s *switchStream, sets map[string]int, groups []string) {
	s.moved = time.Now()
	loses := slices.DeleteFunc([]string{"a", "b"}, func(name string) bool { return w.part(name, sets[name], groups) != nil })
	if len(s.lost) == 0 { // otherwise it ends already
		s.lost = loses
	}
}

// renew gives somebody a token with other groups, and some of their streams.
func (w *switchWorld) renew() {
	p := w.principals[w.pick(len(w.principals))]
	p.groups = groupSets[w.pick(len(groupSets))]
	w.say("%s is in %v", p.name, p.groups)
	for _, s := range w.streams {
		if s.ended || s.of.who != p || s.id == "" || w.rarely(3) {
			continue
		}
		w.say("%s renews its stream", s.of.name)
		w.leaves(s, s.at.sets, p.groups)
		before := s.groups
		s.groups = p.groups
		header := p.header(w)
		w.mu.Unlock()
		x := s.at.request("PUT", "/v1/streams/"+s.id, header)
		w.mu.Lock()
		if x.StatusCode != http.StatusNoContent {
			s.groups = before
			if x.StatusCode != http.StatusNotFound && x.StatusCode != http.StatusUnauthorized {
				s.broke("renewed with status %d", x.StatusCode)
			}
		}
	}
}

// connect opens the stream of a client that has none: with what it had, with any id that it was
// ever sent, or with nothing.
func (w *switchWorld) connect() {
	c := w.clients[w.pick(len(w.clients))]
	if c.stream != nil {
		return
	}
	came := c.last
	g := w.gateway()
	switch {
	case w.rarely(5):
		came = nil
	case len(c.ids) > 0 && w.rarely(4):
		came = c.ids[w.pick(len(c.ids))]
	}
	c.open(g, came)
}

// refused checks an answer that is no stream.
func (w *switchWorld) refused(s *switchStream, res *http.Response) {
	text, _ := io.ReadAll(res.Body)
	res.Body.Close()
	s.ended, s.of.stream = true, nil
	for _, f := range s.follows {
		f.end()
	}
	want := http.StatusNotFound
	if s.of.who.revoked {
		want = http.StatusUnauthorized
	}
	if res.StatusCode != want || want == http.StatusNotFound && s.at.grants("a", s.groups) != nil && s.at.grants("b", s.groups) != nil {
		s.broke("is answered with %s: %s", res.Status, text)
	}
	if strings.Contains(string(text), "Q") {
		s.broke("the answer holds %s", text)
	}
}

// mayFollow checks that an id is of a part that the client may see now, or might until a moment
// ago.
func (w *switchWorld) mayFollow(f *switchFollow, part *grantedPart) {
	s := f.stream
	now := s.at.grants(f.watch, s.groups)
	if part != now && !s.slow && time.Since(s.moved) > 2*time.Second+slack() {
		s.broke("it is sent %v, and may see %v", part, now)
	}
}

// ended checks the end of a stream.
func (w *switchWorld) ended(s *switchStream) {
	if s.goodbye != "revoked" {
		return
	}
	w.counts["revoked"]++
	if s.of.who.revoked {
		return
	}
	for _, f := range s.follows {
		if !slices.Contains(s.lost, f.watch) {
			continue
		}
		if w.counts["withdrawn"]++; len(f.state) > 0 {
			s.broke("it keeps %d resources of %s, of which it may see nothing", len(f.state), f.watch)
		}
	}
}

func (w *switchWorld) slow() {
	c := w.clients[w.pick(len(w.clients))]
	if c.stream != nil {
		c.stream.stall(w.rarely(2))
	}
}

// stall makes the client stop reading, or go on.
func (s *switchStream) stall(stop bool) {
	if stop {
		s.slow = true
		for _, f := range s.follows {
			if f.conn != nil {
				f.conn.Slow = true
			}
		}
		select {
		case s.gate <- struct{}{}:
			s.of.world.say("%s reads nothing", s.of.name)
		default:
		}
		return
	}
	select {
	case <-s.gate:
		s.of.world.say("%s reads on", s.of.name)
	default:
	}
}

func (w *switchWorld) hangUp() {
	s := w.clients[w.pick(len(w.clients))].stream
	if s == nil {
		return
	}
	if s.left = w.pick(5); s.left > 0 {
		w.say("%s hangs up after %d frames", s.of.name, s.left)
		return
	}
	w.say("%s hangs up", s.of.name)
	s.cancel()
}

// midway lets a client that does not read be told to follow one part after the other.
func (w *switchWorld) midway() {
	s := w.clients[w.pick(len(w.clients))].stream
	if s == nil {
		return
	}
	for range 1 + w.pick(3) {
		s.pause = 1 + w.pick(12)
		s.stall(false)
		s.at.reload(map[string]int{"a": w.pick(len(ruleSets) - w.pick(2)), "b": w.pick(len(ruleSets) - w.pick(2))})
		if w.rarely(2) {
			w.write(w.name())
		}
		w.yield()
	}
	s.pause = -1
	if s.stall(false); w.rarely(3) {
		s.left = w.pick(8)
	}
}

// away lets a client be cut off, perhaps between the events of a flush, and come back once it may
// see something else.
func (w *switchWorld) away() {
	c := w.clients[w.pick(len(w.clients))]
	s := c.stream
	if s == nil {
		return
	}
	if s.left = w.pick(6); s.left == 0 {
		s.cancel()
	}
	w.write("a")
	w.write("b")
	w.yield()
	if !s.ended {
		s.cancel()
		w.yield()
	}
	before := s.at.sets
	for range 1 + w.pick(2) {
		s.at.reload(map[string]int{"a": w.pick(len(ruleSets) - 1), "b": w.pick(len(ruleSets) - 1)})
	}
	if w.rarely(4) {
		s.at.reload(before)
	}
	w.write(w.name())
	if w.yield(); c.stream == nil {
		c.open(s.at, c.last)
	}
}

// revoke revokes somebody everywhere, or ends that.
func (w *switchWorld) revoke() {
	p := w.principals[w.pick(len(w.principals))]
	p.revoked, p.at = !p.revoked, time.Now()
	w.revocation++
	w.say("%s is revoked: %t", p.name, p.revoked)
	at, revoked, key := w.revocation, p.revoked, "subject/"+accesstest.URL+"/"+p.name
	w.mu.Unlock()
	defer w.mu.Lock()
	for _, g := range w.gateways {
		g.Do("revocations", func(sink stream.Sink) error {
			if revoked {
				return errors.Join(sink.Upsert(gatewaytest.Resource(key, at, "{}")), sink.Commit(at))
			}
			return errors.Join(sink.Delete(key, at), sink.Commit(at))
		})
	}
}

// finish waits until everything is at rest.
func (w *switchWorld) finish() {
	w.settle()
	w.mu.Lock()
	for _, p := range w.principals {
		if p.revoked {
			w.principals[0], w.principals[1] = p, w.principals[(slices.Index(w.principals, p)+1)%2]
		}
	}
	for _, s := range w.streams {
		if !s.ended {
			s.stall(false)
		}
	}
	for _, g := range w.gateways {
		for _, e := range g.endpoints {
			streamtest.Heal(e)
		}
	}
	w.mu.Unlock()
	w.settle()
	time.Sleep(30 * time.Second)
	w.settle()
	w.mu.Lock()
	for _, c := range w.clients {
		if c.stream == nil {
			w.settleClient(c)
		}
	}
	w.mu.Unlock()
	time.Sleep(time.Minute)
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.streams {
		s.atRest()
	}
}

// settleClient opens a last stream of a client.
func (w *switchWorld) settleClient(c *switchClient) {
	g := w.gateway()
	c.open(g, c.last)
}

// atRest checks what an open stream has in the end.
func (s *switchStream) atRest() {
	if s.ended {
		return
	}
	w := s.of.world
	for _, f := range s.follows {
		if f.flush != nil {
			f.put()
		}
		part := s.at.grants(f.watch, s.groups)
		if part == nil {
			s.broke("it goes on, and may see nothing of %s", f.watch)
			continue
		}
		_, last := w.truth(part).Newest()
		if f.part != part {
			s.broke("in the end it is sent %v, and may see %v", f.part, part)
		} else if diff := f.state.Diff(last.After); diff != "" {
			s.broke("in the end it has of %v: %s", part, diff)
		}
		if f.conn != nil {
			f.conn.Read = time.Now()
		}
	}
}
