package views

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// rule is a filter, and what it means, in code that has nothing to do with the views.
type rule struct {
	filter string
	holds  func(key string, value map[string]any) bool
}

// rules are found by an index, met by every change, and costly.
var rules = []rule{
	{`value.team == "red"`, func(_ string, v map[string]any) bool { return v["team"] == "red" }},
	{`value.n == 2`, func(_ string, v map[string]any) bool { return v["n"] == 2.0 }},
	{`value.n > 2 && value.team == "blue"`, func(_ string, v map[string]any) bool {
		n, ok := v["n"].(float64)
		return ok && n > 2 && v["team"] == "blue"
	}},
	{`value.n < 3`, func(_ string, v map[string]any) bool { n, ok := v["n"].(float64); return ok && n < 3 }},
	{`key.startsWith("a/1")`, func(key string, _ map[string]any) bool { return strings.HasPrefix(key, "a/1") }},
	{`key.startsWith("a/") && value.n > 1`, func(key string, v map[string]any) bool {
		n, ok := v["n"].(float64)
		return ok && n > 1 && strings.HasPrefix(key, "a/")
	}},
	{`value.exists(k, k == "n" && value[k] == 1)`, func(_ string, v map[string]any) bool { return v["n"] == 1.0 }},
	{`!has(value.y) || value.n != 4`, func(_ string, v map[string]any) bool {
		n, ok := v["n"].(float64)
		return v["y"] == nil || ok && n != 4
	}},
}

// policy is what a principal may see: the union of grants, narrowed by what it asks for.
type policy struct {
	grants    []grant
	narrowing []rule   // none: all of it
	fields    []string // that it asks for; none: all
}

// grant is a rule, and the members of values and the namespaces of keys that it shows; nil: all.
type grant struct {
	rule
	fields, namespaces []string
}

// shows reports whether the grant shows something of a resource.
func (g grant) shows(key string, value map[string]any) bool {
	namespace, _, named := strings.Cut(key, "/")
	return (g.namespaces == nil || named && slices.Contains(g.namespaces, namespace)) && g.holds(key, value)
}

var members = []string{"x", "team", "n", "y"}

func drawPolicy(random *rand.Rand) (p policy) {
	draw := func() rule { return rules[random.IntN(len(rules))] }
	some := func() []string {
		at := random.Perm(len(members))[:1+random.IntN(3)]
		return []string{members[at[0]], members[at[len(at)-1]]}
	}
	for range 1 + random.IntN(3) {
		g := grant{rule: draw()}
		if random.IntN(3) > 0 {
			g.fields = some()
		}
		if random.IntN(3) == 0 {
			g.namespaces = [][]string{{"a"}, {"b"}, {"a", "b"}, {"a/1"}}[random.IntN(4)]
			if random.IntN(2) == 0 {
				g.rule, g.fields = rule{"true", func(string, map[string]any) bool { return true }}, nil // as a cluster grants it
			}
		}
		p.grants = append(p.grants, g)
	}
	if random.IntN(2) == 0 {
		p.narrowing = []rule{draw()}
	}
	if random.IntN(3) == 0 {
		p.fields = some()
	}
	return p
}

func (p policy) definition(t *testing.T) *view.Definition { return definition(t, p.params()) }

func (p policy) params() view.Params {
	params := view.Params{Fields: p.fields}
	for _, g := range p.grants {
		params.Grants = append(params.Grants, view.Grant{Filter: g.filter, Fields: g.fields, Namespaces: g.namespaces})
	}
	for _, r := range p.narrowing {
		params.Filter = r.filter
	}
	return params
}

// see returns what the principal may see of a resource: the model.
func (p policy) see(r stream.Resource) (stream.Resource, bool) {
	seen, whole, fields := false, false, []string(nil)
	for _, g := range p.grants {
		if g.shows(r.Key, object(r.Value)) {
			seen, whole, fields = true, whole || g.fields == nil, append(fields, g.fields...)
		}
	}
	if !seen {
		return r, false
	}
	if !whole {
		r.Value = only(r.Value, fields)
	}
	for _, n := range p.narrowing {
		if !n.holds(r.Key, object(r.Value)) {
			return r, false
		}
	}
	if p.fields != nil {
		r.Value = only(r.Value, p.fields)
	}
	return r, true
}

