package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream/watch"
)

// watch returns the watch of that name, or a 404 that names the nearest one.
func (g *Gateway) watch(name string) (*watch.Watch, *problem) {
	if w, ok := g.registry.Watch(name); ok {
		return w, nil
	}
	return nil, g.unknownWatch(name)
}

func (g *Gateway) unknownWatch(name string) *problem {
	var names []string
	for _, w := range g.registry.Watches() {
		names = append(names, w.Name())
	}
	p := newProblem(http.StatusNotFound, "there is no watch %q; GET /v1/watches lists them", name).onWatch(name)
	if near := suggest.Nearest(name, names); near != "" {
		p = newProblem(http.StatusNotFound, "there is no watch %q: did you mean %q?", name, near).onWatch(name)
	}
	return p
}

// primedWatch returns the watch of that name once it is primed. An on-demand watch is
// started. After waiting PrimeWait it returns a 503 with Retry-After.
func (g *Gateway) primedWatch(ctx context.Context, name string) (*watch.Watch, *problem) {
	w, p := g.watch(name)
	if p != nil {
		return nil, p
	}
	if w.View().Primed() {
		return w, nil
	}
	wait, cancel := context.WithTimeoutCause(ctx, g.cfg.PrimeWait, errNotPrimed)
	defer cancel()
	if err := w.Prime(wait); err != nil && ctx.Err() == nil {
		return nil, g.notPrimed(w)
	}
	if err := ctx.Err(); err != nil {
		return nil, problemOf(err)
	}
	return w, nil
}

var errNotPrimed = errors.New("the watch was not primed in time")

// notPrimed returns a 503 that says why there is nothing to serve yet.
func (g *Gateway) notPrimed(w *watch.Watch) *problem {
	why := ""
	if reason := w.View().Status().Reason; reason != "" {
		why = ": " + reason
	}
	p := newProblem(http.StatusServiceUnavailable,
		"watch %q has not received its first complete snapshot yet%s", w.Name(), why).onWatch(w.Name())
	p.retryAfter = max(g.cfg.Retry, time.Second)
	return p
}
