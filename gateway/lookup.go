package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream/watch"
)

// lookup finds the watches that requests name.
//
// Static after construction.
type lookup struct {
	registry  *watch.Registry
	primeWait time.Duration // how long a request waits for a watch that is not primed
	retry     time.Duration // in answers with 503
}

// watch returns the watch of that name, or a 404 that names the nearest one.
func (l lookup) watch(name string) (*watch.Watch, *problem) {
	if w, ok := l.registry.Watch(name); ok {
		return w, nil
	}
	return nil, l.unknown(name)
}

func (l lookup) unknown(name string) *problem {
	var names []string
	for _, w := range l.registry.Watches() {
		names = append(names, w.Name())
	}
	p := newProblem(http.StatusNotFound, "there is no watch %q; GET /v1/watches lists them", name).onWatch(name)
	if near := suggest.Nearest(name, names); near != "" {
		p = newProblem(http.StatusNotFound, "there is no watch %q: did you mean %q?", name, near).onWatch(name)
	}
	return p
}

// primed returns the watch of that name once it is primed. An on-demand watch is
// started. A watch that is not primed in time is answered with 503 and Retry-After.
func (l lookup) primed(ctx context.Context, name string) (*watch.Watch, *problem) {
	w, p := l.watch(name)
	if p != nil {
		return nil, p
	}
	if w.View().Primed() {
		return w, nil
	}
	wait, cancel := context.WithTimeoutCause(ctx, l.primeWait, errNotPrimed)
	defer cancel()
	if err := w.Prime(wait); err != nil && ctx.Err() == nil {
		return nil, l.notPrimed(w)
	}
	if err := ctx.Err(); err != nil {
		return nil, problemOf(err)
	}
	return w, nil
}

var errNotPrimed = errors.New("the watch was not primed in time")

// notPrimed returns a 503 that says why there is nothing to serve yet.
func (l lookup) notPrimed(w *watch.Watch) *problem {
	why := ""
	if reason := w.View().Status().Reason; reason != "" {
		why = ": " + reason
	}
	p := newProblem(http.StatusServiceUnavailable,
		"watch %q has not received its first complete snapshot yet%s", w.Name(), why).onWatch(w.Name())
	p.retryAfter = max(l.retry, time.Second)
	return p
}
