package view

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/source/internal/protocol"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// Source follows a part of a watch. It is a [stream.Source].
//
// Watch is called by one goroutine at a time; Unmatchable by any, at any time.
type Source struct {
	// Static after construction.
	of         *watch.Watch
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

// New returns a Source of the part of a watch that a definition selects.
func New(of *watch.Watch, d *view.Definition) *Source {
	return &Source{of: of, definition: d, epochs: epochs{definition: d}, members: newMembers(0)}
}

// Unmatchable implements [stream.Unmatchable]: the filter fails on some values.
func (s *Source) Unmatchable() uint64 { return s.unmatchable.Load() }

// Watch implements [stream.Source].
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	select {
	case <-s.of.Done():
		return s.removed() // its log can still be read, and would look as if it were in sync
	default:
	}
	from, resumes := s.epochs.resume(s.of.Name(), resume)
	options := log.SubscribeOptions{}
	if resumes {
		options.Resume = &from
	}
	s.held = 0
	r := protocol.New(protocol.Config{
		Sink: s.narrow(sink, resumes), Watch: s.of.Name(), Where: fmt.Sprintf("view of watch %q", s.of.Name()), Enter: s.epochs.enter,
	}, from)
	if _, _, err := r.Begin(); err != nil {
		return err
	}
	sub := s.of.Subscribe(options)
	defer sub.Close()
	for {
		if err := receive(ctx, r, sub); err != nil {
			return err
		}
		if err := s.wait(ctx, sub); err != nil {
			return err
		}
	}
}

// receive passes on everything there is.
func receive(ctx context.Context, r *protocol.Reader, sub *log.Subscription) error {
	var batch log.Batch
	for sub.Next(&batch) {
		for _, e := range events(sub, &batch) {
			if err := r.Receive(e, nil); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// events returns the events of a batch. The last one that is not a status has the
// position, if a reader may resume there.
func events(sub *log.Subscription, b *log.Batch) (out []protocol.Event) {
	last := -1
	for e := range b.Events() {
		if e.Type != stream.StatusChange {
			last = len(out)
		}
		out = append(out, event(e))
	}
	if position, ok := sub.Position(); ok && b.Boundary() && last >= 0 {
		out[last].Position = position.String()
	}
	return out
}

var types = map[stream.EventType]protocol.Type{
	stream.Reset: protocol.Reset, stream.Upsert: protocol.Upsert, stream.Delete: protocol.Delete,
	stream.EndOfSnapshot: protocol.EndOfSnapshot, stream.Bookmark: protocol.Bookmark, stream.StatusChange: protocol.Status,
}

func event(e stream.Event) protocol.Event {
	return protocol.Event{
		Type: types[e.Type], Resource: e.Resource, Revision: e.Revision, Count: uint64(e.Count),
		Horizon: e.Horizon, State: e.State, Reason: e.Reason,
	}
}

// wait returns when there may be more.
func (s *Source) wait(ctx context.Context, sub *log.Subscription) error {
	var deadline <-chan time.Time
	if at := sub.Deadline(); !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		deadline = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.of.Done():
		return s.removed()
	case <-sub.Changed():
	case <-deadline:
	}
	return nil
}

func (s *Source) removed() error {
	return fmt.Errorf("watch %q, of which this is a view, was removed", s.of.Name())
}
