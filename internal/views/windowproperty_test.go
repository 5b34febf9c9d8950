package views

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// windowValues are values in ascending order. The last one is absent.
var windowValues = []string{"null", "false", "true", "-1e99", "-9007199254740993", "-9007199254740992", "-1", "0", "1", "1.5", "10", "9007199254740992", "9007199254740993", `"a"`, `"b"`, "[]", ""}

// windowRow is a resource of the model of a window.
type windowRow struct {
	key  string
	n, m int  // indices of its values
	red  bool // it is of the team red
}

// windowCase is a window, and how the model sorts and selects.
type windowCase struct {
	params  view.Params
	selects func(windowRow) bool
	compare func(a, b windowRow) int

	limit, offset int        // drawn
	after         *windowRow // in place of an offset; nil: there is none
}

// rank compares two values of a column.
func rank(a, b int, descending bool) int {
	absent := len(windowValues) - 1
	if descending && a != absent && b != absent {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

func everything(windowRow) bool { return true }

var windowCases = []windowCase{
	{params: view.Params{Order: "n"}, selects: everything, compare: func(a, b windowRow) int { return rank(a.n, b.n, false) }},
	{params: view.Params{Order: "-n,m"}, selects: everything, compare: func(a, b windowRow) int {
		return cmp.Or(rank(a.n, b.n, true), rank(a.m, b.m, false))
	}},
	{params: view.Params{Order: "-m", Filter: `value.team == "red"`}, selects: func(r windowRow) bool { return r.red }, compare: func(a, b windowRow) int { return rank(a.m, b.m, true) }},
	{params: view.Params{Order: "m,n", Fields: []string{"n"}}, selects: everything, compare: func(a, b windowRow) int { return rank(a.n, b.n, false) }},
	{params: view.Params{Order: "n", Filter: `value.exists(k, k == "team" && value[k] == "red")`}, selects: func(r windowRow) bool { return r.red }, compare: func(a, b windowRow) int { return rank(a.n, b.n, false) }},
	windowRules[0],
}

// windowRules are windows of the same order under rules that replace one another.
var windowRules = []windowCase{
	{params: view.Params{Order: "-n", Grants: []view.Grant{{Filter: `value.team == "red"`, Fields: []string{"n"}}}}, selects: func(r windowRow) bool { return r.red }, compare: func(a, b windowRow) int { return rank(a.n, b.n, true) }},
	{params: view.Params{Order: "-n", Grants: []view.Grant{{Filter: `value.team == "red"`, Fields: []string{"m"}}}}, selects: func(r windowRow) bool { return r.red }, compare: func(a, b windowRow) int { return 0 }},
	{params: view.Params{Order: "-n", Grants: []view.Grant{{Filter: `value.team == "blue"`}}}, selects: func(r windowRow) bool { return !r.red }, compare: func(a, b windowRow) int { return rank(a.n, b.n, true) }},
}

// windowState is a state of the upstream.
type windowState map[string]windowRow

// windowAbout is what a window says besides its resources.
type windowAbout struct{ total, before int }

// window returns the keys of a window in a state, and what it says besides.
func (c windowCase) window(s windowState) (keys []string, about windowAbout) {
	rows := slices.Collect(maps.Values(s))
	rows = slices.DeleteFunc(rows, func(r windowRow) bool { return !c.selects(r) })
	place := func(a, b windowRow) int { return cmp.Or(c.compare(a, b), strings.Compare(a.key, b.key)) }
	slices.SortFunc(rows, place)
	about = windowAbout{len(rows), min(c.offset, len(rows))}
	if c.after != nil {
		about.before = len(slices.DeleteFunc(slices.Clone(rows), func(r windowRow) bool { return place(r, *c.after) > 0 }))
	}
	rows = rows[about.before:]
	for _, r := range rows[:min(c.limit, len(rows))] {
		keys = append(keys, r.key)
	}
	slices.Sort(keys)
	return keys, about
}

// windowWorld is an upstream, two replicas, and readers of windows.
type windowWorld struct {
	t        *testing.T
	random   *rand.Rand
	upstream *streamtest.Upstream
	replicas []*fixture
	states   map[uint64][]windowState // by revision: several where deletes have none
	now      windowState
	values   map[string]string // of now
	revision uint64
	padding  string // of values, so that readers pause within a walk
	readers  []*windowReader
	resumed  int
	moves    bool // readers move. The windows that they leave are kept for a while, so that together they are nearly all of the order
	moved    int  // moves with which a reader was sent the difference only
}

// windowReader holds back what it reads until its position covers it.
type windowReader struct {
	windowCase
	world      *windowWorld
	definition *view.Definition
	sub        *subscriber
	held       map[string]string // what was covered
	pending    map[string]string
	position   *stream.Position
	whole      bool // the state is consistent
	wasWhole   bool

	fixture   *fixture          // at which it reads
	target    windowCase        // to which it is to move
	number    uint64            // of its last move
	keeps     bool              // that is under way, of a reader that had all of the former window
	revisions map[string]uint64 // of pending
}

func newWindowWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions, moves bool) *windowWorld {
	w := &windowWorld{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), upstream: streamtest.NewUpstream("e", deletes), moves: moves,
		states: map[uint64][]windowState{}, now: windowState{}, values: map[string]string{},
	}
	if seed%5 == 4 {
		w.padding = strings.Repeat("x", 30_000)
	}
	w.revision = w.upstream.Revision()
	w.remember()
	for range 2 {
		f := newFixtureOf(t, w.upstream, Config{}, watch.Config{})
		if seed%3 == 1 { // builders feed what has several windows
			f.views.mostFed = 3 * windowCosts
		}
		w.replicas = append(w.replicas, f)
	}
	for range 4 {
		c := windowCases[w.random.IntN(len(windowCases))]
		c.limit, c.offset = 1+w.random.IntN(5), w.random.IntN(3)*w.random.IntN(4)
		c.params.Limit, c.params.Offset = fmt.Sprint(c.limit), fmt.Sprint(c.offset)
		if w.random.IntN(2) == 0 {
			c.begin(t, w.row(fmt.Sprintf("k%d", w.random.IntN(12))))
		}
		w.readers = append(w.readers, &windowReader{
			windowCase: c, target: c, world: w, definition: definition(t, c.params), pending: map[string]string{}, revisions: map[string]uint64{},
		})
	}
	return w
}