// object returns the members of a value; nil: it has none.
func object(value []byte) (out map[string]any) {
	_ = json.Unmarshal(value, &out)
	return out
}

// only returns a value with only some of its members.
func only(value []byte, fields []string) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil || all == nil {
		return []byte("null")
	}
	var out []string
	for _, name := range members {
		if raw, ok := all[name]; ok && slices.Contains(fields, name) {
			out = append(out, fmt.Sprintf("%q:%s", name, raw))
		}
	}
	return []byte("{" + strings.Join(out, ",") + "}")
}

func (p policy) truth(all *streamtest.Truth, d *view.Definition, served ...string) *streamtest.Truth {
	return all.Narrow(d.Epoch, p.see, served...)
}

// TestConfidentialSlabs: a view that shares memory with its watch sends nothing that lies
// between its resources there.
func TestConfidentialSlabs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		var writes []string
		for i := range 400 {
			shown := `"n":1`
			if i%4 == 1 {
				shown = `"n":2`
			}
			writes = append(writes, fmt.Sprintf(`k%s={%s,"x":"%s%s"}`, streamtest.Marker(2*i), shown, streamtest.Marker(2*i+1), strings.Repeat("x", 1000)))
		}
		f.commit(writes...)
		p := policy{grants: []grant{{rule: rule{`value.n == 1`, func(_ string, v map[string]any) bool { return v["n"] == 1.0 }}}}}
		d := p.definition(t)
		h := &streamtest.History{Hides: true, Settled: true}
		c := h.Connect(f.open(d, "c"), streamtest.Dial{Client: "c", Replica: "A"})
		defer c.Close()
		synctest.Wait()
		if c.Drain() < 3 || len(c.State()) != 300 {
			t.Fatalf("the subscriber has %d resources, want 300", len(c.State()))
		}
		h.Truth = p.truth(f.upstream.Truth(), d)
		if err := streamtest.CheckAll(h); err != nil {
			t.Error(err)
		}
		held := f.views.holds()
		if whole := int64(400 * 1000); held < whole {
			t.Errorf("the view holds %d bytes: it shares no memory with its watch, so nothing was tested", held)
		}
	})
}

// TestConfidential gives random policies to subscribers of three replicas, of which each may
// be behind, and checks what they are sent, byte by byte, against what they may see.
func TestConfidential(t *testing.T) {
	t.Parallel()
	seeds := seeds(40, 4)
	switches := 0
	for _, seed := range seeds {
		for _, deletes := range []streamtest.DeleteRevisions{
			streamtest.OwnRevision, streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen, streamtest.Vanishing,
		}[seed%2:] {
			t.Run(fmt.Sprint(seed, "/", deletes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { switches += newHidingWorld(t, seed, deletes).run() })
			})
		}
	}
	if switches < len(seeds) {
		t.Errorf("only %d connections took the place of another", switches)
	}
}

func newHidingWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions) *world {
	w := newEmptyWorld(t, rand.New(rand.NewPCG(seed, 13)), deletes)
	w.upstream.Padding = strings.Repeat("x", []int{0, 0, 9_000, 30_000}[seed%4]) // the large ones, so that the watch forgets values
	for len(w.parts) < 3 {
		p := drawPolicy(w.random)
		if d := p.definition(t); d.Hides() {
			w.follow(d, p.truth)
		}
	}
	w.begin("A", "B", "C")
	return w
}

// list reads a list of a view at a replica, page by page.
func (w *world) list(p *part, r *replica) {
	if p.sees != nil {
		w.listWindow(p, r)
		return
	}
	v, err := r.views.Open(r.base, p.definition, Request{Client: "lists"})
	if err != nil || !v.Snapshot().Primed() {
		return
	}
	for token, pages := "", 0; ; pages++ {
		page, err := v.Page(token, 2)
		if err != nil {
			return
		}
		if pages > 1000 {
			w.t.Fatal("broke Consistent: a list does not end")
		}
		sent, err := json.Marshal(page.Resources)
		if err != nil {
			w.t.Fatal(err)
		}
		if token = page.Next; token != "" {
			told, err := base64.RawURLEncoding.DecodeString(token)
			if err != nil {
				w.t.Fatal(err)
			}
			var fields struct {
				Key []byte `json:"k"`
			}
			if err := json.Unmarshal(told, &fields); err != nil {
				w.t.Fatal(err)
			}
			sent = append(append(sent, told...), fields.Key...)
		}
		for _, r := range page.Resources {
			sent = append(sent, r.Value...)
		}
		p.history.Answered(streamtest.Answer{Epoch: page.Position.Epoch, Revision: page.Revision, Sent: sent})
		if token == "" {
			return
		}
	}
}

