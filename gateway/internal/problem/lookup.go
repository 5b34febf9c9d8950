package problem

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream/watch"
)

// Lookup finds the watches that requests name.
//
// Static after construction.
type Lookup struct {
	Registry  *watch.Registry
	PrimeWait time.Duration // how long a request waits for a watch that is not primed
	Retry     time.Duration // in answers with 503
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

// Primed returns the watch of that name once it is primed. An on-demand watch is
// started. A watch that is not primed in time is answered with 503 and Retry-After.
func (l Lookup) Primed(ctx context.Context, name string) (*watch.Watch, *Problem) {
	w, p := l.Watch(name)
	if p != nil {
		return nil, p
	}
	if w.Snapshot().Primed() {
		return w, nil
	}
	wait, cancel := context.WithTimeoutCause(ctx, l.PrimeWait, errNotPrimed)
	defer cancel()
	if err := w.Prime(wait); err != nil && ctx.Err() == nil {
		return nil, l.NotPrimed(w)
	}
	if err := ctx.Err(); err != nil {
		return nil, Of(err)
	}
	return w, nil
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
