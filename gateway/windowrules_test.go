package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// ruledRow is a resource of the model.
type ruledRow struct {
	owner string
	n     int
}

// ruledCase is a rule, and what it means.
type ruledCase struct {
	access.Rule
	sees func(key string, r ruledRow) bool
	n    bool // it shows the field by which resources are sorted
}

var ruledCases = []ruledCase{
	{access.Rule{Read: `true`}, func(string, ruledRow) bool { return true }, true},
	{access.Rule{Read: `value.owner != "bob"`}, func(_ string, r ruledRow) bool { return r.owner != "bob" }, true},
	{access.Rule{Read: `true`, Fields: []string{"owner"}}, func(string, ruledRow) bool { return true }, false},
	{access.Rule{Read: `value.n > 1`, Fields: []string{"owner"}}, func(_ string, r ruledRow) bool { return r.n > 1 }, false},
	{access.Rule{Read: `key < "k4"`, Fields: []string{"n"}}, func(key string, _ ruledRow) bool { return key < "k4" }, true},
}

// ruledWorld is a gateway whose rules change while somebody follows a window and counts.
type ruledWorld struct {
	*switching
	random   *rand.Rand
	now      map[string]ruledRow
	rule     ruledCase
	revision uint64

	window        *gatewaytest.Exchange
	stream        string // its name
	offset, limit int
	rows          map[string]bool
	total, before int

	counts *gatewaytest.Exchange
	groups map[string]string
	kept   int // moves that were sent as the difference
}

// ruledEvent is an event of either stream.
type ruledEvent struct {
	Type, Key, Stream string
	Left              bool
	Total, Before     *int
	Move              int
	Value             json.RawMessage
	Reason            string
}

func newRuledWorld(t *testing.T, seed uint64) *ruledWorld {
	w := &ruledWorld{random: rand.New(rand.NewPCG(seed, 5)), now: map[string]ruledRow{}, rule: ruledCases[seed%uint64(len(ruledCases))], limit: 2, offset: 1}
	w.switching = newSwitching(t, map[string]access.Rule{"a": w.rule.Rule}, "a")
	var all []stream.Resource
	for i := range 7 {
		w.revision++
		all = append(all, w.draw(fmt.Sprint("k", i)))
	}
	w.Prime("a", w.revision, all...)
	w.window = w.get("/v1/events"+asking("watch", "a", "format", "ndjson", "order", "-n", "limit", "2", "offset", "1"), w.guard.as("ci"))
	time.Sleep(time.Second)
	w.read(nil)
	return w
}

// draw draws a value of a resource at the next revision.
func (w *ruledWorld) draw(key string) stream.Resource {
	r := ruledRow{[]string{"ann", "bob", "eve"}[w.random.IntN(3)], w.random.IntN(4)}
	w.now[key] = r
	return gatewaytest.Resource(key, w.revision, fmt.Sprintf(`{"owner":%q,"n":%d,"secret":"s%d"}`, r.owner, r.n, w.revision))
}

// visible returns the keys of the view, in order.
func (w *ruledWorld) visible() (keys []string) {
	for key, r := range w.now {
		if w.rule.sees(key, r) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if w.rule.n {
			return cmp.Or(cmp.Compare(w.now[b].n, w.now[a].n), strings.Compare(a, b))
		}
		return strings.Compare(a, b)
	})
	return keys
}

// act makes one step, and returns whether the rules have changed.
func (w *ruledWorld) act() (ruled bool) {
	switch w.random.IntN(5) {
	case 0:
		w.rule = ruledCases[w.random.IntN(len(ruledCases))]
		w.reload(map[string]access.Rule{"a": w.rule.Rule})
		ruled = true
	case 1:
		w.offset, w.limit = w.random.IntN(5), 1+w.random.IntN(3)
		if x := w.ask(w.stream, fmt.Sprintf("offset=%d&limit=%d", w.offset, w.limit), w.guard.as("ci")); x.StatusCode != http.StatusOK {
			w.t.Fatalf("%s %s", x.Status, x.Text())
		}
	default:
		w.revision++
		key := fmt.Sprint("k", w.random.IntN(7))
		if w.random.IntN(4) == 0 && w.now[key] != (ruledRow{}) {
			delete(w.now, key)
			w.Do("a", func(s stream.Sink) error { return cmp.Or(s.Delete(key, w.revision), s.Commit(w.revision)) })
			break
		}
		w.Commit("a", w.revision, w.draw(key))
	}
	time.Sleep(3 * time.Second) // a window tells its total within one
	return ruled
}

