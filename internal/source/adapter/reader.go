package adapter

import (
	"fmt"
	"iter"
	"strings"
	"unsafe"

	"github.com/watchtide/watchtide/stream"
)

// ReaderConfig specifies what a Reader reads.
type ReaderConfig struct {
	Sink  stream.Sink
	Watch string // the upstream's name of the watch
	Where string // the upstream and the watch, for messages
	// Prefix narrows the watch: other keys are left out.
	Prefix string
	// Unnamed is the name of a revision order that the upstream has not named.
	// Empty: a reset without a position is refused.
	Unnamed string
	// Enter is called when the upstream's epoch is known; "": it has no name. It
	// returns ours. nil: they are the same.
	Enter func(upstream string) string
}

// phase is the upstream's position in the protocol.
type phase uint8

const (
	opening  phase = iota // nothing that belongs to a phase has come yet
	resuming              // the changes after the position; no reset so far
	snapshot              // after reset
	live                  // after end_of_snapshot
)

// Reader turns the events of a watch into the calls of a Sink. It may outlive a
// connection: the next one completes what the previous one staged up to its last
// position.
//
// Owned by the goroutine that runs Watch, or guarded by a lock.
type Reader struct {
	ReaderConfig // static after construction

	phase     phase
	events    uint64          // received so far
	position  stream.Position // up to which everything was received; Epoch "": the upstream named none
	begun     bool            // the Sink has the start of the snapshot, so it takes changes
	said      []Event         // changes of a snapshot whose epoch is unknown yet: to be repeated
	upserts   uint64          // received in this snapshot
	marked    uint64          // of these, up to the position
	loose     bool            // changes came since the position
	open      bool            // changes came since the last commit
	committed uint64          // revision of the last commit
	catchUp   bool            // from catching_up to the next bookmark
	conflated uint64          // changes up to this revision may lack values
	reported  stream.State    // the last one passed on; 0: none
	reason    string          // for it
	heard     bool            // this connection reported the freshness of the watch
}

// NewReader returns a Reader that resumes at a position; the zero one: at none.
func NewReader(c ReaderConfig, from stream.Position) *Reader {
	return &Reader{ReaderConfig: c, position: from, committed: from.Upserts}
}

// Begin records the start of another connection, and returns the position at which it
// resumes; false: at none. An interrupted snapshot or catch-up continues as one.
// Changes since the position are discarded, and will be sent again, unless a replica
// that is behind answers, which must then not complete it.
func (r *Reader) Begin() (stream.Position, bool, error) {
	r.catchUp, r.heard = false, false
	if r.loose {
		if err := r.Sink.Rewind(); err != nil {
			return r.position, false, fmt.Errorf("%s: %w", r.Where, err)
		}
		r.upserts, r.loose = r.marked, false
	}
	if r.position.Epoch == "" {
		r.phase, r.begun = opening, false
		return r.position, false, nil
	}
	r.begun = true
	if r.phase != snapshot {
		r.phase = resuming
	}
	return r.position, true, nil
}

// Events returns how many events have been received.
func (r *Reader) Events() uint64 { return r.events }

// Receive handles one event; err is why it could not be decoded. A reset is passed on
// before its position is processed, since that belongs to the new order. Any other
// event is passed on after it, since a snapshot's first position names the order of
// its resources.
func (r *Reader) Receive(e Event, err error) error {
	r.events++
	if err != nil {
		return r.Invalid("%v", err)
	}
	if e.Type == Reset {
		r.reset()
	}
	before := r.position
	place, err := r.place(e.Position)
	switch {
	case err != nil:
		return err
	case e.Type == Reset && place == nil && r.Unnamed == "":
		return r.Invalid("reset without a position: want an id that names the epoch")
	case e.Type == Reset:
		return nil
	case e.Type == Status: // the position covers the events before it
		if err := r.arrive(&e, place, before); err != nil {
			return err
		}
		return r.status(&e)
	}
	if err := r.apply(&e); err != nil {
		return err
	}
	return r.arrive(&e, place, before)
}

// apply applies one event, except for ending a transaction.
func (r *Reader) apply(e *Event) error {
	switch e.Type {
	case Upsert, Delete:
		return r.change(e)
	case Bookmark:
		r.conflated = max(r.conflated, e.Conflated)
		if e.Horizon > 0 && r.begun {
			return r.Sink.RaiseHorizon(e.Horizon)
		}
	}
	return nil
}

// arrive records that everything up to a position was passed on, and commits if
// the event ends a snapshot or a transaction. In a catch-up a position that is still the one
// before covers nothing: another replica may be there, and behind the changes since.
func (r *Reader) arrive(e *Event, place *stream.Position, before stream.Position) error {
	catchesUp := r.phase == resuming || r.phase == live && r.catchUp
	if place != nil && !(catchesUp && *place == before) {
		r.marked, r.loose = r.upserts, false
		r.Sink.Mark()
	}
	return r.commitAt(e, place)
}

