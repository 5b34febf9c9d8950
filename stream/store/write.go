package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// Writer returns a writer to one watch. The watch is created, empty, if it does not
// exist. If the name is not valid for a watch, each write returns an error.
//
// Every write is a transaction of its own, and a Put of an identical value is a
// change too: it gets a new revision.
func (s *Store) Writer(watch string) stream.Writer {
	w, err := s.open(watch)
	return &writer{store: s, watch: w, err: err}
}

var _ interface {
	stream.ValueLimiter
	stream.ConditionalWriter
} = (*writer)(nil)

// writer writes to one watch.
type writer struct {
	// Static after construction.
	store *Store
	watch *watch
	err   error // of opening the watch
}

// TakesConditions implements stream.ConditionalWriter.
func (*writer) TakesConditions() {}

// MaxValueBytes implements stream.ValueLimiter.
func (w *writer) MaxValueBytes() int64 { return w.store.config.Load().MaxValueBytes }

// Put implements stream.Writer. It returns once the resource is in the store's log.
// A Put that only validates returns the revision that it would have had at that
// moment.
func (w *writer) Put(ctx context.Context, r stream.PutRequest) (stream.Resource, bool, error) {
	if err := w.check(ctx, r.Key); err != nil {
		return stream.Resource{}, false, err
	}
	value, err := w.store.value(r.Value)
	if err != nil {
		return stream.Resource{}, false, err
	}
	return w.store.put(w.watch, r, value)
}

// Delete implements stream.Writer. It returns once the delete is in the store's
// log.
func (w *writer) Delete(ctx context.Context, r stream.DeleteRequest) (bool, error) {
	if err := w.check(ctx, r.Key); err != nil {
		return false, err
	}
	return w.store.delete(w.watch, r)
}

func (w *writer) check(ctx context.Context, key string) error {
	switch {
	case w.err != nil:
		return w.err
	case ctx.Err() != nil:
		return ctx.Err()
	case key == "":
		return &stream.InvalidError{What: "key", Got: key, Want: "at least one byte"}
	case len(key) > MaxKeyBytes:
		return &stream.TooLargeError{What: "key", Size: int64(len(key)), Limit: MaxKeyBytes}
	}
	return nil
}

// value checks a value as it was written, without the store's lock. The result
// may alias raw.
func (s *Store) value(raw []byte) ([]byte, error) {
	if most := s.config.Load().MaxValueBytes; int64(len(raw)) > most {
		return nil, &stream.TooLargeError{What: "value", Size: int64(len(raw)), Limit: most}
	}
	value, ok := stream.CompactJSON(raw)
	if !ok {
		return nil, &stream.InvalidError{What: "value", Got: string(raw[:min(len(raw), 128)]), Want: "JSON text in UTF-8"}
	}
	return value, nil
}

func (s *Store) put(w *watch, r stream.PutRequest, value []byte) (stored stream.Resource, created bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w = s.current(w)
	old, exists := w.log.Snapshot().Get(r.Key)
	if r.Condition != nil {
		if err := r.Condition(present(&old, exists), value); err != nil {
			return stored, false, err
		}
	}
	if err := expect(r.Key, r.IfRevision, old.Revision); err != nil {
		return stored, false, err
	}
	grows := int64(len(value) - len(old.Value))
	if !exists {
		grows += int64(len(r.Key))
	}
	// A write that makes the store smaller is accepted even if the store is still
	// too large.
	if most := s.config.Load().MaxBytes; grows > 0 && s.bytes+grows > most {
		// The size would tell how long values are that the writer may not read.
		return stored, false, &stream.TooLargeError{What: "store", Limit: most}
	}
	stored = stream.Resource{Key: r.Key, Revision: s.revision + 1, Value: value}
	if r.ValidateOnly {
		stored.Value = bytes.Clone(value)
		return stored, !exists, nil
	}
	if err := s.commit(w, log.Change{Resource: stored}, grows); err != nil {
		return stream.Resource{}, false, err
	}
	stored, _ = w.log.Snapshot().Get(r.Key) // the log's copy, not the writer's
	return stored, !exists, nil
}

func (s *Store) delete(w *watch, r stream.DeleteRequest) (deleted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w = s.current(w)
	old, exists := w.log.Snapshot().Get(r.Key)
	if r.Condition != nil {
		if err := r.Condition(present(&old, exists)); err != nil {
			return false, err
		}
	}
	if err := expect(r.Key, r.IfRevision, old.Revision); err != nil {
		return false, err
	}
	if !exists || r.ValidateOnly {
		return exists, nil
	}
	gone := stream.Resource{Key: r.Key, Revision: s.revision + 1}
	err = s.commit(w, log.Change{Resource: gone, Deleted: true}, -int64(len(r.Key)+len(old.Value)))
	return err == nil, err
}

// present returns a resource; nil: it does not exist.
func present(r *stream.Resource, exists bool) *stream.Resource {
	if !exists {
		return nil
	}
	return r
}

// commit makes one change at the next revision. The caller holds mu.
func (s *Store) commit(w *watch, c log.Change, grows int64) error {
	_, err := w.log.Commit([]log.Change{c}, c.Revision)
	if errors.Is(err, memory.ErrExceeded) {
		// The sizes would tell how long values are that the writer may not read.
		return &stream.TooLargeError{What: "memory of all watches", Limit: s.memory.Bytes()}
	}
	if err != nil {
		return err
	}
	s.keep(w)
	s.revision = c.Revision
	s.bytes += grows
	return nil
}

// expect compares the current revision, 0 for none, with the expected one.
func expect(key string, want *uint64, got uint64) error {
	if want == nil || *want == got {
		return nil
	}
	return &stream.ConflictError{Key: key, Want: *want, Got: got}
}
