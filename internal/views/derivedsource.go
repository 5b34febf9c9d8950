package views

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// CountSource returns a source of the counts of another watch, which has a name and which open
// returns: all resources of it are counted.
func (v *Views) CountSource(name string, open func() (*watch.Watch, error), g *view.Grouping) stream.Source {
	return derivedSource(name, open, false, func(of *watch.Watch) (*watch.Watch, error) { return v.Count(of, g, Request{}) }, nil)
}

// WindowSource returns a source of a window of another watch, which has a name and which open returns. A resource has
// the revision of the change with which it came into the window, or changed there: its own may be older than what the
// sink has.
func (v *Views) WindowSource(name string, open func() (*watch.Watch, error), d *view.Definition) stream.Source {
	return derivedSource(name, open, true, func(of *watch.Watch) (*watch.Watch, error) { return v.Open(of, d, Request{}) }, func(of *watch.Watch) int64 {
		v.mu.Lock()
		defer v.mu.Unlock()
		if e := v.orderOf(of, d); e != nil {
			return e.account.Own().Logs() // each of its windows pays for all of it
		}
		return 0
	})
}

// derivedSource returns a source of what make makes of another watch. renumbers says that revisions are those of the
// changes. beside returns how much memory that takes besides its log; nil: none.
func derivedSource(name string, open func() (*watch.Watch, error), renumbers bool, make func(*watch.Watch) (*watch.Watch, error), beside func(of *watch.Watch) int64) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		of, err := open()
		if err != nil {
			return fmt.Errorf("watch %q, of which this is made: %w", name, err)
		}
		made, err := make(of)
		if err != nil {
			return err
		}
		from := stream.Position{}
		if resume.Epoch != "" {
			from = stream.Position{Watch: name, Epoch: resume.Epoch, Upserts: resume.Revision, AsOf: resume.Revision}
		}
		reader := adapter.NewReader(adapter.ReaderConfig{Sink: sink, Watch: name, Where: fmt.Sprintf("what is made of watch %q", name)}, from)
		position, resumes, err := reader.Begin()
		if err != nil {
			return err
		}
		r := &derivedReader{of: of, made: made, reader: reader, renumbers: renumbers, sink: sink, beside: beside}
		o := log.SubscribeOptions{}
		if resumes {
			o.Resume = &position
		}
		r.Subscription = made.Subscribe(o)
		defer r.Close()
		return r.follow(ctx)
	})
}

// derivedReader turns what a subscriber of a count or of a window is sent into the calls of a sink.
//
// Owned by the goroutine that runs Watch.
type derivedReader struct {
	*log.Subscription
	of, made  *watch.Watch
	reader    *adapter.Reader
	renumbers bool
	sink      stream.Sink
	beside    func(of *watch.Watch) int64
	charged   int64 // bytes that the sink knows of
	batch     log.Batch
	held      []stream.Event // of a window, until it is known which revision they have
	synced    bool           // the sink has had a whole state
	committed uint64         // revision that it has
}

// countTypes are the types of events that a sink is told of.
var countTypes = map[stream.EventType]adapter.EventType{
	stream.Reset: adapter.Reset, stream.Upsert: adapter.Upsert, stream.Delete: adapter.Delete,
	stream.EndOfSnapshot: adapter.EndOfSnapshot, stream.Bookmark: adapter.Bookmark, stream.StatusChange: adapter.Status,
}

func (r *derivedReader) follow(ctx context.Context) error {
	for {
		counted, changed := r.of.Changed(), r.made.Changed()
		if err := r.read(ctx); err != nil {
			return err
		}
		select {
		case <-counted: // a change of no group is progress
		case <-changed:
		case <-r.made.Done():
			return errRemoved
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// charge charges what is made of the other watch, which only this one is made for, to the watch of the sink. That ends ctx if
// it is too much.
func (r *derivedReader) charge() {
	holds := r.made.Memory().Logs() + r.made.Memory().Superseded()
	if r.beside != nil {
		holds += r.beside(r.of)
	}
	r.sink.Charge(holds - r.charged)
	r.charged = holds
}

// read passes on what there is.
func (r *derivedReader) read(ctx context.Context) error {
	defer r.charge()
	if r.synced {
		_ = r.made.Prime(ctx) // waits until the count has what the watch has; if it has not, its status says why
	} else if why := r.made.Refused(); why != nil {
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

// events returns the events of a batch, and those that were held before it, once they are to be passed on.
func (r *derivedReader) events(p stream.Position, placed bool) []stream.Event {
	if !r.renumbers {
		return slices.Collect(r.batch.Events())
	}
	begins := false
	for e := range r.batch.Events() {
		if begins = e.Type == stream.Reset; begins {
			r.held = nil
		}
		e.Resource.Value = bytes.Clone(e.Resource.Value)
		r.held = append(r.held, e)
	}
	if !begins && (!placed || !r.batch.Boundary() || p.Partial()) {
		return nil // the transaction, or the catch-up, goes on
	}
	out := r.held
	r.held = nil
	for i := range out {
		out[i].Resource.Revision = p.AsOf
	}
	return out
}

// pass passes on a batch. The last event has the position, if it has one.
func (r *derivedReader) pass() error {
	p, ok := r.Position()
	var last *adapter.Event
	for _, e := range r.events(p, ok) {
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
