package view

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Source follows a part of a watch. It is a [stream.Source].
//
// Watch is called by one goroutine at a time; Unmatchable by any, at any time.
type Source struct {
	// Static after construction.
	of         string
	open       Opener
	definition *view.Definition

	unmatchable atomic.Uint64

	// Owned by Watch.
	epochs  epochs
	members members // as committed
	held    int64   // bytes of members, as reported in this call
}

var (
	_ stream.Source      = (*Source)(nil)
	_ stream.Unmatchable = (*Source)(nil)
)

// Opener returns the watch that a source follows a part of. It is called for each connection: a
// template may have removed the watch since the last one.
type Opener func(ctx context.Context) (*watch.Watch, error)

// New returns a Source of the part that a definition selects of the watch with that name.
func New(of string, open Opener, d *view.Definition) *Source {
	return &Source{of: of, open: open, definition: d, epochs: epochs{definition: d}, members: newMembers(0)}
}

// Unmatchable implements [stream.Unmatchable]: the filter fails on some values.
func (s *Source) Unmatchable() uint64 { return s.unmatchable.Load() }

// Watch implements [stream.Source].
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	of, err := s.open(ctx)
	if err != nil {
		return fmt.Errorf("watch %q, of which this is a view: %w", s.of, err)
	}
	select {
	case <-of.Done():
		return s.removed() // its log can still be read, and would look as if it were in sync
	default:
	}
	from, resumes := s.epochs.resume(s.of, resume)
	options := log.SubscribeOptions{}
	if resumes {
		options.Resume = &from
	}
	s.held = 0
	n := s.narrow(sink, resumes)
	r := adapter.NewReader(adapter.ReaderConfig{
		Sink: n, Watch: s.of, Where: fmt.Sprintf("view of watch %q", s.of), Enter: s.epochs.enter,
	}, from)
	if _, _, err := r.Begin(); err != nil {
		return err
	}
	sub := of.Subscribe(options) // which keeps a template from removing the watch
	defer sub.Close()
	for {
		if err := receive(ctx, r, n, sub); err != nil {
			return err
		}
		if err := s.wait(ctx, of, sub); err != nil {
			return err
		}
	}
}

// receive passes on everything there is.
func receive(ctx context.Context, r *adapter.Reader, n *narrowed, sub *log.Subscription) error {
	var batch log.Batch
	for sub.Next(&batch) {
		if at, age := batch.Committed(); age > 0 {
			n.Sink.SetTimestamp(at.Add(-age))
		}
		for _, e := range events(sub, &batch) {
			if e.unseen {
				n.unseen(e.Resource.Key)
			}
			if err := r.Receive(e.Event, nil); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// received is an event of the watch.
type received struct {
	adapter.Event
	unseen bool // it deletes a resource that the watch did not have
}

// events returns the events of a batch. The last one that is not a status has the
// position, if a reader may resume there.
func events(sub *log.Subscription, b *log.Batch) (out []received) {
	last := -1
	for e := range b.Events() {
		if e.Type != stream.StatusChange {
			last = len(out)
		}
		out = append(out, received{event(e), e.Unseen})
	}
	if position, ok := sub.Position(); ok && b.Boundary() && last >= 0 {
		out[last].Position = position.String()
	}
	return out
}

var types = map[stream.EventType]adapter.EventType{
	stream.Reset: adapter.Reset, stream.Upsert: adapter.Upsert, stream.Delete: adapter.Delete,
	stream.EndOfSnapshot: adapter.EndOfSnapshot, stream.Bookmark: adapter.Bookmark, stream.StatusChange: adapter.Status,
}

func event(e stream.Event) adapter.Event {
	return adapter.Event{
		Type: types[e.Type], Resource: e.Resource, Revision: e.Revision, Count: uint64(e.Count),
		Horizon: e.Horizon, Conflated: e.Conflated, State: e.State, Reason: e.Reason,
	}
}

// wait returns when there may be more.
func (s *Source) wait(ctx context.Context, of *watch.Watch, sub *log.Subscription) error {
	var deadline <-chan time.Time
	if at := sub.Deadline(); !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		deadline = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-of.Done():
		return s.removed()
	case <-sub.Changed():
	case <-deadline:
	}
	return nil
}

func (s *Source) removed() error {
	return fmt.Errorf("watch %q, of which this is a view, was removed", s.of)
}
