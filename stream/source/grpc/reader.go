package grpc

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// phase is the upstream's position in the protocol.
type phase uint8

const (
	opening  phase = iota // nothing that belongs to a phase has come yet
	resuming              // what is newer than the position; no reset came
	snapshot              // after reset
	live                  // after end_of_snapshot
)

// reader turns the events of one call into the calls of a Sink.
//
// Owned by the goroutine that runs Watch.
type reader struct {
	// Static after construction.
	sink     stream.Sink
	epochs   *epochs // the source's
	watch    string
	where    string // for messages
	prefix   string
	position string // from which the upstream was asked to resume; empty: nothing

	phase     phase
	events    uint64        // received so far
	epoch     string        // the upstream's; empty while unknown
	begun     bool          // the Sink has the start of the snapshot, so it takes changes
	said      []change      // of a snapshot whose epoch is unknown yet: to be repeated
	upserts   uint64        // upserts received in this snapshot
	committed uint64        // last revision committed
	swept     uint64        // of the last position; see stream.Swept
	catchUp   bool          // from catching_up to the next bookmark
	told      stream.State  // last state reported by the upstream; 0: none
	retry     time.Duration // what goodbye asked for
}

// change is an Upsert or a Delete.
type change struct {
	resource stream.Resource
	deleted  bool
}

// errGoodbye ends a call in good order.
var errGoodbye = errors.New("goodbye")

func newReader(s *Source, resume stream.Resume, sink stream.Sink) *reader {
	r := &reader{
		sink: sink, epochs: &s.epochs,
		watch: s.config.Watch, prefix: s.config.Prefix,
		where: fmt.Sprintf("grpc %s, watch %q", s.config.target(), s.config.Watch),
	}
	if p, ok := s.epochs.resume(resume); ok {
		r.position, r.epoch, r.swept = p.String(), p.Epoch, p.Swept()
		r.phase, r.begun, r.committed = resuming, true, resume.Revision
	}
	return r
}

// receive handles one event. A reset is passed on before its position is processed,
// since that belongs to the new order. Any other event is passed on after it, since
// a snapshot's first position says into which order its resources go.
func (r *reader) receive(m *pb.WatchListResponse) error {
	r.events++
	if m.GetEvent() == nil && m.GetPosition() == "" && len(m.ProtoReflect().GetUnknown()) == 0 {
		return r.invalid("empty message: want an event")
	}
	if m.GetReset_() != nil {
		r.reset()
	}
	place, err := r.place(m.GetPosition())
	if err != nil {
		return err
	}
	if s := m.GetStatus(); s != nil {
		// The position covers the events before it.
		if err := r.commitAt(m, place); err != nil {
			return err
		}
		return r.status(s)
	}
	if err := r.apply(m); err != nil {
		return err
	}
	return r.commitAt(m, place)
}

// apply applies one event, except for ending a transaction.
func (r *reader) apply(m *pb.WatchListResponse) error {
	switch e := m.GetEvent().(type) {
	case *pb.WatchListResponse_Upsert:
		return r.upsert(e.Upsert.GetResource())
	case *pb.WatchListResponse_Delete:
		return r.delete(e.Delete)
	case *pb.WatchListResponse_Bookmark:
		if e.Bookmark.GetHorizon() > 0 && r.begun {
			return stream.RaiseHorizon(r.sink, e.Bookmark.GetHorizon())
		}
	case *pb.WatchListResponse_Goodbye:
		return r.goodbye(e.Goodbye)
	}
	return nil // framing, or an event that a newer server may send
}

// reset begins a snapshot.
func (r *reader) reset() {
	r.phase, r.epoch, r.begun = snapshot, "", false
	r.said, r.upserts, r.catchUp = nil, 0, false
}

// place reads the position of an event; nil if it has none, or none that
// matters.
func (r *reader) place(text string) (*stream.Position, error) {
	if text == "" || r.phase == opening || r.phase == live && r.epoch == "" {
		return nil, nil
	}
	p, err := stream.ParsePosition(text)
	switch {
	case err != nil:
		return nil, r.invalid("%v", err)
	case p.Watch != r.watch:
		return nil, r.invalid("position %q: want one of watch %q", text, r.watch)
	case r.epoch != "" && p.Epoch != r.epoch:
		return nil, r.invalid("position %q: want epoch %q, or a reset before", text, r.epoch)
	}
	r.swept = p.Swept()
	if r.epoch == "" {
		return &p, r.begin(p.Epoch)
	}
	return &p, nil
}

// begin starts a snapshot in the Sink. epoch is empty while it is unknown: then
// the snapshot starts under the name that it has if no position comes at all, so
// that its progress is visible, and starts again when a position does come.
func (r *reader) begin(epoch string) error {
	name := r.epochs.fallback
	if epoch != "" {
		name = r.epochs.enter(epoch)
	}
	if err := r.sink.Reset(name); err != nil {
		return err
	}
	said := r.said
	r.epoch, r.begun, r.said = epoch, true, nil
	for _, c := range said {
		if err := r.pass(c); err != nil {
			return err
		}
	}
	return nil
}

// refusedResume reports that the upstream did not even try to resume.
func (r *reader) refusedResume(code codes.Code) bool {
	if r.position == "" || r.events > 0 {
		return false
	}
	return code == codes.InvalidArgument || code == codes.OutOfRange || code == codes.FailedPrecondition
}

func (r *reader) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s, event %d: %s", stream.ErrInvalid, r.where, r.events, fmt.Sprintf(format, args...))
}
