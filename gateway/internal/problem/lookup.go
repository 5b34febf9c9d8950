package problem

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Views opens the views that clients ask for.
type Views interface {
	// Open returns the view of w that d selects, with the name of w. The error is a
	// views.Refusal if a limit is reached.
	Open(w *watch.Watch, d *view.Definition, r views.Request) (*watch.Watch, error)
}

// Lookup finds the watches that requests name, and the views of them that requests
// narrow them to.
//
// Static after construction.
type Lookup struct {
	Registry    *watch.Registry
	Views       Views
	Definitions *Definitions
	PrimeWait   time.Duration // how long a request waits for a watch that is not primed
	Retry       time.Duration // in answers with 503
}

// Watch returns the watch of that name, or a 404 that names the nearest one.
func (l Lookup) Watch(name string) (*watch.Watch, *Problem) {
	if w, ok := l.Registry.Watch(name); ok {
		return w, nil
	}
	return nil, l.unknown(name)
}

func (l Lookup) unknown(name string) *Problem {
	var names []string
	for _, w := range l.Registry.Watches() {
		names = append(names, w.Name())
	}
	p := New(http.StatusNotFound, "there is no watch %q; GET /v1/watches lists them", name).OnWatch(name)
	if near := suggest.Nearest(name, names); near != "" {
		p = New(http.StatusNotFound, "there is no watch %q: did you mean %q?", name, near).OnWatch(name)
	}
	return p
}

// Definition returns what a request narrows a watch to; nil if it does not narrow it.
func (l Lookup) Definition(ctx context.Context, w *watch.Watch, n Narrowing) (*view.Definition, *Problem) {
	if n.isEmpty() {
		return nil, nil
	}
	d, err := l.Definitions.parse(ctx, n.paramsFor(w))
	switch {
	case ctx.Err() != nil:
		return nil, Of(ctx.Err())
	case err != nil:
		return nil, n.refused(w, err)
	case d.IsWhole():
		return nil, nil
	}
	return d, nil
}

// Open returns the part of a watch that a definition selects: the watch itself if the
// definition is nil.
func (l Lookup) Open(w *watch.Watch, d *view.Definition, r views.Request) (*watch.Watch, error) {
	if d == nil {
		return w, nil
	}
	return l.Views.Open(w, d, r)
}

// Prime waits until a watch is primed. An on-demand watch is started. A watch that is
// not primed in time is answered with 503 and Retry-After.
func (l Lookup) Prime(ctx context.Context, w *watch.Watch) *Problem {
	if w.Snapshot().Primed() && w.Of() == nil {
		return nil
	}
	wait, cancel := context.WithTimeoutCause(ctx, l.PrimeWait, errNotPrimed)
	defer cancel()
	if err := w.Prime(wait); err != nil && ctx.Err() == nil {
		return l.NotPrimed(w)
	}
	if err := ctx.Err(); err != nil {
		return Of(err)
	}
	return nil
}

var errNotPrimed = errors.New("the watch was not primed in time")

// NotPrimed returns a 503 with the reason why there is nothing to serve yet.
func (l Lookup) NotPrimed(w *watch.Watch) *Problem {
	why := ""
	if reason := w.Snapshot().Status().Reason; reason != "" {
		why = ": " + reason
	}
	p := New(http.StatusServiceUnavailable,
		"watch %q has not received its first complete snapshot yet%s", w.Name(), why).OnWatch(w.Name())
	p.RetryAfter = max(l.Retry, time.Second)
	return p
}
