package views

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// TestConfidentialWindows is TestConfidential for windows: by the rows, by what a window says besides, by its
// cursors and by what leaves it nobody learns of what is hidden.
func TestConfidentialWindows(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(40, 4) {
		for _, deletes := range []streamtest.DeleteRevisions{streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen} {
			t.Run(fmt.Sprint(seed, "/", deletes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newHidingWindowWorld(t, seed, deletes).run() })
			})
		}
	}
}

func newHidingWindowWorld(t *testing.T, seed uint64, deletes streamtest.DeleteRevisions) *world {
	w := newEmptyWorld(t, rand.New(rand.NewPCG(seed, 17)), deletes)
	w.upstream.Padding = strings.Repeat("x", []int{0, 0, 9_000, 30_000}[seed%4])
	for len(w.parts) < 3 {
		p, member, descends := drawPolicy(w.random), members[w.random.IntN(len(members))], w.random.IntN(2) == 0
		params := p.params()
		params.Order, params.Limit, params.Offset = member, fmt.Sprint(1+w.random.IntN(3)), fmt.Sprint(w.random.IntN(2))
		if descends {
			params.Order = "-" + member
		}
		d := definition(t, params)
		if !d.Hides() {
			continue
		}
		by := streamtest.Sorting{Part: p.see, Compare: func(a, b stream.Resource) int { return compareMember(a, b, member, descends) }}
		w.follow(d, func(all *streamtest.Truth, d *view.Definition, served ...string) *streamtest.Truth {
			return streamtest.TruthOfWindow(all, d, by, served...)
		})
		of := w.parts[len(w.parts)-1]
		of.history.Window, of.sees = true, p.truth
	}
	w.begin("A", "B", "C")
	return w
}

// compareMember compares a member of two values, as the protocol says.
func compareMember(a, b stream.Resource, member string, descends bool) int {
	x, y := sortable(a, member), sortable(b, member)
	switch order := cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text)); {
	case x.kind == absentKind || y.kind == absentKind || !descends:
		return order
	default:
		return -order
	}
}

// sortableValue is a value by which resources are sorted.
type sortableValue struct {
	kind   int
	number float64
	text   string
}

// absentKind comes last.
const absentKind = 9

func sortable(r stream.Resource, member string) sortableValue {
	var v map[string]any
	_ = json.Unmarshal(r.Value, &v) // a value that is no object has no members
	found, is := v[member]
	if !is {
		return sortableValue{kind: absentKind}
	}
	switch found := found.(type) {
	case nil:
		return sortableValue{kind: 1}
	case float64:
		return sortableValue{kind: 4, number: found}
	case string:
		return sortableValue{kind: 5, text: found[:min(256, len(found))]}
	}
	return sortableValue{kind: 6}
}

// listWindow reads a list of a window at a replica.
func (w *world) listWindow(p *part, r *replica) {
	v, err := r.views.Open(r.base, p.definition, Request{Client: "lists"})
	if err != nil || !v.Snapshot().Primed() {
		return
	}
	page, about := v.Window()
	next, err := base64.RawURLEncoding.DecodeString(about.Next)
	if err != nil {
		w.t.Fatal(err)
	}
	sent, err := json.Marshal(page.Resources)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range page.Resources {
		sent = append(sent, r.Value...)
	}
	p.history.Answered(streamtest.Answer{Epoch: page.Position.Epoch, Revision: page.Revision, Sent: bytes.Join([][]byte{sent, next}, nil)})
}
