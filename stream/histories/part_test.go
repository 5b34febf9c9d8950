package histories

import (
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// part is the watch, or a view of it, with what its clients saw at all nodes.
type part struct {
	name       string
	definition *view.Definition // nil: all of the watch
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

func newParts(newHistory func() *streamtest.History) (parts []*part) {
	for _, params := range definitions {
		p := &part{name: "all", history: newHistory(), seen: map[given]bool{}}
		d, err := view.Parse(params)
		if err != nil {
			panic(err)
		}
		if !d.IsWhole() {
			p.name, p.definition = params.Prefix+params.Filter, d
		}
		parts = append(parts, p)
	}
	return parts
}

// of returns the part at a node.
func (p *part) of(n *node) *watch.Watch {
	if p.definition == nil {
		return n.watch
	}
	v, err := n.views.Open(n.watch, p.definition, views.Request{Client: n.name})
	if err != nil {
		panic(err) // no limit is near
	}
	return v
}

// narrow sets the truth of the part.
func (p *part) narrow(all *streamtest.Truth, served []string) {
	if p.definition == nil {
		return
	}
	p.history.Truth = all.Narrow(p.definition.Epoch, func(r stream.Resource) (stream.Resource, bool) {
		in, _ := p.definition.Matches(r)
		r, err := p.definition.Project(r)
		return r, in && err == nil
	}, served...)
}

// connections returns those of all parts.
func (w *world) connections() (all []*streamtest.Connection) {
	for _, p := range w.parts {
		all = append(all, p.history.Connections()...)
	}
	return all
}

// aPart returns all of the watch, or a view, unless the upstream goes back without a new
// name: the name of an order in a view does not say which one it is then.
func (w *world) aPart() *part {
	if !w.shape.views {
		return w.parts[0]
	}
	return oneOf(w.choices, w.parts[0], w.parts[0], w.parts[1], w.parts[2], w.parts[3], w.parts[4])
}
