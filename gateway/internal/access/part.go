package access

import (
	"cmp"
	"context"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Part is what a request has of a watch.
//
// Static after construction.
type Part struct {
	Found
	definition *view.Definition // nil: all of it
	narrowing  Narrowing        // of what may be read
	client     string           // that asks for it
}

// Definition returns what selects the part; nil: it is all of the watch.
func (p Part) Definition() *view.Definition { return p.definition }

// Shared returns the same definition for all parts that Open has opened as one view.
func (p Part) Shared(opened *watch.Watch) *view.Definition {
	if p.definition == nil {
		return nil
	}
	return p.lookup.config.Views.Shared(opened, p.definition)
}

// Differences are what leads streams from the part to another one.
func (p Part) Differences() *log.Differences { return p.lookup.config.Views.Differences() }

// Is reports whether two parts of the same watch have the same.
func (p Part) Is(o Part) bool {
	if p.definition == nil || o.definition == nil {
		return p.definition == o.definition
	}
	return p.definition.ID() == o.definition.ID()
}

// Who returns who has the part; nil: nobody was asked.
func (p Part) Who() *credential.Identity { return p.rules.who }

// Open returns the part as a watch: the watch itself, or a view of it. A watch that its
// template has removed since it was found, while the request waited for its definition, is
// made again.
func (p Part) Open(r views.Request) (*watch.Watch, error) {
	w := p.watch
	if w.Template() != nil {
		again, err := p.lookup.config.Watches.Open(w.Name())
		if err != nil {
			return nil, p.lookup.unopened(context.Background(), w.Name(), err)
		}
		w = again
	}
	if p.definition == nil {
		return w, nil
	}
	if p.rules.policy != nil && !p.rules.who.IsAnonymous() {
		r.Client = p.rules.who.Key() // views count for whoever asks, and not for their address
	}
	return p.lookup.config.Views.Open(w, p.definition, r)
}

// Prime waits until the watch is primed; see [Lookup.Prime].
func (p Part) Prime(ctx context.Context) *problem.Problem { return p.lookup.Prime(ctx, p.watch) }

// Get returns a resource as the part has it, and false if it has not. It needs no view of
// the watch. What takes as long as the value is large is done within evaluate.
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
