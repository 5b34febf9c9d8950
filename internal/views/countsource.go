package views

import (
	"context"
	"fmt"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// CountSource returns a source of the counts of another watch, which has a name and which open
// returns: all resources of it are counted.
func (v *Views) CountSource(name string, open func() (*watch.Watch, error), g *view.Grouping) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		of, err := open()
		if err != nil {
			return fmt.Errorf("watch %q, which is counted: %w", name, err)
		}
		counts, err := v.Count(of, g, Request{})
		if err != nil {
			return err
		}
		from := stream.Position{}
		if resume.Epoch != "" {
			from = stream.Position{Watch: name, Epoch: resume.Epoch, Upserts: resume.Revision, AsOf: resume.Revision}
		}
		reader := adapter.NewReader(adapter.ReaderConfig{Sink: sink, Watch: name, Where: fmt.Sprintf("the counts of watch %q", name)}, from)
		position, resumes, err := reader.Begin()
		if err != nil {
			return err
		}
		r := &countReader{of: of, counts: counts, reader: reader}
		o := log.SubscribeOptions{}
		if resumes {
			o.Resume = &position
		}
		r.Subscription = counts.Subscribe(o)
		defer r.Close()
		return r.follow(ctx)
	})
}

// countReader turns what a subscriber of a count is sent into the calls of a sink.
//
// Owned by the goroutine that runs Watch.
type countReader struct {
	*log.Subscription
	of, counts *watch.Watch
	reader     *adapter.Reader
	batch      log.Batch
	synced     bool   // the sink has had a whole state
	committed  uint64 // revision that it has
}

// countTypes are the types of events that a sink is told of.
var countTypes = map[stream.EventType]adapter.EventType{
	stream.Reset: adapter.Reset, stream.Upsert: adapter.Upsert, stream.Delete: adapter.Delete,
	stream.EndOfSnapshot: adapter.EndOfSnapshot, stream.Bookmark: adapter.Bookmark, stream.StatusChange: adapter.Status,
}

func (r *countReader) follow(ctx context.Context) error {
	for {
		counted, changed := r.of.Changed(), r.counts.Changed()
		if err := r.read(ctx); err != nil {
			return err
		}
		select {
		case <-counted: // a change of no group is progress
		case <-changed:
		case <-r.counts.Done():
			return errRemoved
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read passes on what there is.
func (r *countReader) read(ctx context.Context) error {
	if r.synced {
		_ = r.counts.Prime(ctx) // waits until the count has what the watch has; if it has not, its status says why
	} else if why := r.counts.Refused(); why != nil {
		return why
	}
	for r.Next(&r.batch) {
		err := r.pass()
		r.batch.Release()
		if err != nil {
			return err
		}
	}
	p, ok := r.Position()
	if !r.synced || !ok || p.Partial() || p.Upserts <= r.committed {
		return nil
	}
	r.committed = p.Upserts
	return r.reader.Receive(adapter.Event{Type: adapter.Bookmark, Revision: p.Upserts, Position: p.String()}, nil)
}

// pass passes on a batch. The last event has the position, if it has one.
func (r *countReader) pass() error {
	p, ok := r.Position()
	var last *adapter.Event
	for e := range r.batch.Events() {
		if last != nil {
			if err := r.reader.Receive(*last, nil); err != nil {
				return err
			}
		}
		last = &adapter.Event{
			Type: countTypes[e.Type], Resource: e.Resource, Revision: e.Revision, Count: uint64(e.Count),
			Horizon: e.Horizon, Conflated: e.Conflated, State: e.State, Reason: e.Reason,
		}
		r.synced = (r.synced || e.Type == stream.EndOfSnapshot) && e.Type != stream.Reset
	}
	if last == nil {
		return nil
	}
	if ok && r.batch.Boundary() {
		last.Position = p.String()
		if !p.Partial() {
			r.committed = p.Upserts
		}
	}
	return r.reader.Receive(*last, nil)
}
