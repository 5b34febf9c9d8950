package gateway

import (
	"context"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/pass"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// judge returns what decides whether streams may go on.
func (g *settings) judge() pass.Judge { return pass.Judge{Lookup: g.lookup, Credentials: g.who} }

// revocationsPause is how long the gateway waits before it looks for the watch of
// revocations again, once it was removed.
const revocationsPause = 100 * time.Millisecond

// followRevocations ends the streams of whoever is revoked, until the context ends. It is
// the one subscriber for all of them.
func (g *settings) followRevocations(ctx context.Context) {
	if g.cfg.Access.Revoked == "" {
		return
	}
	for ctx.Err() == nil {
		if w, ok := g.registry.Watch(g.cfg.Access.Revoked); ok {
			g.revokeAll(ctx, w)
		}
		select {
		case <-time.After(revocationsPause):
		case <-ctx.Done():
		}
	}
}

// revokeAll ends the streams that the resources of a watch revoke, until the watch is
// removed or the context ends.
func (g *settings) revokeAll(ctx context.Context, w *watch.Watch) {
	sub := w.Subscribe(log.SubscribeOptions{})
	defer sub.Close()
	var batch log.Batch
	for {
		for sub.Next(&batch) {
			for e := range batch.Events() {
				if e.Type == stream.Upsert {
					g.passes.Revoke(e.Resource.Key)
				}
			}
			batch.Release()
		}
		select {
		case <-sub.Changed():
		case <-w.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}
