package gateway

import (
	"context"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/pass"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// judge returns the judge of open streams.
func (g *settings) judge() pass.Judge { return pass.Judge{Lookup: g.lookup, Credentials: g.who} }

// revocationsPause is the time after which the gateway looks again for a watch of revocations
// that was removed.
const revocationsPause = 100 * time.Millisecond

// followRevocations ends the streams of revoked principals, until the context ends. It is one
// subscriber for all streams.
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
