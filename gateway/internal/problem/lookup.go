package problem

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// Views opens the views that clients ask for.
type Views interface {
	// Open returns the view of w that d selects, with the name of w. client is charged
	// for it. The error is a views.Refusal if a limit is reached.
	Open(w *watch.Watch, d *view.Definition, client string) (*watch.Watch, error)
}

// Lookup finds the watches that requests name, and the views of them that requests
// narrow them to.
//
// Static after construction.
type Lookup struct {
	Registry    *watch.Registry
	Views       Views // nil: watches can only be narrowed to a prefix
	Definitions *Definitions
	PrimeWait   time.Duration // how long a request waits for a watch that is not primed
	Retry       time.Duration // in answers with 503
}

// Part is the part of a watch that a request is about.
type Part struct {
	*watch.Watch        // the watch, or a view of it
	Prefix       string // to which its log narrows
}

// prefixInLog means that a log narrows to a prefix by itself, so that a prefix alone
// needs no view.
const prefixInLog = true

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

// Definition returns what a request narrows a watch to; nil if it does not narrow it.
func (l Lookup) Definition(ctx context.Context, w *watch.Watch, n Narrowing) (*view.Definition, *Problem) {
	if n.isEmpty() {
		return nil, nil
	}
	if parameter := n.beyondPrefix(); parameter != "" && l.Views == nil {
		as := n.written(parameter)
		return nil, BadParameter(as, "parameter %q is not available: this gateway has no views", as).OnWatch(w.Name())
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
func (l Lookup) Open(w *watch.Watch, d *view.Definition, client string) (Part, error) {
	if d == nil {
		return Part{Watch: w}, nil
	}
	if l.Views == nil || prefixInLog && selectsByPrefix(d) {
		return Part{Watch: w, Prefix: d.Params().Prefix}, nil
	}
	v, err := l.Views.Open(w, d, client)
	return Part{Watch: v}, err
}

// selectsByPrefix reports whether a definition has nothing but a prefix.
func selectsByPrefix(d *view.Definition) bool {
	p := d.Params()
	return p.Labels == "" && p.Filter == "" && len(p.Fields) == 0
}

// Primed returns the watch of that name once it is primed.
func (l Lookup) Primed(ctx context.Context, name string) (*watch.Watch, *Problem) {
	w, p := l.Watch(name)
	if p != nil {
		return nil, p
	}
	return w, l.Prime(ctx, w)
}

// Prime waits until a watch is primed. An on-demand watch is started. A watch that is
// not primed in time is answered with 503 and Retry-After.
func (l Lookup) Prime(ctx context.Context, w *watch.Watch) *Problem {
	if w.Snapshot().Primed() {
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