// TestHiddenAndUnknown: a view that hides resources says nothing of one that it never had:
// where it is not known whether a reader from elsewhere has it, the reader gets a reset.
func TestHiddenAndUnknown(t *testing.T) {
	leftOut := []streamtest.Step{streamtest.Conflated(), streamtest.Upsert("k", 8, `{"n":2}`), streamtest.Commit(8)}
	for name, u := range map[string]unseen{
		"values left out": {begin: beginning("k", `{"n":0}`), misses: [][]streamtest.Step{leftOut}},
		"delete of a resource that was not seen": {
			begin: []streamtest.Step{streamtest.Reset("e"), streamtest.Commit(3)}, misses: [][]streamtest.Step{{streamtest.Delete("k", 8), streamtest.Commit(8)}},
		},
	} {
		u.sees = []streamtest.Step{streamtest.Upsert("k", 7, `{"n":1}`), streamtest.Commit(7)}
		for _, text := range kinds {
			for _, built := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					t.Log(name, text, built)
					d := definition(t, view.Params{Grants: []view.Grant{{Filter: text}}})
					r := u.replicas(t, d)
					var live *subscriber
					if built {
						live = r.follow()
						live.read()
					}
					expectTexts(t, r.resumed(), "reset expired", "end@8")
					if built {
						live.expect(t, "bookmark@8")
					}
				})
			}
		}
	}
}

// TestHiddenAndKnown: what is known to have left a view that hides resources is deleted, at
// the change with which it left, for those who were there before.
func TestHiddenAndKnown(t *testing.T) {
	for _, text := range kinds {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.commit(`k={"n":1}`, `l={"n":1}`, `m={"n":2}`)
			d := definition(t, view.Params{Grants: []view.Grant{{Filter: text}}})
			older, g := moved(t, f, d, watch.Config{})
			both(f, g, `k={"n":2}`, `m={"n":3}`)
			newer := *older
			newer.Upserts, newer.AsOf = 3, 3
			both(f, g, `k={"n":3}`, `m={"n":4}`)
			both(f, g, `l={"n":2}`)
			both(f, g, `l={"n":1}`, `k=`)
			expectTexts(t, resumed(t, g, d, older, true), "-k@3", `l={"n":1}@6`, "end@6")
			expectTexts(t, resumed(t, g, d, &newer, true), `l={"n":1}@6`, "end@6")
		})
	}
}

// TestHiddenAndForgotten: where compaction took the former value of a resource, a reader from
// before gets a reset. Nobody else does.
func TestHiddenAndForgotten(t *testing.T) {
	for _, text := range kinds {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			d := definition(t, view.Params{Grants: []view.Grant{{Filter: text}}})
			f.commit(`k={"n":0}`, `other={"n":1}`)
			at, g := moved(t, f, d, watch.Config{History: log.Retention{MaxBytes: 1}})
			both(f, g, `k={"n":1}`)
			both(f, g, `k={"n":2}`)
			padding := strings.Repeat("x", 60_000)
			for i := range 60 {
				both(f, g, fmt.Sprintf(`pad={"n":3,"x":"%d%s"}`, i, padding))
			}
			recent := *at
			recent.Upserts, recent.AsOf = 60, 60
			got := resumed(t, g, d, at, true)
			if !slices.Contains(got, "reset expired") || bytes.Contains([]byte(strings.Join(got, " ")), []byte("pad")) {
				t.Errorf("read %q", got)
			}
			expectTexts(t, resumed(t, g, d, &recent, true), "end@64")
		})
	}
}
