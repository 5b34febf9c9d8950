package authz

import (
	"cmp"
	"context"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Part is the part of a watch that a request reads.
//
// Static after construction.
type Part struct {
	Handle
	definition *view.Definition // nil: all of it
	narrowing  Narrowing        // of what its principal may read
	client     string           // that asks for it
	right      Right            // of its principal, when the part was made
	grouping   *view.Grouping   // nil: the resources are read, and not counts of them
}

// Counts reports whether counts of the part are read, and not its resources.
func (p Part) Counts() bool { return p.grouping != nil }

// Definition returns the definition that selects the part; nil: it is the whole watch.
func (p Part) Definition() *view.Definition { return p.definition }

// IsWindow reports whether the part is a window.
func (p Part) IsWindow() bool {
	if p.definition == nil {
		return false
	}
	_, is := p.definition.Window()
	return is
}

// Shared returns the definition that all parts which Open has opened as the same view share.
func (p Part) Shared(opened *watch.Watch) *view.Definition {
	if p.definition == nil {
		return nil
	}
	if p.grouping != nil {
		opened = opened.Of()
	}
	return p.lookup.config.Views.Shared(opened, p.definition)
}

// SharedGrouping returns how the part is counted, which all parts that Open has opened as the same counts share;
// nil: it is not.
func (p Part) SharedGrouping(opened *watch.Watch) *view.Grouping {
	if p.grouping == nil {
		return nil
	}
	return p.lookup.config.Views.SharedGrouping(opened, p.grouping)
}

// Is reports whether two parts of the same watch are equal.
func (p Part) Is(o Part) bool {
	if p.definition == nil || o.definition == nil {
		return p.definition == o.definition
	}
	return p.definition.ID() == o.definition.ID()
}

// Who returns the identity that reads the part; nil: the gateway does not ask for credentials.
func (p Part) Who() *credential.Identity { return p.rules.who }

// Open returns the part as a watch: the watch itself, or a view of it, or the counts of either. If its template has
// removed the watch while the request waited for its definition, the watch is made again.
func (p Part) Open(r views.Request) (*watch.Watch, error) {
	w := p.watch
	r.Client = p.rules.payer(r.Client) // watches and views count for the principal, not for its address
	if w.Template() != nil {
		again, err := p.lookup.config.Watches.OpenFor(r.Client, w.Name())
		if err != nil {
			return nil, p.lookup.unopened(context.Background(), w.Name(), err)
		}
		w = again
	}
	if p.definition != nil {
		var err error
		if w, err = p.lookup.config.Views.Open(w, p.definition, r); err != nil {
			return nil, err
		}
	}
	if p.grouping == nil {
		return w, nil
	}
	return p.lookup.config.Views.Count(w, p.grouping, r)
}

// Prime waits until the watch is primed; see [Lookup.Prime].
func (p Part) Prime(ctx context.Context) *problem.Problem { return p.lookup.Prime(ctx, p.watch) }

// ByKeys reports whether the part is the resources with some keys, of all that its principal may read.
func (p Part) ByKeys() bool { return p.narrowing.onlyKeys() }

// Page looks up the resources of a part that is one by keys, and returns them as Page of a view has them. It needs no
// view of the watch. false: only a view has that page. Work whose time depends on the size of values is done within evaluate.
func (p Part) Page(size int, evaluate func(work func()) error) (page log.Page, ok bool, err error) {
	s := p.watch.Snapshot()
	if !s.Primed() { // an on-demand watch that has just stopped
		return page, false, p.lookup.NotPrimed(p.watch)
	}
	var found []stream.Resource
	for _, key := range p.definition.Keys() {
		r, ok := s.Get(key)
		if ok && p.definition.Restricts() {
			err = evaluate(func() {
				shown, matches, failed := show(r, p.definition)
				r, ok = shown.Resource, matches && failed == nil // as in a view
			})
		}
		if err != nil {
			return page, false, err
		}
		if ok {
			found = append(found, r)
		}
	}
	page, ok = s.PageOf(found, p.definition.Epoch(s.Epoch()), size)
	return page, ok, nil
}

// Get returns a resource as the part has it, or false if the part does not have it. It needs no
// view of the watch. Work whose time depends on the size of the value is done within evaluate.
func (p Part) Get(key string, evaluate func(work func()) error) (Shown, bool, error) {
	s := p.watch.Snapshot()
	r, ok := s.Get(key)
	switch {
	case !s.Primed(): // an on-demand watch that has just stopped
		return Shown{}, false, p.lookup.NotPrimed(p.watch)
	case !ok || p.definition == nil:
		return whole(r), ok, nil
	}
	var shown Shown
	var failed error
	err := evaluate(func() { shown, ok, failed = show(r, p.definition) })
	return shown, ok && err == nil, cmp.Or(err, failed)
}
