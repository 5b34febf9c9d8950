package views

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// countWorld is an upstream, replicas that count it, and readers of the counts, which move from
// replica to replica.
type countWorld struct {
	t        *testing.T
	random   *rand.Rand
	deletes  streamtest.DeleteRevisions
	upstream *streamtest.ViewUpstream
	selects  *view.Definition // nil: all is counted
	see      func(stream.Resource) (stream.Resource, bool)
	grouping *view.Grouping
	replicas []*replica
	readers  []*countClient
	marks    []countMark // all that readers were given
	resumed  int
}

// countClient is a client that keeps the state of a count.
type countClient struct {
	name  string
	at    *replica
	sub   *log.Subscription
	batch log.Batch
	state map[string]string
	last  *stream.Position
	held  map[string]string // the state at last
	reset bool              // a snapshot is under way
	told  stream.State      // the freshness; 0: it was not told
}

// countMark is a position, and the state of a reader that has it.
type countMark struct {
	at   stream.Position
	held map[string]string
}

// TestCountsAgainstTheModel lets resources come, go and change, and compares each state that a
// reader has seen with counts of all that the upstream had at that revision.
func TestCountsAgainstTheModel(t *testing.T) {
	t.Parallel()
	resumed := 0
	for _, seed := range seeds(40, 10) {
		for _, deletes := range []streamtest.DeleteRevisions{
			streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen, streamtest.Vanishing,
		} {
			t.Run(fmt.Sprint(seed, "/", deletes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newCountWorld(t, seed, deletes)
					w.run()
					resumed += w.resumed
				})
			})
		}
	}
	if resumed < 50 {
		t.Errorf("only %d readers resumed", resumed)
	}
}

func newCountWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions) *countWorld {
	w := &countWorld{t: t, random: rand.New(rand.NewPCG(seed, 11)), deletes: deletes}
	w.upstream = streamtest.NewViewUpstream(w.random, deletes)
	w.upstream.Marked = seed%3 == 0
	by, sum := [][]string{{"team"}, {"n"}, {"team,n"}, {"missing"}, {"x,n"}}[seed%5], []string{"", "n"}[seed/5%2]
	var err error
	if w.grouping, err = view.ParseGrouping(by, sum); err != nil {
		t.Fatal(err)
	}
	w.see = func(r stream.Resource) (stream.Resource, bool) { return r, true }
	switch w.random.IntN(4) {
	case 0:
	case 1: // what somebody may see, in code that has nothing to do with views
		p := drawPolicy(w.random)
		w.selects, w.see = p.definition(t), p.see
	default:
		d := definition(t, []view.Params{{Prefix: "a/"}, {Filter: `value.n > 1`}}[w.random.IntN(2)])
		w.selects, w.see = d, func(r stream.Resource) (stream.Resource, bool) {
			in, err := d.Matches(r)
			return r, in && err == nil
		}
	}
	for _, name := range []string{"A", "B"} {
		w.start(name)
	}
	for i := range 5 {
		c := &countClient{name: fmt.Sprint("reader ", i)}
		w.readers = append(w.readers, c)
		w.dial(c, nil)
	}
	return w
}

func (w *countWorld) start(name string) {
	r := &replica{name: name, endpoint: w.upstream.Replica(), registry: watch.NewRegistry()}
	w.t.Cleanup(r.registry.Close)
	backoff := watch.Backoff{Min: 100 * time.Millisecond, Max: 100 * time.Millisecond}
	var err error
	if r.base, err = r.registry.Add(watch.Config{
		Name: "w", Source: r.endpoint, Backoff: backoff, BehindTimeout: time.Hour,
		History: log.Retention{MaxDeletes: []int{3, 20, 1000}[w.random.IntN(3)]},
	}); err != nil {
		w.t.Fatal(err)
	}
	r.views = New(Config{Linger: []time.Duration{time.Millisecond, time.Second, 2 * time.Second}[w.random.IntN(3)]})
	w.t.Cleanup(r.views.Close)
	w.replicas = append(w.replicas, r)
}

