package histories

import (
	"slices"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// part is the watch, or a view of it, with what its clients saw at all nodes.
type part struct {
	name       string
	params     view.Params
	beside     bool                // it is the other watch
	definition *view.Definition    // nil: all of the watch
	sorting    *streamtest.Sorting // of a window; nil: it is none
	grouping   *view.Grouping      // of counts; nil: they are resources
	count      func(map[string]stream.Resource) map[string]string
	windowOf   int   // of windowCases, if it has a sorting
	within     *part // what it is a view of, if not of the watch: what narrow nodes have
	history    *streamtest.History
	ids        []*streamtest.Mark // every id that was issued
	seen       map[given]bool
}

// definitions are found by key, by prefix and by value in an index, or met by every change.
var definitions = []view.Params{
	{},
	{Prefix: "a/"},
	{Filter: `value.n % 2 == 0`},
	{Filter: `key in ["a/1", "b/1", "c", "k/007"]`, Fields: []string{"n"}},
	{Filter: `value.n in [1, 2, 3, 5, 8, 13, 21, 34]`},
}

// Of definitions, what narrow nodes have; and what their clients select of that.
const narrowest = 2

var further = []view.Params{
	{Prefix: "a/"},
	{Filter: `value.n in [2, 4, 6, 10, 12, 18, 20, 30]`},
	{Filter: `value.n % 3 == 0`, Fields: []string{"n"}},
}

func newParts(newHistory func() *streamtest.History) (parts []*part) {
	for i, params := range slices.Concat(definitions, further) {
		p := &part{name: "all", params: params, history: newHistory(), seen: map[given]bool{}}
		if d := parsed(params); !d.IsWhole() {
			p.name, p.definition = params.Prefix+params.Filter, d
		}
		if i >= len(definitions) {
			p.within = parts[narrowest]
			p.name = p.within.name + ", of that " + p.name
		}
		parts = append(parts, p)
	}
	return parts
}

// isAt reports whether a node has the part.
func (p *part) isAt(n *node) bool {
	if p.beside {
		return n.hasBeside()
	}
	if n.narrow {
		return p.within != nil || p == n.world.parts[narrowest]
	}
	return p.within == nil
}

// nodeOf returns a node that has a part.
func (w *world) nodeOf(p *part) *node {
	var have []*node
	for _, n := range w.nodes {
		if p.isAt(n) {
			have = append(have, n)
		}
	}
	return have[w.pick(len(have))]
}

// of returns the part at a node.
func (p *part) of(n *node) *watch.Watch {
	if p.grouping != nil {
		counts, err := n.views.Count(n.watch, p.grouping, views.Request{Client: n.name})
		if err != nil {
			panic(err) // no limit is near
		}
		return counts
	}
	if p.definition == nil || n.narrow && p.within == nil {
		return n.watch
	}
	v, err := n.views.Open(n.watch, p.definition, views.Request{Client: n.name})
	if err != nil {
		panic(err) // no limit is near
	}
	return v
}

// narrow sets the truth of the part. What it is within has its own.
func (p *part) narrow(all *streamtest.Truth, served []string) {
	switch {
	case p.grouping != nil && len(p.history.Connections()) > 0:
		p.history.Truth = streamtest.TruthOfCounts(all, p.grouping, p.count, served...)
		return
	case p.definition == nil:
		return
	}
	if p.within != nil {
		all, served = p.within.history.Truth, p.within.served(served)
	}
	if p.sorting != nil {
		if len(p.history.Connections()) > 0 {
			p.history.Truth = streamtest.TruthOfWindow(all, p.definition, *p.sorting, served...)
		}
		return
	}
	p.history.Truth = streamtest.TruthOfView(all, p.definition, served...)
}

// served returns the names of orders in the part, of those that nodes have served.
func (p *part) served(all []string) []string {
	out := slices.Clone(all) // narrow nodes have those of the part
	for _, epoch := range all {
		out = append(out, stream.CanonicalEpoch(p.definition.Epoch(epoch)))
	}
	return out
}

// connections returns those of all parts.
func (w *world) connections() (all []*streamtest.Connection) {
	for _, p := range w.allParts() {
		all = append(all, p.history.Connections()...)
	}
	return all
}

// aPart returns all of the watch, or a view, unless the upstream goes back without a new
// name: the name of an order in a view does not say which one it is then.
func (w *world) aPart() *part {
	switch {
	case !w.shape.views:
		return w.parts[0]
	case w.shape.windows && (*windows || w.rarely(4)):
		return oneOf(w.choices, slices.Concat(w.windows[:len(windowCases)], w.counts)...)
	}
	if w.shape.narrow && w.rarely(2) {
		return oneOf(w.choices, w.parts[len(definitions):]...)
	}
	return oneOf(w.choices, append([]*part{w.parts[0]}, w.parts[:len(definitions)]...)...)
}

// allParts returns the parts of the watch, its windows and counts, and the other watch.
func (w *world) allParts() []*part {
	return append(slices.Concat(w.parts, w.windows, w.counts), w.beside)
}

// give records an id that was issued.
func (p *part) give(m *streamtest.Mark) {
	id := given{m.Position, len(m.State), m.Exact()}
	if !p.seen[id] {
		p.seen[id] = true
		p.ids = append(p.ids, m)
	}
}
