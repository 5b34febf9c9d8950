package gateway

import (
	"fmt"
	"strings"

	"github.com/watchtide/watchtide/client"
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

// reader turns the events of a watch into the calls of a Sink. It persists over
// several requests: the next request completes what the previous one staged up to
// its last position.
//
// Guarded by the mu of its member.
type reader struct {
	// Static after construction.
	sink  stream.Sink
	watch string
	where string // for messages

	phase    phase
	events   uint64          // received so far
	position stream.Position // up to which everything has come; Watch "": nothing
	upserts  int             // received in this snapshot
	marked   int             // of these, up to the position
	loose    bool            // changes came since the position
	open     bool            // changes came since the last commit
	catchUp  bool            // from catching_up to the next bookmark
	told     stream.State    // the last one that was passed on; 0: none
	heard    bool            // this request reported how fresh the watch is
}

func newReader(s *Source, resume stream.Resume, sink stream.Sink) *reader {
	r := &reader{sink: sink, watch: s.watch, where: s.where()}
	if resume.Epoch != "" {
		r.position = stream.Position{
			Watch: s.watch, Epoch: resume.Epoch, Upserts: resume.Revision, AsOf: resume.Revision, Unswept: resume.Unswept,
		}
	}
	return r
}

// begins notes that another request starts, and returns the position at which it
// resumes; false: at none. An interrupted snapshot or catch-up continues as one. What
// came since the position is discarded, and will come again, unless a replica that is
// behind answers the request, which must then not complete it.
func (r *reader) begins() (stream.Position, bool, error) {
	r.catchUp, r.heard = false, false
	if r.loose {
		if err := stream.Rewind(r.sink); err != nil {
			return r.position, false, r.failed(err)
		}
		r.upserts, r.loose = r.marked, false
	}
	if r.position.Watch == "" {
		r.phase = opening
		return r.position, false, nil
	}
	if r.phase != snapshot {
		r.phase = resuming
	}
	return r.position, true, nil
}

// receive handles one event. A reset is passed on before its position is
// processed, since that belongs to the new order.
func (r *reader) receive(e client.Event) error {
	r.events++
	if e.Type == "reset" {
		return r.reset(e)
	}
	place, err := r.place(e.ID)
	if err != nil {
		return err
	}
	if e.Type == "status" {
		// The position covers the events before it.
		if place != nil {
			r.mark()
		}
		if err := r.commitAt(e, place); err != nil {
			return err
		}
		return r.status(e)
	}
	if err := r.apply(e); err != nil {
		return err
	}
	if place != nil {
		r.mark()
	}
	return r.commitAt(e, place)
}

// mark follows the event that had a position: everything that belongs to it was
// passed on.
func (r *reader) mark() {
	r.marked, r.loose = r.upserts, false
	stream.Mark(r.sink)
}

// apply applies one event, except for ending a transaction.
func (r *reader) apply(e client.Event) error {
	switch e.Type {
	case "upsert":
		return r.upsert(e.Resource)
	case "delete":
		return r.delete(e.Resource)
	case "bookmark":
		if e.Horizon != "" && r.phase != opening {
			return r.horizon(e.Horizon)
		}
	}
	return nil // framing, or an event that a newer gateway may send
}

// reset begins a snapshot.
func (r *reader) reset(e client.Event) error {
	r.phase, r.position = snapshot, stream.Position{}
	r.upserts, r.marked, r.loose, r.catchUp = 0, 0, false, false
	place, err := r.place(e.ID)
	if err != nil {
		return err
	}
	if place == nil {
		return r.invalid("reset without a position: want an id that names the epoch")
	}
	return r.sink.Reset(place.Epoch)
}

// place reads the position of the watch in an id; nil if it has none, or none
// that matters. It is recorded: the next request resumes there.
func (r *reader) place(id string) (*stream.Position, error) {
	if id == "" || r.phase == opening {
		return nil, nil
	}
	text := r.ownPosition(id)
	if text == "" {
		return nil, nil
	}
	p, err := stream.ParsePosition(text)
	switch {
	case err != nil:
		return nil, r.invalid("%v", err)
	case r.position.Epoch != "" && p.Epoch != r.position.Epoch:
		return nil, r.invalid("position %q: want epoch %q, or a reset before", text, r.position.Epoch)
	}
	r.position = p
	return &p, nil
}

// ownPosition returns the position of this watch in an id, which has those of
// all watches of the request.
func (r *reader) ownPosition(id string) string {
	for text := range strings.SplitSeq(id, ",") {
		if rest, ok := strings.CutPrefix(text, r.watch); ok && strings.HasPrefix(rest, "@") {
			return text
		}
	}
	return ""
}

func (r *reader) failed(err error) error { return fmt.Errorf("%s: %w", r.where, err) }

func (r *reader) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s, event %d: %s", stream.ErrInvalid, r.where, r.events, fmt.Sprintf(format, args...))
}
