package gateway

import (
	"context"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
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
