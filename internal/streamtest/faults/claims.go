package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// claims are the states that a source reports of its upstream, where the
// upstream has no revisions and the source counts. Subscribers are checked
// against the claims, and the claims against the writes: see [claims.hold].
// Safe for concurrent use.
type claims struct {
	mu     sync.Mutex
	orders []*order
}

// of returns the source, recording its claims from then on.
func (c *claims) of(source stream.Source) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		return source.Watch(ctx, resume, &claiming{Sink: sink, claims: c})
	})
}

// claiming records one Watch call, and is owned by it.
type claiming struct {
	stream.Sink
	claims  *claims
	changes []log.Change
	epoch   string // of the snapshot under way; "": there is none
}

func (s *claiming) Reset(epoch string) error {
	s.changes, s.epoch = nil, stream.CanonicalEpoch(epoch)
	return s.Sink.Reset(epoch)
}

func (s *claiming) Upsert(r stream.Resource) error {
	s.changes = append(s.changes, log.Change{Resource: r})
	return s.Sink.Upsert(r)
}

func (s *claiming) Delete(key string, revision uint64) error {
	s.changes = append(s.changes, log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
	return s.Sink.Delete(key, revision)
}

// Commit holds the lock until the claim is recorded: subscribers see the commit
// before it returns, and must not be checked against claims without it.
func (s *claiming) Commit(revision uint64) error {
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	if err := s.Sink.Commit(revision); err != nil {
		return err
	}
	s.claims.take(s.epoch, revision, s.changes)
	s.changes, s.epoch = nil, ""
	return nil
}

// take notes a transaction; with an epoch, a snapshot. mu is held.
func (c *claims) take(epoch string, revision uint64, changes []log.Change) {
	last := len(c.orders) - 1
	switch {
	case epoch != "" && (last < 0 || c.orders[last].epoch != epoch):
		c.orders = append(c.orders, &order{epoch: epoch, state: streamtest.State{}})
		last++
	case epoch != "":
		changes = c.orders[last].difference(changes, revision)
	}
	if len(changes) > 0 {
		c.orders[last].add(revision, changes...)
	}
}

// difference returns the changes that a snapshot makes within the same order.
func (o *order) difference(snapshot []log.Change, revision uint64) (changes []log.Change) {
	there := map[string]bool{}
	for _, c := range snapshot {
		there[c.Key] = true
		if o.state[c.Key] != versionOf(c) {
			changes = append(changes, c)
		}
	}
	for key := range o.state {
		if !there[key] {
			changes = append(changes, log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
		}
	}
	return changes
}

// hold fails if a key is claimed to have had a value that it never had, or values in
// another order. A value that was only there for a moment need not be claimed.
func (c *claims) hold(written []*order) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := valuesByKey(written)
	var errs []error
	for key, claimed := range valuesByKey(c.orders) {
		left := was[key]
		for _, value := range claimed {
			at := slices.Index(left, value)
			if at < 0 {
				errs = append(errs, fmt.Errorf("the source claims that %q was %s, and after what it claimed before it was %q", key, named(value), left))
				break
			}
			left = left[at+1:]
		}
	}
	return errors.Join(errs...)
}

func named(value string) string {
	if value == "" {
		return "deleted"
	}
	return value
}

// valuesByKey are all values that each key ever had; "" is a deletion.
func valuesByKey(orders []*order) map[string][]string {
	values := map[string][]string{}
	for _, o := range orders {
		for _, txn := range o.txns {
			for _, c := range txn.changes {
				values[c.Key] = append(values[c.Key], versionOf(c).Value)
			}
		}
	}
	return values
}
