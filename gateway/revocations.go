package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/internal/jwt"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// evaluator returns the evaluator of open streams.
func (g *settings) evaluator() authz.Evaluator {
	return authz.Evaluator{Lookup: g.lookup, Credentials: g.who}
}

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
			g.revokeThose(w, &batch)
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

// revokeThose ends the streams that a batch revokes. Somebody who revokes in a hurry, and gets the
// key wrong, must not believe that it is done.
func (g *settings) revokeThose(w *watch.Watch, batch *log.Batch) {
	wrong, first := 0, ""
	for e := range batch.Events() {
		if e.Type != stream.Upsert {
			continue
		}
		if !g.couldRevoke(e.Resource.Key) {
			wrong++
			first = cmp.Or(first, e.Resource.Key)
		}
		g.authorizations.Revoke(e.Resource.Key)
	}
	if wrong > 0 {
		g.log.Warn("resources match no credential: want keys such as token/NAME, session/ID and subject/ISSUER/SUBJECT with an issuer of the configuration, and in SUBJECT / written %2F, % written %25, and nothing else",
			"watch", w.Name(), "resources", wrong, "first", first)
	}
}

// couldRevoke reports whether a key could be that of somebody whose credential is accepted. The
// issuers of certificates are known only from these.
func (g *settings) couldRevoke(key string) bool {
	issuer, ok := access.ParseRevocation(key)
	c := g.cfg.Access.Credentials
	return ok && (issuer == "" || c.Certificates != "" || c.Cluster.IsIssuer(issuer) || slices.ContainsFunc(c.Issuers, func(i jwt.Issuer) bool { return i.URL == issuer }))
}