// dial connects a reader, with a position that it has or without.
func (w *countWorld) dial(c *countClient, from *stream.Position) {
	if c.sub != nil {
		c.sub.Close()
	}
	c.at = w.replicas[w.random.IntN(len(w.replicas))]
	w.connect(c, from)
}

// connect connects a reader to the replica where it is.
func (w *countWorld) connect(c *countClient, from *stream.Position) {
	of := c.at.base
	if w.selects != nil {
		var err error
		if of, err = c.at.views.Open(of, w.selects, Request{Client: c.name}); err != nil {
			w.t.Fatal(err)
		}
	}
	counts, err := c.at.views.Count(of, w.grouping, Request{Client: c.name})
	if err != nil {
		w.t.Fatal(err)
	}
	c.state, c.last, c.told = map[string]string{}, from, 0
	if from != nil {
		c.state = maps.Clone(c.held)
	}
	c.sub = counts.Subscribe(log.SubscribeOptions{Resume: from})
}

func (w *countWorld) run() {
	for i := range 150 {
		if i == 75 {
			w.start("late")
		}
		r := w.replicas[w.random.IntN(len(w.replicas))]
		switch n := w.random.IntN(20); {
		case n < 14:
			time.Sleep(w.upstream.Act(r.endpoint))
		case n < 15:
			w.disturb(r)
		default:
			c := w.readers[w.random.IntN(len(w.readers))]
			time.Sleep(time.Duration(w.random.IntN(3)) * time.Second)
			w.dial(c, c.last)
		}
		synctest.Wait()
		w.read()
	}
	for _, r := range w.replicas {
		streamtest.Heal(r.endpoint)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	w.read()
	states := w.upstream.Truth().States()
	want := w.model(states[len(states)-1].Resources)
	w.tryAll()
	for _, c := range w.readers {
		if !maps.Equal(c.state, want) {
			w.t.Errorf("broke Fresh: in the end, %s has %v, want %v", c.name, c.state, want)
		}
		if c.told != 0 && c.told != stream.InSync {
			w.t.Errorf("broke Fresh: in the end, %s was last told %v", c.name, c.told)
		}
		c.sub.Close()
	}
	for _, r := range w.replicas {
		r.views.Close()
		if held := r.views.holds(); held != 0 {
			w.t.Errorf("in the end, %d bytes are counted", held)
		}
	}
}

// tryAll resumes from each position at each replica.
func (w *countWorld) tryAll() {
	for _, r := range w.replicas {
		for i, m := range w.marks {
			c := &countClient{name: fmt.Sprint("again ", i), at: r, held: m.held}
			w.connect(c, &m.at)
			w.readers = append(w.readers, c)
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	w.read()
}

// disturb does something seldom.
func (w *countWorld) disturb(r *replica) {
	switch w.random.IntN(4) {
	case 3:
		r.endpoint.Say(stream.Stale, "far behind")
		synctest.Wait()
		w.read()
		r.endpoint.Say(stream.InSync, "")
	case 0:
		r.endpoint.Compact()
		r.endpoint.Disconnect(nil)
	case 1:
		w.conflate(r)
	default:
		if w.deletes == streamtest.Vanishing {
			w.upstream.Vanish(w.upstream.Key(w.random.IntN(len(streamtest.ViewKeys))))
			r.endpoint.Poll()
		}
	}
}

// conflate lets a replica see a few changes of one resource as one, and the others each of them.
func (w *countWorld) conflate(r *replica) {
	if w.deletes == streamtest.OwnRevision {
		r.endpoint.Conflate()
	}
	r.endpoint.Disconnect(nil)
	key := w.upstream.Key(w.random.IntN(len(streamtest.ViewKeys)))
	for n := range 3 {
		w.upstream.Commit(1, streamtest.Write{Key: key, Value: fmt.Sprintf(`{"x":"%d","team":"t%d","n":%d}`, w.random.IntN(1000), n, 2+n)})
		for _, other := range w.replicas {
			if other != r {
				other.endpoint.Catch(-1)
			}
		}
		synctest.Wait()
		w.read()
	}
	r.endpoint.Catch(-1)
	time.Sleep(time.Second)
}

// read lets the readers read what there is, and checks each state that they may rely on.
func (w *countWorld) read() {
	for _, c := range w.readers {
		for c.sub.Next(&c.batch) {
			for e := range c.batch.Events() {
				w.apply(c, e)
			}
			p, ok := c.sub.Position()
			if c.batch.Boundary() && ok && !p.Partial() && !c.reset {
				w.check(c, p)
				if c.last == nil || *c.last != p {
					w.marks = append(w.marks, countMark{p, maps.Clone(c.state)})
				}
				c.last, c.held = &p, maps.Clone(c.state)
			}
		}
	}
}

// apply applies an event, and checks what does not depend on the model.
func (w *countWorld) apply(c *countClient, e stream.Event) {
	switch e.Type {
	case stream.Reset:
		clear(c.state)
		c.reset = true
	case stream.EndOfSnapshot:
		c.reset = false
		if e.Resumed {
			w.resumed++
		}
		if e.Count != len(c.state) {
			w.t.Errorf("broke Consistent: %s has %d groups at the end of a snapshot of %d", c.name, len(c.state), e.Count)
		}
	case stream.Upsert:
		c.state[e.Resource.Key] = string(e.Resource.Value)
	case stream.Delete:
		delete(c.state, e.Resource.Key)
	case stream.StatusChange:
		c.told = e.State
	}
}

// check compares the state of a reader at a position with the counts of the upstream.
func (w *countWorld) check(c *countClient, at stream.Position) {
	numbered := w.deletes == streamtest.OwnRevision
	for _, s := range w.upstream.Truth().States() {
		if numbered && (s.Revision != at.Upserts || w.epoch(s.Epoch) != at.Epoch) {
			continue
		}
		if maps.Equal(w.model(s.Resources), c.state) {
			return
		}
		if numbered {
			w.t.Errorf("broke Consistent: %s has %v at %v of replica %s, want %v", c.name, c.state, at, c.at.name, w.model(s.Resources))
			return
		}
	}
	if numbered {
		w.t.Errorf("broke Consistent: %s has a state of %v of replica %s, which the upstream has not had", c.name, at, c.at.name)
	} else if w.deletes != streamtest.Vanishing {
		w.t.Errorf("broke Consistent: %s has %v at %v of replica %s, which the upstream has not had", c.name, c.state, at, c.at.name)
	}
}

// epoch is the name of a revision order of the upstream in the counts.
func (w *countWorld) epoch(name string) string {
	name = stream.CanonicalEpoch(name)
	if w.selects != nil {
		name = w.selects.Epoch(name)
	}
	return w.grouping.Epoch(name)
}

// model counts resources in the plainest way.
func (w *countWorld) model(resources map[string]stream.Resource) map[string]string {
	type figures struct {
		count   int
		numbers []int
	}
	groups := map[string]*figures{}
	for _, r := range resources {
		r, seen := w.see(r)
		if !seen {
			continue
		}
		var v map[string]any
		_ = json.Unmarshal(r.Value, &v) // a value that is no object has no fields
		var parts []string
		for _, field := range w.grouping.By() {
			part, _ := json.Marshal(v[field])
			parts = append(parts, string(part))
		}
		key := "[" + strings.Join(parts, ",") + "]"
		if text, ok := v[w.grouping.By()[0]].(string); len(parts) == 1 && ok {
			key = text
		} else if len(parts) == 1 {
			key = parts[0]
		}
		if groups[key] == nil {
			groups[key] = &figures{}
		}
		groups[key].count++
		if n, ok := v[w.grouping.Sum()].(float64); ok {
			groups[key].numbers = append(groups[key].numbers, int(n))
		}
	}
	out := map[string]string{}
	for key, g := range groups {
		out[key] = fmt.Sprintf(`{"count":%d}`, g.count)
		if len(g.numbers) > 0 {
			sum := 0
			for _, n := range g.numbers {
				sum += n
			}
			out[key] = fmt.Sprintf(`{"count":%d,"sum":%d,"min":%d,"max":%d}`, g.count, sum, slices.Min(g.numbers), slices.Max(g.numbers))
		}
	}
	return out
}
