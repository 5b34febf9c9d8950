package figures

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// rawReader reads with the client library alone. Its goroutine ends with close.
type rawReader struct {
	cancel context.CancelFunc
	ended  chan error
}

// startRaw returns once the library has read the whole collection; changed is
// called in the reader's goroutine.
func (m *measurement) startRaw(changed func(value []byte)) (*rawReader, error) {
	ctx, cancel := context.WithCancel(m.ctx)
	r := &rawReader{cancel: cancel, ended: make(chan error, 1)}
	primed := make(chan struct{})
	if changed == nil {
		changed = func([]byte) {}
	}
	go func() { r.ended <- m.rig.Raw(ctx, sync.OnceFunc(func() { close(primed) }), changed) }()
	select {
	case <-primed:
		return r, nil
	case err := <-r.ended:
		cancel()
		return nil, fmt.Errorf("the client library alone: it ended before it had the collection: %w", err)
	}
}

func (r *rawReader) close() error {
	r.cancel()
	if err := <-r.ended; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the client library alone: %w", err)
	}
	return nil
}

// follower is a watch over the source, with one subscriber.
type follower struct {
	registry *watch.Registry
	watch    *watch.Watch
	sub      *log.Subscription
	batch    log.Batch
}

// follow returns once the watch is primed, and its subscriber has the snapshot.
func (m *measurement) follow() (*follower, error) {
	f := &follower{registry: watch.NewRegistry()}
	w, err := f.registry.Add(watch.Config{Name: "figures", Source: m.rig.Source})
	if err != nil {
		return nil, err
	}
	f.watch = w
	if err := w.Prime(m.ctx); err != nil {
		f.registry.Close()
		return nil, err
	}
	f.sub = w.Subscribe(log.SubscribeOptions{})
	for f.sub.Next(&f.batch) {
	}
	return f, nil
}

// read calls changed for each upsert, until ctx ends or it has had enough.
func (f *follower) read(ctx context.Context, changed func(value []byte) (enough bool)) error {
	for {
		wake := f.sub.Changed()
		for f.sub.Next(&f.batch) {
			for e := range f.batch.Events() {
				if e.Type == stream.Upsert && changed(e.Resource.Value) {
					return nil
				}
			}
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return fmt.Errorf("not every change came; the watch is %+v", f.watch.Status())
		}
	}
}

func (f *follower) close() {
	f.sub.Close()
	f.registry.Close()
}