// step makes a step, and checks what the streams are sent.
func (w *ruledWorld) step() {
	had := maps.Clone(w.rows)
	if w.act() {
		had = nil
	}
	visible := w.read(had)
	before := min(w.offset, len(visible))
	want := visible[before:min(before+w.limit, len(visible))]
	if got := slices.Sorted(maps.Keys(w.rows)); !slices.Equal(got, slices.Sorted(slices.Values(want))) || w.total != len(visible) || w.before != before {
		w.t.Fatalf("%+v with offset %d and limit %d: %v of %d after %d, want %v of %d after %d", w.rule.Rule, w.offset, w.limit, got, w.total, w.before, want, len(visible), before)
	}
	w.checkCounts()
}

// read reads what the window is sent, and checks that it names nothing that is hidden: had are the keys that the
// client had and that may be named nevertheless. It returns the keys of the view.
func (w *ruledWorld) read(had map[string]bool) (visible []string) {
	w.t.Helper()
	visible = w.visible()
	for line := range strings.Lines(w.window.Take()) {
		var e ruledEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		w.apply(e, line)
		sees := slices.Contains(visible, e.Key)
		switch {
		case e.Key != "" && !sees && !had[e.Key]:
			w.t.Fatalf("a key that is hidden is named: %s", line)
		case e.Left && !sees, e.Type == "delete" && !e.Left && sees:
			w.t.Fatalf("left is wrong: %s", line)
		case strings.Contains(line, `"secret"`) && len(w.rule.Fields) > 0, strings.Contains(line, `"n":`) && !w.rule.n:
			w.t.Fatalf("a field that is hidden is sent: %s", line)
		}
	}
	return visible
}

// apply applies an event of the window.
func (w *ruledWorld) apply(e ruledEvent, line string) {
	switch e.Type {
	case "hello":
		w.stream = e.Stream
	case "reset":
		w.rows = map[string]bool{}
	case "upsert":
		w.rows[e.Key] = true
	case "delete":
		delete(w.rows, e.Key)
	case "bookmark":
		w.kept += min(e.Move, 1)
	case "goodbye":
		w.t.Fatalf("the stream has ended: %s", line)
	}
	if e.Total != nil {
		w.total, w.before = *e.Total, *e.Before
	}
}

// checkCounts follows the counts by owner, again if the rules have changed, and compares them.
func (w *ruledWorld) checkCounts() {
	want := map[string]string{}
	count := map[string]int{}
	for _, key := range w.visible() {
		group := w.now[key].owner
		if len(w.rule.Fields) > 0 && !slices.Contains(w.rule.Fields, "owner") {
			group = "null"
		}
		count[group]++
		want[group] = fmt.Sprintf(`{"count":%d}`, count[group])
	}
	for w.follow(); w.counts == nil; {
		w.follow()
	}
	if !maps.Equal(w.groups, want) {
		w.t.Fatalf("%+v: the counts are %v, want %v", w.rule.Rule, w.groups, want)
	}
}

// follow reads what there is of the counts, or begins to.
func (w *ruledWorld) follow() {
	if w.counts == nil {
		w.counts = w.get("/v1/watches/a/counts/events"+asking("by", "owner", "format", "ndjson"), w.guard.as("ci"))
		time.Sleep(time.Second)
	}
	for line := range strings.Lines(w.counts.Take()) {
		var e ruledEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		switch e.Type {
		case "reset":
			w.groups = map[string]string{}
		case "upsert":
			w.groups[e.Key] = string(e.Value)
		case "delete":
			delete(w.groups, e.Key)
		case "goodbye":
			if e.Reason != string(stream.GoodbyeWatchReplaced) {
				w.t.Fatalf("the counts end with %s", line)
			}
			w.counts = nil
			return
		}
	}
}

// TestWindowsAndCountsWhileRulesChange: rules that show less, more, and not the field by which a window is sorted
// come into effect while a window and counts are open, between changes of resources and moves of the window. What the
// client has is what a model has, and nothing that is hidden is named.
func TestWindowsAndCountsWhileRulesChange(t *testing.T) {
	kept := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newRuledWorld(t, seed)
			for range 40 {
				w.step()
			}
			kept += w.kept
		})
	}
	if kept == 0 {
		t.Error("no move was sent as a difference")
	}
}
