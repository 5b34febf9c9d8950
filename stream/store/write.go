package store

import (
	"context"

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

// Put implements stream.Writer. It returns once the resource is in the store's file, if it has
// one, and in its log. A Put that only validates returns the revision that it would have had at that
// moment.
func (w *writer) Put(ctx context.Context, r stream.PutRequest) (stream.Resource, bool, error) {
	if err := w.check(ctx, r.Key); err != nil {
		return stream.Resource{}, false, err
	}
	value, err := w.store.value(r.Value)
	if err != nil {
		return stream.Resource{}, false, err
	}
	o := &op{watch: w.watch, key: r.Key, ifRevision: r.IfRevision, validateOnly: r.ValidateOnly, value: value}
	if r.Condition != nil {
		o.condition = func(old *stream.Resource) error { return r.Condition(old, value) }
	}
	err = w.store.do(o)
	return o.result, err == nil && !o.existed, err
}

// Delete implements stream.Writer. It returns once the delete is in the store's file, if it has
// one, and in its log.
func (w *writer) Delete(ctx context.Context, r stream.DeleteRequest) (bool, error) {
	if err := w.check(ctx, r.Key); err != nil {
		return false, err
	}
	o := &op{watch: w.watch, key: r.Key, ifRevision: r.IfRevision, validateOnly: r.ValidateOnly, condition: r.Condition, deletes: true}
	err := w.store.do(o)
	return o.existed, err
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

// present returns a resource; nil: it does not exist.
func present(r *stream.Resource, exists bool) *stream.Resource {
	if !exists {
		return nil
	}
	return r
}

// expect compares the current revision, 0 for none, with the expected one.
func expect(key string, want *uint64, got uint64) error {
	if want == nil || *want == got {
		return nil
	}
	return &stream.ConflictError{Key: key, Want: *want, Got: got}
}
