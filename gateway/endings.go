package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

const (
	// maxEndings is the number of resources in the watch of revocations from which on the end of a
	// session ends all that its principal began: then there is one resource for each principal.
	maxEndings = 100_000
	// endingsSweep is the time between two searches for endings that are not needed any more.
	endingsSweep = 10 * time.Minute
)

// revocations is the watch whose resources are revocations, and sessions that have ended.
type revocations struct {
	// Static after construction.
	registry *watch.Registry
	watch    string
	most     int // maxEndings

	marking sync.Mutex // held while a time is written: a later one is written later
}

// revocations returns what is revoked.
func (g *settings) revocations() *revocations {
	return &revocations{registry: g.registry, watch: g.cfg.Access.Revoked, most: maxEndings}
}

// Revoked implements credential.Revocations. While the watch is stale, its last state counts.
func (r *revocations) Revoked(p *access.Principal) (bool, error) {
	w, ok := r.registry.Watch(r.watch)
	if !ok || !w.Snapshot().Primed() {
		return false, fmt.Errorf("watch %q, which has what is revoked, is not primed", r.watch)
	}
	s := w.Snapshot()
	return slices.ContainsFunc(p.RevocationKeys(), func(key string) bool {
		_, revoked := s.Get(key)
		return revoked
	}), nil
}

// SessionsEnded implements credential.Revocations.
func (r *revocations) SessionsEnded(p *access.Principal) time.Time {
	w, ok := r.registry.Watch(r.watch)
	if !ok {
		return time.Time{}
	}
	until, _ := ending(w.Snapshot(), credential.EndingsKey(p))
	return until
}

// ending returns what a resource says about sessions that have ended; zero: there is none.
func ending(s log.Snapshot, key string) (until, expires time.Time) {
	resource, ok := s.Get(key)
	if !ok {
		return until, expires
	}
	return credential.ReadEnding(key, resource.Value)
}

// Keep implements credential.Revocations. What makes other resources needless is written before they
// are removed.
func (r *revocations) Keep(ctx context.Context, e credential.Ending) error {
	w, ok := r.registry.Watch(r.watch)
	if !ok || w.Writer() == nil {
		return nil
	}
	if w.Snapshot().Count() >= r.most {
		return r.endAll(ctx, w, e)
	}
	if err := put(ctx, w, e.Session, e.Value(time.Time{}, e.Expires)); err != nil {
		return err
	}
	if until, _ := ending(w.Snapshot(), e.Whose); until.Before(e.Until) {
		if err := r.endAll(ctx, w, e); err != nil {
			return err
		}
	}
	for _, key := range e.Needless {
		if _, err := w.Writer().Delete(ctx, stream.DeleteRequest{Key: key}); err != nil {
			return err
		}
	}
	return nil
}

// endAll writes that all sessions of a principal have ended that began until now.
func (r *revocations) endAll(ctx context.Context, w *watch.Watch, e credential.Ending) error {
	r.marking.Lock()
	defer r.marking.Unlock()
	if _, before := ending(w.Snapshot(), e.Whose); before.After(e.Expires) {
		e.Expires = before
	}
	return put(ctx, w, e.Whose, e.Value(time.Now(), e.Expires))
}

func put(ctx context.Context, w *watch.Watch, key string, value []byte) error {
	_, _, err := w.Writer().Put(ctx, stream.PutRequest{Key: key, Value: value})
	return err
}

// forgetEndings removes the endings of sessions that nobody could use any more, until the context ends.
func (g *settings) forgetEndings(ctx context.Context) {
	if g.cfg.Access.Revoked == "" {
		return
	}
	for {
		if w, ok := g.registry.Watch(g.cfg.Access.Revoked); ok && w.Writer() != nil {
			if err := forgetEndings(ctx, w, time.Now()); err != nil && ctx.Err() == nil {
				g.log.Warn("sessions that ended, and have expired, cannot be removed from the watch of revocations", "watch", w.Name(), "error", err.Error())
			}
		}
		select {
		case <-time.After(endingsSweep):
		case <-ctx.Done():
			return
		}
	}
}

// forgetEndings is forgetEndings once.
func forgetEndings(ctx context.Context, w *watch.Watch, now time.Time) error {
	for res := range w.Snapshot().Resources() {
		_, expires := credential.ReadEnding(res.Key, res.Value)
		if expires.IsZero() || !now.After(expires) {
			continue
		}
		_, err := w.Writer().Delete(ctx, stream.DeleteRequest{Key: res.Key, IfRevision: &res.Revision})
		var changed *stream.ConflictError
		if err != nil && !errors.As(err, &changed) {
			return err
		}
	}
	return nil
}