// begin lets the window begin after a place.
func (c *windowCase) begin(t *testing.T, after windowRow) {
	c.after, c.offset, c.params.Offset = &after, 0, ""
	d := definition(t, c.params)
	r, err := d.Project(stream.Resource{Key: after.key, Value: []byte(after.value())})
	if err != nil { // it is hidden
		r.Value = []byte("null")
		c.after.n = len(windowValues) - 1
	}
	c.params.After = d.Cursor(string(d.AppendSortKey(nil, r)) + after.key)
}

// row draws a resource.
func (w *windowWorld) row(key string) windowRow {
	return windowRow{key: key, n: w.random.IntN(len(windowValues)), m: w.random.IntN(len(windowValues)), red: w.random.IntN(3) > 0}
}

// value is its value.
func (r windowRow) value() string {
	team := `"blue"`
	if r.red {
		team = `"red"`
	}
	value := `{"team":` + team
	if v := windowValues[r.n]; v != "" {
		value += `,"n":` + v
	}
	if v := windowValues[r.m]; v != "" {
		value += `,"m":` + v
	}
	return value + "}"
}

func (w *windowWorld) remember() {
	w.states[w.revision] = append(w.states[w.revision], maps.Clone(w.now))
}

// commit makes a transaction of some changes.
func (w *windowWorld) commit() {
	writes := map[string]streamtest.Write{}
	for range 1 + w.random.IntN(3) {
		key := fmt.Sprintf("k%d", w.random.IntN(12))
		if w.random.IntN(3) == 0 {
			writes[key] = streamtest.Write{Key: key, Delete: true}
			delete(w.now, key)
			continue
		}
		r := w.row(key)
		if was, had := w.now[key]; had && w.random.IntN(3) == 0 {
			r = was // which stays at its place
		}
		writes[key] = streamtest.Write{Key: key, Value: fmt.Sprintf(`%s,"x":"%d%s"}`, strings.TrimSuffix(r.value(), "}"), w.random.IntN(100), w.padding)}
		w.now[key], w.values[key] = r, writes[key].Value
	}
	var list []streamtest.Write
	for _, key := range slices.Sorted(maps.Keys(writes)) {
		list = append(list, writes[key])
	}
	w.revision = w.upstream.Commit(1, list...)
	w.remember()
}

func (w *windowWorld) run(steps int) {
	for range steps {
		f := w.replicas[w.random.IntN(len(w.replicas))]
		r := w.readers[w.random.IntN(len(w.readers))]
		switch n := w.random.IntN(20); {
		case n < 7:
			w.commit()
		case n < 11:
			f.endpoint.Catch(1 + w.random.IntN(4))
			synctest.Wait()
		case n == 11:
			f.endpoint.Disconnect(nil)
			synctest.Wait()
		case n == 12:
			time.Sleep(time.Duration(w.random.IntN(4000)) * time.Millisecond)
		case n < 15:
			r.connect(f)
		case n < 17 && w.moves:
			r.move()
		case n == 17 && r.target.params.Grants != nil:
			r.reform(f)
		default:
			r.read(1 + w.random.IntN(4))
		}
	}
	time.Sleep(10 * time.Second) // which ends each wait for an upstream
	for _, f := range w.replicas {
		f.endpoint.Catch(-1)
	}
	synctest.Wait()
	for _, r := range w.readers {
		r.finish()
	}
}