// reset begins a snapshot.
func (r *Reader) reset() {
	r.forget()
	r.phase, r.position, r.begun = snapshot, stream.Position{}, false
	r.upserts, r.marked, r.loose, r.catchUp, r.conflated = 0, 0, false, false, 0
}

// Suspend has the watch resyncing until Replace: the upstream has more, and it is not known what.
func (r *Reader) Suspend(reason string) error { return r.Sink.Status(stream.Resyncing, reason) }

// Replace makes the Sink have a whole state, which is that at a position, as if a snapshot of it had come.
func (r *Reader) Replace(at stream.Position, revision uint64, resources iter.Seq[stream.Resource]) error {
	r.reset()
	r.position = at
	if err := r.begin(r.enter(at.Epoch)); err != nil {
		return err
	}
	for one := range resources {
		r.upserts++
		if err := r.Sink.Upsert(one); err != nil {
			return err
		}
	}
	if err := r.endOfSnapshot(&Event{Type: EndOfSnapshot, Count: r.upserts, Revision: revision}); err != nil {
		return err
	}
	return r.Continue()
}

// Continue ends what Suspend began.
func (r *Reader) Continue() error {
	if r.heard && r.reported != stream.InSync {
		return r.Report(r.reported, r.reason)
	}
	return r.Report(stream.InSync, "")
}

// Committed reports whether everything that was received has been committed, up to Position.
func (r *Reader) Committed() bool {
	return r.phase == live && !r.open && !r.catchUp && r.position.Epoch != ""
}

// Position returns the place up to which everything was received; Epoch "": there is none.
func (r *Reader) Position() stream.Position { return r.position }

// place reads the position of an event; nil if it has none, or an irrelevant one.
// The next connection resumes there.
func (r *Reader) place(text string) (*stream.Position, error) {
	epoch := r.position.Epoch
	if text == "" || r.phase == opening || r.phase == live && epoch == "" {
		return nil, nil
	}
	p, err := stream.ParsePosition(text)
	switch {
	case err != nil:
		return nil, r.Invalid("%v", err)
	case p.Watch != r.Watch:
		return nil, r.Invalid("position %.80q: want one of watch %q", text, r.Watch)
	case epoch != "" && p.Epoch != epoch && (r.phase == resuming || r.phase == live && r.catchUp):
		// The upstream goes on in another order, or with another part of the watch, as older gateways do.
		return nil, fmt.Errorf("%w: %s, event %d: position %.80q is of another order", stream.ErrUnresumable, r.Where, r.events, text)
	case epoch != "" && p.Epoch != epoch:
		return nil, r.Invalid("position %.80q: want epoch %q, or a reset before", text, epoch)
	}
	r.position = p
	if epoch == "" {
		return &p, r.begin(r.enter(p.Epoch))
	}
	return &p, nil
}

// begin starts a snapshot in the Sink. While its epoch is unknown it starts under the
// name for a snapshot without positions, so that its progress is visible, and starts
// again when a position arrives.
func (r *Reader) begin(epoch string) error {
	if err := r.Sink.Reset(epoch); err != nil {
		return err
	}
	r.begun = true
	for i := range r.said {
		if err := r.pass(&r.said[i]); err != nil {
			return err
		}
	}
	r.forget()
	return nil
}

// saidCost is how many bytes an event takes in said, which may be copied when it grows.
// Its key and its value are counted by the Sink, which has them as well.
const saidCost = 2 * int64(unsafe.Sizeof(Event{}))

// remember keeps a change that must be repeated once the epoch is known.
func (r *Reader) remember(e *Event) {
	r.said = append(r.said, *e)
	r.Sink.Charge(saidCost)
}

// forget drops the changes to be repeated.
func (r *Reader) forget() {
	if len(r.said) == 0 {
		return
	}
	r.Sink.Charge(-saidCost * int64(len(r.said)))
	r.said = nil
}

func (r *Reader) enter(epoch string) string {
	if r.Enter == nil {
		return epoch
	}
	return r.Enter(epoch)
}

// change passes a change on, and stores it while the epoch is unknown. An upstream
// need not narrow: keys outside the prefix are left out.
func (r *Reader) change(e *Event) error {
	if r.phase == opening {
		return r.Invalid("a change of key %.80q before reset: want reset first", e.Resource.Key)
	}
	r.open, r.loose = true, true
	if e.Type == Upsert {
		r.upserts++
	}
	if !strings.HasPrefix(e.Resource.Key, r.Prefix) {
		return nil
	}
	if !r.begun {
		if err := r.begin(r.Unnamed); err != nil {
			return err
		}
	}
	if r.phase == snapshot && r.position.Epoch == "" {
		r.remember(e)
	}
	return r.pass(e)
}

func (r *Reader) pass(e *Event) error {
	if e.Type == Delete {
		return r.Sink.Delete(e.Resource.Key, e.Resource.Revision)
	}
	return r.Sink.Upsert(e.Resource)
}

// Invalid is the error for an event that violates the protocol.
func (r *Reader) Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s, event %d: %s", stream.ErrInvalid, r.Where, r.events, fmt.Sprintf(format, args...))
}

