package informer

import (
	"fmt"
	"sync"

	"github.com/watchtide/watchtide/stream"
	"k8s.io/client-go/tools/cache"
)

// pending has the newest state of each object that has changed. The informer writes to it without ever waiting
// for its reader, and it has at most one entry for each object.
//
// Safe for concurrent use. It is a [cache.ResourceEventHandler].
type pending struct {
	// Static after construction.
	wake chan struct{} // 1 slot: there is something

	mu      sync.Mutex     // guards what follows
	objects map[string]any // by key; nil: the object is gone. nil as a whole: closed
	err     error
}

var _ cache.ResourceEventHandler = (*pending)(nil)

func newPending() *pending {
	return &pending{wake: make(chan struct{}, 1), objects: map[string]any{}}
}

// OnAdd implements [cache.ResourceEventHandler].
func (p *pending) OnAdd(object any, _ bool) { p.note(object, object) }

// OnUpdate implements [cache.ResourceEventHandler]. The object may be the same as before.
func (p *pending) OnUpdate(_, object any) { p.note(object, object) }

// OnDelete implements [cache.ResourceEventHandler].
func (p *pending) OnDelete(object any) { p.note(object, nil) }

// note notes what there is of an object now; nil: nothing.
func (p *pending) note(object, now any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.objects == nil:
		return
	case err != nil:
		p.err = fmt.Errorf("%w: informer: an object without a key: %w", stream.ErrInvalid, err)
	default:
		p.objects[key] = now
	}
	select {
	case p.wake <- struct{}{}:
	default: // it has not been received yet
	}
}

// take returns what has changed since the last time.
func (p *pending) take() (objects map[string]any, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	objects, p.objects = p.objects, map[string]any{}
	return objects, p.err
}

// close drops everything, also what the informer still reports.
func (p *pending) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects = nil
}