// connect follows the window at a replica, from where the reader was.
func (r *windowReader) connect(f *fixture) {
	if r.sub != nil {
		r.sub.Close()
	}
	w := f.open(r.definition, "c")
	r.fixture, r.windowCase, r.keeps = f, r.target, false
	r.pending, r.whole = maps.Clone(r.held), r.wasWhole
	if r.pending == nil {
		r.pending = map[string]string{}
	}
	if r.sub = subscribe(r.world.t, w, r.position); r.position != nil {
		r.whole = false
	}
}

// reform changes the rules under which the reader follows its window. It comes back with the position that it had.
func (r *windowReader) reform(f *fixture) {
	c := windowRules[r.world.random.IntN(len(windowRules))]
	c.limit, c.offset = r.target.limit, r.target.offset
	c.params.Limit, c.params.Offset = fmt.Sprint(c.limit), fmt.Sprint(c.offset)
	if r.target.after != nil {
		c.begin(r.world.t, r.world.row(r.target.after.key))
	}
	r.target, r.definition = c, definition(r.world.t, c.params)
	r.connect(f)
}

// read reads some flushes.
func (r *windowReader) read(flushes int) (more bool) {
	if r.sub == nil {
		return false
	}
	synctest.Wait()
	for range flushes {
		if !r.sub.Next(&r.sub.batch) {
			return false
		}
		for e := range r.sub.batch.Events() {
			r.apply(e)
		}
		p, placed := r.sub.Position()
		if !placed || r.sub.Uncovered() {
			continue
		}
		r.position, r.held, r.wasWhole = &p, maps.Clone(r.pending), r.whole
		if r.whole {
			r.check(p.AsOf, nil)
		}
	}
	return true
}

func (r *windowReader) apply(e stream.Event) {
	switch e.Type {
	case stream.Reset:
		clear(r.pending)
		r.whole, r.keeps = false, false
	case stream.Upsert:
		r.got(e.Resource)
	case stream.Delete:
		delete(r.pending, e.Resource.Key)
	case stream.EndOfSnapshot:
		if e.Resumed {
			r.world.resumed++
		}
		r.whole = true
		r.arrive(e.Move)
		r.check(e.Revision, &windowAbout{e.Total, e.Before})
	case stream.StatusChange:
		if e.State == stream.CatchingUp {
			r.whole = false
		}
	case stream.Bookmark:
		if e.Horizon == 0 {
			r.whole = true
			r.arrive(e.Move)
			r.check(e.Revision, &windowAbout{e.Total, e.Before})
		}
	}
}

// check compares what the reader has with the model, and what the window says besides, if anything.
func (r *windowReader) check(revision uint64, about *windowAbout) {
	r.world.t.Helper()
	got := slices.Sorted(maps.Keys(r.pending))
	var wants []string
	for _, s := range r.world.states[revision] {
		want, says := r.window(s)
		if slices.Equal(got, want) && (about == nil || *about == says) {
			return
		}
		wants = append(wants, fmt.Sprintf("%v %+v", want, says))
	}
	r.world.t.Fatalf("%+v at %d: %v %+v, want one of %v", r.params, revision, got, about, wants)
}

// finish checks that the reader ends with the newest state, as the upstream has it.
func (r *windowReader) finish() {
	r.connect(r.world.replicas[0])
	for r.read(1) {
	}
	want, _ := r.window(r.world.now)
	if got := slices.Sorted(maps.Keys(r.held)); !r.whole || !slices.Equal(got, want) {
		r.world.t.Fatalf("%+v ends with %v (consistent: %t), want %v", r.params, got, r.whole, want)
	}
	for key, got := range r.held {
		want, err := r.definition.Project(stream.Resource{Key: key, Value: []byte(r.world.values[key])})
		if err != nil || got != string(want.Value) {
			r.world.t.Fatalf("%+v ends with %s=%.200s, want %.200s (%v)", r.params, key, got, want.Value, err)
		}
	}
}

// TestWindowsAgainstTheModel changes resources at random, at two replicas that are behind at times, and
// compares what readers of windows have, which come and go, with what is sorted by a model.
func TestWindowsAgainstTheModel(t *testing.T) {
	t.Parallel()
	resumed, moved := 0, 0
	for _, seed := range seeds(300, 60) {
		for _, deletes := range []streamtest.DeleteRevisions{streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen} {
			for _, moves := range []bool{false, true} {
				t.Run(fmt.Sprint(seed, "/", deletes, "/", moves), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWindowWorld(t, seed, deletes, moves)
						w.run(120)
						resumed += w.resumed
						moved += w.moved
					})
				})
			}
		}
	}
	if resumed == 0 || moved == 0 {
		t.Errorf("%d readers have resumed, and %d have moved", resumed, moved)
	}
}
