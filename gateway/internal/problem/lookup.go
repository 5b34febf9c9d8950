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

// Watch returns the watch of that name, which may be made for the request. Otherwise it
// returns a 404 that names the nearest one, or a 503 if a template makes no more now.
func (l Lookup) Watch(name string) (*watch.Watch, *Problem) {
	w, err := l.Registry.Open(name)
	if err != nil {
		return nil, l.unopened(name, err)
	}
	return w, nil
}

func (l Lookup) unopened(name string, err error) *Problem {
	if errors.Is(err, watch.ErrNoWatch) {
		return l.unknown(name)
	}
	p := New(http.StatusServiceUnavailable, "watch %q cannot be opened now", name).OnWatch(name)
	if errors.As(err, &p.Full) {
		p.Detail = p.Full.Error()
	}
	p.RetryAfter = max(2*l.Retry, time.Second)
	return p
}

// unknown names no watch that a template has made: its name is that of somebody's request.
func (l Lookup) unknown(name string) *Problem {
	var names []string
	for _, w := range l.Registry.Watches() {
		if w.Template() == nil {
			names = append(names, w.Name())
		}
	}
	p := New(http.StatusNotFound, "there is no watch %q; GET /v1/watches lists them", name).OnWatch(name)
	if near := suggest.Nearest(name, names); near != "" {
		p = New(http.StatusNotFound, "there is no watch %q: did you mean %q?", name, near).OnWatch(name)
	}
	return p
}

// definitionWait is how long a request waits for its definition.
const definitionWait = 10 * time.Second

// Definition returns what a request of a client narrows a watch to; nil if it does not
// narrow it.
func (l Lookup) Definition(ctx context.Context, w *watch.Watch, n Narrowing, client string) (*view.Definition, *Problem) {
	if n.isEmpty() {
		return nil, nil
	}
	wait, cancel := context.WithTimeout(ctx, definitionWait)
	defer cancel()
	d, err := l.Definitions.parse(wait, n.paramsFor(w), client)
	switch {
	case ctx.Err() != nil:
		return nil, Of(ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		p := New(http.StatusServiceUnavailable, "too many different views are asked for: there was no time for this one within %s; come back later", definitionWait).OnWatch(w.Name())
		p.RetryAfter = max(l.Retry, time.Second)
		return nil, p
	case err != nil:
		return nil, n.refused(w, err)
	case d.IsWhole():
		return nil, nil
	}
	return d, nil
}

// Open returns the part of a watch that a definition selects: the watch itself if the
// definition is nil. A watch that its template has removed since it was looked up, while
// the request waited for its definition, is made again.
func (l Lookup) Open(w *watch.Watch, d *view.Definition, r views.Request) (*watch.Watch, error) {
	if w.Template() != nil {
		again, p := l.Watch(w.Name())
		if p != nil {
			return nil, p
		}
		w = again
	}
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
	lacks := "has not received its first complete snapshot yet"
	if whole := w.Of(); whole != nil && whole.Snapshot().Primed() {
		lacks = "is primed, but the view of it is not"
	}
	p := New(http.StatusServiceUnavailable, "watch %q %s%s", w.Name(), lacks, why).OnWatch(w.Name())
	p.RetryAfter = max(l.Retry, time.Second)
	return p
}
