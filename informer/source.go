package informer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/watchtide/watchtide/stream"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Informer is what the source needs of an informer. A [cache.SharedInformer] is one, and so is an Informer of the
// package cache of controller-runtime.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
	IsStopped() bool
}

// Options are optional.
type Options struct {
	// Kind is the type of the objects. Informers of typed clients leave it out of them; if it is given, the
	// values have it as apiVersion and kind.
	Kind schema.GroupVersionKind
	// Value returns the value of an object, as JSON text; nil: the object is left out. It must not change the
	// object, and depends on nothing else. The default is the object as JSON, without metadata.managedFields.
	Value func(object any) ([]byte, error)
}

// Source follows an informer. It is a [stream.Source].
//
// Watch may be called again after it returned, from any goroutine, but never twice at once.
type Source struct {
	// Static after construction.
	informer Informer
	options  Options

	// Owned by Watch.
	epoch     string
	revision  uint64              // the newest sent to a sink
	sent      map[string][32]byte // hashes of the values, by key, as of committed
	committed uint64              // the newest accepted by a sink; 0: sent is invalid
}

var (
	_ stream.Source     = (*Source)(nil)
	_ stream.Continuing = (*Source)(nil)
)

var (
	errNone    = errors.New("informer: there is none: want the informer that is to be followed")
	errStopped = errors.New("informer: it has been stopped, and reports no changes")
)

// stopCheck is the time between two looks at whether the informer has been stopped, which it does not report.
const stopCheck = time.Second

// New returns a source that follows an informer. The program runs the informer, before or after; it may stop
// it once the watch has ended.
func New(informer Informer, options Options) *Source {
	return &Source{informer: informer, options: options, epoch: rand.Text()[:12]}
}

// Continue implements [stream.Continuing]: the first list is compared with the resources.
func (s *Source) Continue(from stream.Resume, resources iter.Seq[stream.Resource]) {
	s.epoch, s.revision, s.committed = from.Epoch, from.Revision, from.Revision
	s.sent = map[string][32]byte{}
	for r := range resources {
		s.sent[r.Key] = sha256.Sum256(r.Value)
	}
}

// Watch follows the informer until ctx ends, the informer is stopped, or the sink returns an error, and returns
// that error.
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	if s.informer == nil {
		return errNone
	}
	changes := newPending()
	registration, err := s.informer.AddEventHandler(changes)
	if err != nil {
		return fmt.Errorf("informer: %w", err)
	}
	defer func() {
		changes.close()
		_ = s.informer.RemoveEventHandler(registration) // a handler of a stopped informer may be gone already
	}()
	stopped := time.NewTicker(stopCheck)
	defer stopped.Stop()
	listed := registration.HasSyncedChecker().Done()
	for {
		wake := changes.wake
		if listed != nil {
			wake = nil // what has come is not the whole list
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-listed:
			listed = nil
			err = s.begin(changes, resume, sink)
		case <-wake:
			err = s.pass(changes, sink)
		case <-stopped.C:
			if s.informer.IsStopped() {
				return errStopped
			}
		}
		if err != nil {
			return err
		}
	}
}

// begin sends the whole list, or what of it differs from what the sink has.
func (s *Source) begin(changes *pending, resume stream.Resume, sink stream.Sink) error {
	listed, err := changes.take()
	if err != nil {
		return err
	}
	// Where a Commit failed, the sink may have accepted it or not: then a snapshot is due.
	continues := s.committed != 0 && resume.Epoch == s.epoch && resume.Revision == s.committed
	if !continues {
		s.sent, s.committed = map[string][32]byte{}, 0
		if err := sink.Reset(s.epoch); err != nil {
			return err
		}
	}
	for key := range s.sent {
		sink.Charge(cost(key))
		if _, there := listed[key]; !there {
			listed[key] = nil
		}
	}
	t := transaction{source: s, sink: sink}
	t.begin() // also if nothing has changed: it says that the sink has all of it
	if err := t.changes(listed); err != nil {
		return err
	}
	if err := t.commit(); err != nil || !continues {
		return err
	}
	return sink.Status(stream.InSync, "")
}

// pass sends what has changed since the last time.
func (s *Source) pass(changes *pending, sink stream.Sink) error {
	objects, err := changes.take()
	if err != nil {
		return err
	}
	t := transaction{source: s, sink: sink}
	if err := t.changes(objects); err != nil || !t.begun {
		return err
	}
	return t.commit()
}

// transaction is what is sent to a sink with one Commit.
type transaction struct {
	source *Source
	sink   stream.Sink
	begun  bool
}

// begin gives the transaction a revision. It is used once, even if the sink fails half-way.
func (t *transaction) begin() {
	if !t.begun {
		t.begun = true
		t.source.revision++
		t.source.committed = 0
	}
}

func (t *transaction) commit() error {
	if err := t.sink.Commit(t.source.revision); err != nil {
		return err
	}
	t.source.committed = t.source.revision
	return nil
}

// changes sends the objects, by key, that differ from what was sent; nil: there is none.
func (t *transaction) changes(objects map[string]any) error {
	for key, object := range objects {
		value, err := t.source.value(key, object)
		if err != nil {
			return err
		}
		if err := t.change(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) change(key string, value []byte) error {
	s := t.source
	before, had := s.sent[key]
	switch {
	case value == nil && !had:
		return nil
	case value == nil:
		t.begin()
		delete(s.sent, key)
		t.sink.Charge(-cost(key))
		return t.sink.Delete(key, s.revision)
	}
	hash := sha256.Sum256(value)
	if had && hash == before {
		return nil
	}
	t.begin()
	if s.sent[key] = hash; !had {
		t.sink.Charge(cost(key))
	}
	return t.sink.Upsert(stream.Resource{Key: key, Revision: s.revision, Value: value})
}

// cost is how many bytes are held for an object.
func cost(key string) int64 { return int64(len(key)) + 96 }

// value returns the value of an object as JSON on one line; nil: there is none.
func (s *Source) value(key string, object any) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	make := s.options.Value
	if make == nil {
		make = s.whole
	}
	text, err := make(object)
	if err != nil {
		return nil, fmt.Errorf("%w: informer: the object %.100q: %w", stream.ErrInvalid, key, err)
	}
	if text == nil {
		return nil, nil
	}
	line, ok := stream.CompactJSON(text)
	if !ok {
		return nil, fmt.Errorf("%w: informer: the object %.100q: its value is not JSON text", stream.ErrInvalid, key)
	}
	return line, nil
}

// whole returns an object as JSON, without metadata.managedFields.
func (s *Source) whole(object any) ([]byte, error) {
	o, ok := object.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("its type %T is none of Kubernetes: want Options.Value", object)
	}
	o = o.DeepCopyObject()
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	if kind := o.GetObjectKind(); !s.options.Kind.Empty() && kind.GroupVersionKind().Empty() {
		kind.SetGroupVersionKind(s.options.Kind)
	}
	return json.Marshal(o)
}