// Event is one event of a watch, on any transport.
type Event struct {
	Type      EventType
	Position  string          // of the watch, after this event; empty: none
	Resource  stream.Resource // of an Upsert; of a Delete, its key and revision
	Revision  uint64          // of an EndOfSnapshot or a Bookmark
	Count     uint64          // of an EndOfSnapshot
	Deletes   bool            // of an EndOfSnapshot: those after Horizon are all in the snapshot
	Horizon   uint64          // of a Bookmark that reports an outage; 0: it does not
	Conflated uint64          // of a Bookmark before changes that may lack values: those up to it; 0: none
	State     stream.State    // of a Status; 0: one that a newer server may send
	Reason    string          // of a Status
}

// EventType is the type of an event.
type EventType uint8

// The types. Other is framing, or an event that a newer server may send.
const (
	Other EventType = iota
	Reset
	Upsert
	Delete
	EndOfSnapshot
	Bookmark
	Status
)

// changeRevision is the revision of a change that is a transaction of its own. A
// delete may have no revision of its own, or an old one.
func (e *Event) changeRevision(committed uint64) (revision uint64, ok bool) {
	switch e.Type {
	case Upsert:
		return e.Resource.Revision, true
	case Delete:
		return max(e.Resource.Revision, committed), true
	}
	return 0, false
}

// status passes on the upstream's freshness. CatchingUp is the state of a
// subscriber, in this case ours: it only marks the start of a transaction.
func (r *Reader) status(e *Event) error {
	switch e.State {
	case 0:
		return nil // from a newer server
	case stream.CatchingUp:
		r.catchUp = true
		return nil
	}
	r.heard = true
	reason := e.Reason
	if reason == "" && e.State != stream.InSync {
		reason = e.State.String() // ingest adds the origin
	}
	return r.Report(e.State, reason)
}

// Report passes on the freshness of the watch.
func (r *Reader) Report(state stream.State, reason string) error {
	r.reported, r.reason = state, reason
	return r.Sink.Status(state, reason)
}

// commitAt commits if the event ends a snapshot or a transaction.
func (r *Reader) commitAt(e *Event, place *stream.Position) error {
	if e.Type == EndOfSnapshot {
		return r.endOfSnapshot(e)
	}
	if r.phase != live {
		return nil
	}
	revision, ends := r.endsTransaction(e, place)
	if !ends {
		return nil
	}
	if r.open && (r.catchUp || r.committed < r.conflated) {
		r.Sink.Conflated()
	}
	r.catchUp = r.catchUp && e.Type != Bookmark
	return r.commit(revision)
}

// endsTransaction reports whether everything up to a revision has been received. The
// position may be in an event that follows, or be missing.
func (r *Reader) endsTransaction(e *Event, place *stream.Position) (revision uint64, ends bool) {
	switch {
	case place != nil && place.Partial(), r.catchUp && e.Type != Bookmark:
		return 0, false
	case place != nil:
		return place.Upserts, r.open || e.Type == Bookmark || place.Upserts > r.committed
	case e.Type == Bookmark:
		return e.Revision, true
	case r.position.Epoch != "": // the next position ends it
		return 0, false
	}
	return e.changeRevision(r.committed)
}

// endOfSnapshot ends a snapshot, the changes after the requested position, or a
// catch-up.
func (r *Reader) endOfSnapshot(e *Event) error {
	switch {
	case r.phase == opening:
		return r.Invalid("end_of_snapshot before reset: want reset first")
	case r.phase == snapshot && e.Count > r.upserts:
		return r.Invalid("end_of_snapshot counts %d resources, %d came", e.Count, r.upserts)
	case !r.begun:
		if err := r.begin(r.Unnamed); err != nil {
			return err
		}
	}
	if r.phase == snapshot {
		r.enter(r.position.Epoch) // by now it would have been named
		if e.Deletes && r.position.Epoch != "" {
			r.Sink.DeletesCompleteAfter(e.Horizon)
		}
	}
	resumed := r.phase == resuming
	if resumed && r.open {
		r.Sink.Conflated()
	}
	r.forget()
	r.phase, r.catchUp = live, false
	if err := r.commit(e.Revision); err != nil {
		return err
	}
	if r.heard && r.reported != stream.InSync {
		return nil // the upstream itself is not
	}
	if !resumed && (r.reported == 0 || r.reported == stream.InSync) {
		return nil // a snapshot implies it
	}
	// It has caught up. An earlier connection, or this gateway itself, may have
	// reported that the watch is not in sync; the upstream has not, this time.
	return r.Report(stream.InSync, "")
}

// commit ends a transaction. The next connection resumes there.
func (r *Reader) commit(revision uint64) error {
	if r.position.Epoch != "" {
		r.Sink.DeletesCompleteTo(r.position.DeletesCompleteTo())
		r.position = r.position.At(revision)
	}
	r.committed, r.open, r.loose = revision, false, false
	return r.Sink.Commit(revision)
}
