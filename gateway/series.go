package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

const (
	defaultSeries = 100
	maxSeries     = 200
	// sampleBytes is about what an answer takes for one sample of one watch: eleven numbers, in
	// memory and as text.
	sampleBytes = 11 * 10
)

// record keeps the figures of the last hour until the function that it returns is called.
func (g *Gateway) record(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer g.series.Drop()
		for ctx.Err() == nil {
			g.now.Load().record(ctx)
		}
	}()
	return func() { cancel(); <-done }
}

// record returns once the settings are replaced, or ctx ends. It records nothing that nobody can
// ask for.
func (g *settings) record(ctx context.Context) {
	if !g.cfg.Metrics {
		g.series.Drop()
		select {
		case <-g.replaced:
		case <-ctx.Done():
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-g.replaced:
		case <-ctx.Done():
		}
	}()
	g.series.Run(ctx)
}

// lags returns the greatest lag of a subscriber, by watch.
func (g *Gateway) lags() map[string]uint64 {
	return introspection.AskLags(g.subscribers, g.shards.Carriers())
}

// seriesAnswer is what GET /v1/series answers.
type seriesAnswer struct {
	Instance        string `json:"instance"`
	DeliveryReports bool   `json:"delivery_reports"` // they are accepted
	introspection.SeriesAnswer
}

// handleSeries serves the figures of the last hour.
func (g *settings) handleSeries(w http.ResponseWriter, r *http.Request) {
	q, p := g.seriesQuery(r)
	if p != nil {
		problem.Write(w, p)
		return
	}
	answer := g.answers.Answer(limits.Payer(authz.IdentityOf(r.Context()), g.proxies.ClientOfRequest(r)))
	defer answer.Release()
	if err := answer.Reserve(r.Context(), int64(q.Limit+1)*q.Samples(time.Now())*sampleBytes); err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	body, err := json.Marshal(seriesAnswer{g.cfg.Instance, g.cfg.DeliveryReports, g.series.Ask(q)})
	if err != nil {
		problem.Write(w, problem.Of(err)) // never: everything in it can be marshalled
		return
	}
	wire.WriteJSON(w, r, append(body, '\n'))
}

// seriesQuery reads the parameters of a request for figures.
func (g *settings) seriesQuery(r *http.Request) (q introspection.SeriesQuery, p *problem.Problem) {
	query, p := problem.Query(r, "watch", "step", "since", "limit")
	if p != nil {
		return q, p
	}
	q = introspection.SeriesQuery{Entry: query.Get("watch"), Step: introspection.Fine, Limit: defaultSeries}
	switch step := query.Get("step"); step {
	case "", "1s":
	case "10s":
		q.Step = introspection.Coarse
	default:
		return q, problem.BadParameter("step", "step %q: want 1s, for the last five minutes, or 10s, for the last hour", step)
	}
	since, p := problem.Uint(query, "since", 1<<40)
	if p != nil {
		return q, p
	}
	q.Since = time.Unix(int64(since), 0)
	if query.Has("limit") {
		limit, p := problem.Uint(query, "limit", maxSeries)
		if p != nil {
			return q, p
		}
		q.Limit = int(limit)
	}
	if query.Has("watch") {
		q.Limit = 1
		return q, g.checkEntry(q.Entry)
	}
	return q, nil
}

// checkEntry returns a 404 for what is neither a watch of the configuration nor a template.
func (g *settings) checkEntry(name string) *problem.Problem {
	for _, t := range g.registry.Templates() {
		if t.Name() == name {
			return nil
		}
	}
	w, p := g.lookup.Known(name)
	if p == nil && w.Template() != nil {
		p = problem.New(http.StatusNotFound, "the figures of the watches of a template are added up: ask for watch %q", w.Template().Name())
	}
	if p != nil {
		p.Parameter = "watch"
	}
	return p
}
