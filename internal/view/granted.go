package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/stream"
)

// granted says which grants hold for a resource: one bit for each, in their order.
type granted struct {
	bits  uint64
	whole bool // one of them shows whole values
}

func (g granted) visibility() Visibility {
	switch {
	case g.whole:
		return Whole
	case g.bits != 0:
		return Part
	}
	return Hidden
}

// of returns which grants hold for a resource. It stops at the first one that allows all of the
// resource. An error is the Failure of a grant, which does not hold.
func (g *grants) of(e *extraction, labelsAt document.Path) (held granted, failed error) {
	for i := range g.all {
		one := &g.all[i]
		holds, err := one.holds(e, labelsAt)
		if err != nil {
			failed = err
		}
		if !holds {
			continue
		}
		held.bits |= 1 << i
		if one.whole() {
			held.whole = true
			return held, failed
		}
	}
	return held, failed
}

// holds reports whether a resource is in a namespace of a grant, and the filter is true of it.
func (g *grant) holds(e *extraction, labelsAt document.Path) (bool, error) {
	if !g.has(e.resource.Key) {
		return false, nil
	}
	if g.filter == nil {
		return true, nil
	}
	usage := g.filter.Usage()
	if usage.Labels || len(usage.Values) > 0 {
		e.read()
	}
	repeats := func(at document.Path) bool { return e.document.Repeats(at) }
	if slices.ContainsFunc(usage.Values, repeats) || usage.Labels && repeats(labelsAt) {
		return false, Repeated
	}
	if usage.Labels {
		e.readLabels(labelsAt)
	}
	holds, err := e.holds(g.filter)
	switch {
	case err == nil:
		return holds, nil
	case !e.isJSON && len(usage.Values) > 0:
		return false, NotJSON
	}
	return false, failure(err)
}

// has reports whether a key is in a namespace of the grant.
func (g *grant) has(key string) bool {
	if g.within == nil {
		return true
	}
	namespace, _, ok := strings.Cut(key, "/")
	_, shown := g.within[namespace]
	return ok && shown
}

// keeps returns what the grants that hold show of values.
func (g *grants) keeps(held granted) *document.Paths {
	if held.bits&(held.bits-1) == 0 {
		for i := range g.all {
			if held.bits == 1<<i {
				return &g.all[i].keeps
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.joined[held.bits]; known != nil {
		return known
	}
	union := g.union(held)
	if g.joined == nil {
		g.joined = map[uint64]*document.Paths{}
	}
	if len(g.joined) < mostJoined {
		g.joined[held.bits] = union
	}
	return union
}

func (g *grants) union(held granted) *document.Paths {
	var all []*document.Paths
	for i := range g.all {
		if held.bits&(1<<i) != 0 {
			all = append(all, &g.all[i].keeps)
		}
	}
	return document.Union(all)
}

// project returns what may be seen of a resource under the grants that hold for it.
func (g *grants) project(r stream.Resource, held granted) (stream.Resource, error) {
	switch held.visibility() {
	case Whole:
		return r, nil
	case Hidden:
		return stream.Resource{}, errHidden
	}
	return keep(r, g.keeps(held))
}

// keep returns a resource with only some paths of its value.
func keep(r stream.Resource, paths *document.Paths) (stream.Resource, error) {
	if r.Encoding != "" {
		r.Value, r.Encoding = []byte("null"), ""
		return r, nil
	}
	value, err := document.Project(r.Value, paths)
	if err != nil {
		return stream.Resource{}, fmt.Errorf("%q: %w", r.Key, err)
	}
	r.Value = value
	return r, nil
}

// costly reports whether evaluating some filter can take far longer than reading the value.
func (g *grants) costly() bool {
	return g != nil && slices.ContainsFunc(g.all, func(one grant) bool {
		return one.filter != nil && (one.filter.Steps() || readsAll(one.filter.Usage().Values))
	})
}
