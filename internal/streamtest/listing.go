package streamtest

import (
	"maps"
	"slices"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// listing is the answer of an upstream in which resources vanish to a request for
// the names of all keys. Never modified.
type listing struct {
	txns    int    // of its order
	head    uint64 // at the time of the request
	present State
}

func listed(txns []Transaction) *listing {
	last := txns[len(txns)-1]
	return &listing{txns: len(txns), head: last.Revision, present: last.After}
}

// known is the memory of a source of an upstream in which resources vanish, across
// connections.
type known struct {
	epoch    int // of Truth
	at       uint64
	keys     map[string]uint64 // their revisions
	complete uint64            // everything that vanished while the head was before it is known
	compared bool              // the newest listing was compared
}

func (k *known) note(c log.Change) {
	switch {
	case k.keys == nil:
	case c.Deleted:
		delete(k.keys, c.Key)
	default:
		k.keys[c.Key] = c.Revision
	}
}

// clone returns a copy: the next staged changes may never be committed.
func (k known) clone() known {
	k.keys = maps.Clone(k.keys)
	return k
}

// compare resumes where resources vanish: newer changes, and keys missing from the
// current listing, become visible together.
func (s *session) compare(from int, shown []Transaction) error {
	for _, txn := range shown[from:] {
		if txn.Vanished {
			continue
		}
		if err := s.stage(txn); err != nil {
			return err
		}
	}
	s.sent = len(shown)
	if err := s.remove(listed(shown)); err != nil {
		return err
	}
	return s.sink.Status(stream.InSync, "")
}

// compareNewest compares the newest listing, once everything that existed by then was sent.
func (s *session) compareNewest() error {
	l := s.polled
	if l == nil || s.known.compared || s.known.epoch != s.epoch || s.sent < l.txns || s.replica.upstream.deletes != Vanishing {
		return nil
	}
	return s.remove(l)
}

// remove deletes the keys missing from a listing, and commits.
func (s *session) remove(l *listing) error {
	for _, key := range sortedKnown(s.known.keys) {
		if _, there := l.present[key]; there || s.known.keys[key] > l.head {
			continue
		}
		if err := s.sink.Delete(key, 0); err != nil {
			return err
		}
		delete(s.known.keys, key)
	}
	s.known.compared = true
	return s.commit(max(s.known.at, l.head), max(s.known.complete, l.head))
}

func sortedKnown(keys map[string]uint64) []string { return slices.Sorted(maps.Keys(keys)) }

// commit ends a transaction at a revision. All keys that vanished before complete
// are known.
func (s *session) commit(revision, complete uint64) error {
	if s.replica.upstream.deletes != Vanishing {
		return s.sink.Commit(revision)
	}
	s.sink.DeletesCompleteTo(complete)
	if err := s.sink.Commit(revision); err != nil {
		return err
	}
	s.known.at, s.known.complete = revision, complete
	s.replica.mu.Lock()
	defer s.replica.mu.Unlock()
	s.replica.known = s.known.clone()
	return nil
}
