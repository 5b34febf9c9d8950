package host

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// The collections.
const (
	Processes  = "processes"
	Interfaces = "interfaces"
	Mounts     = "mounts"
)

const (
	// DefaultInterval is the time from the end of one poll to the next.
	DefaultInterval = 2 * time.Second
	// MinInterval keeps a poll from costing more than the activity it observes,
	// and the CPU share of a process from being the noise of one clock tick.
	MinInterval = 100 * time.Millisecond
)

// Config configures a Source.
type Config struct {
	// Collection is Processes, Interfaces or Mounts. Required.
	Collection string `yaml:"-"`
	// Interval is the time between two polls, at least MinInterval.
	// 0: DefaultInterval.
	Interval time.Duration `yaml:"interval,min=100ms"`
}

// Source follows one collection of this machine. It is a stream.Source.
//
// Watch may be called again after it returned, from any goroutine, but never
// twice at once.
type Source struct {
	// Static after construction.
	interval time.Duration

	// Owned by Watch.
	epoch     string
	reader    reader
	revision  uint64            // the newest sent to a sink
	last      map[string][]byte // value by key, as of committed
	committed uint64            // the newest accepted by a sink; 0: last is invalid
}

var (
	_ stream.Source     = (*Source)(nil)
	_ stream.Continuing = (*Source)(nil)
)

// reader lists the current resources of the operating system.
type reader interface {
	// read returns every resource once, in a stable order. An error means
	// that the list is unavailable, and not that it is empty; a problem with
	// only one resource is not an error.
	read(ctx context.Context) ([]item, error)
}

// item is the current state of one resource of the operating system.
type item struct {
	key   string
	value []byte // JSON on one line
}

// New returns a source, or a *stream.InvalidError for an invalid
// collection or interval.
func New(c Config) (*Source, error) {
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if c.Interval < MinInterval {
		return nil, &stream.InvalidError{What: "interval", Got: c.Interval.String(), Want: "at least " + MinInterval.String()}
	}
	r, err := newReader(c.Collection)
	if err != nil {
		return nil, err
	}
	return newSource(r, c.Interval), nil
}

func newReader(collection string) (reader, error) {
	switch collection {
	case Processes:
		return newProcessReader()
	case Interfaces:
		return interfaceReader{}, nil
	case Mounts:
		return newMountReader(), nil
	default:
		want := fmt.Sprintf("%q, %q or %q", Processes, Interfaces, Mounts)
		return nil, &stream.InvalidError{What: "collection", Got: collection, Want: want}
	}
}

func newSource(r reader, interval time.Duration) *Source {
	return &Source{interval: interval, epoch: adapter.NewEpoch(), reader: r}
}

// Continue implements stream.Continuing.
func (s *Source) Continue(from stream.Resume, resources iter.Seq[stream.Resource]) {
	s.epoch, s.revision, s.committed = from.Epoch, from.Revision, from.Revision
	s.last = map[string][]byte{}
	for r := range resources {
		s.last[r.Key] = bytes.Clone(r.Value)
	}
}

// Watch polls until ctx ends, the operating system cannot be read, or the sink
// returns an error, and returns that error. If resume is the newest that a sink
// accepted from this Source, it sends the differences; else a snapshot.
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	if err := s.catchUp(ctx, resume, sink); err != nil {
		return err
	}
	// Not a ticker: a machine so slow that polls take longer than the interval
	// must not be polled without a pause.
	timer := time.NewTimer(s.interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if err := s.poll(ctx, sink); err != nil {
			return err
		}
		timer.Reset(s.interval)
	}
}

// catchUp brings the sink from resume to the present state, and reports it.
func (s *Source) catchUp(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	now, err := s.reader.read(ctx)
	if err != nil {
		return err
	}
	if s.continues(resume) {
		after, changes := diff(s.last, now)
		if err := s.send(sink, after, changes); err != nil {
			return err
		}
		return sink.Status(stream.InSync, "")
	}
	s.last, s.committed = nil, 0
	if err := sink.Reset(s.epoch); err != nil {
		return err
	}
	after, changes := diff(nil, now)
	return s.send(sink, after, changes)
}

// continues reports whether the sink holds exactly the last state sent. Where a
// Commit failed, the source does not know whether the sink accepted it: then
// the revisions differ if it did, and a snapshot is due.
func (s *Source) continues(resume stream.Resume) bool {
	return resume.Epoch == s.epoch && s.committed != 0 && resume.Revision == s.committed
}

// poll sends the changes since the last Commit, if there are any.
func (s *Source) poll(ctx context.Context, sink stream.Sink) error {
	now, err := s.reader.read(ctx)
	if err != nil {
		return err
	}
	after, changes := diff(s.last, now)
	if len(changes) == 0 {
		return nil
	}
	return s.send(sink, after, changes)
}

// send sends one transaction, and records after as sent once the sink has
// accepted it. A revision is used once, even if the sink failed halfway.
func (s *Source) send(sink stream.Sink, after map[string][]byte, changes []adapter.PolledChange) error {
	s.revision++
	if err := adapter.SendPolled(sink, changes, s.revision); err != nil {
		return err
	}
	s.last, s.committed = after, s.revision
	return nil
}
