package log

import (
	"cmp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/signal"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// DefaultAheadWait is SubscribeOptions.AheadWait if that is 0.
const DefaultAheadWait = 3 * time.Second

// SubscribeOptions specify where a subscription begins.
type SubscribeOptions struct {
	// Resume is the position after which to continue; nil: from nothing.
	Resume *stream.Position
	// Invalid means that there was a position, but it could not be parsed. The reset
	// says so.
	Invalid bool
	// Former, if not nil, is the subscription of the same reader to another part of the log, which
	// the new one replaces. If it was sent anything, it begins again. The other options are ignored, but for
	// the following ones.
	Former *Subscription
	// Keep means that both parts are windows of the same view: the reader keeps what both have, and is sent
	// the difference only, if that is known.
	Keep bool
	// Move, if not 0, is the number of the move with which the reader goes on. The first event at which it
	// has the new part says so.
	Move uint64
	// Digest means that the reader wants the digest of what it has then, in each end_of_snapshot and
	// each bookmark at which that is known.
	Digest bool
	// Verify means that the reader can compare what it has with a digest, and fetch what differs: where
	// it would be reset although it has something, it is sent a digest to verify that with.
	Verify bool
	// DigestsOff says at each time whether digests are turned off: while they are, Digest and Verify are ignored. nil:
	// they never are.
	DigestsOff *atomic.Bool
	// Deletes means that the reader serves the watch to others: a snapshot begins with the deletes
	// that are remembered, and its end_of_snapshot says since when none is missing.
	Deletes bool
	// First are the keys of resources that the reader wants first, if it begins with a snapshot. They are
	// forgotten then.
	First []string
	// AheadWait is how long a position that is ahead of this log is held for the log
	// to catch up; 3 seconds by default.
	AheadWait time.Duration
	// MinRate is how many bytes a second the reader must take, on average over 30 s,
	// to keep the version that it is walking through. A slower one continues in the
	// newest, as when memory is needed. If not positive, there is no minimum.
	MinRate int64
	// Interval, if not 0, is how often the reader wants changes at most: each time the newest state of
	// what has changed. It is one of [Intervals].
	Interval time.Duration
}

// ResumeOutcome is what became of the position that a subscription came with.
type ResumeOutcome string

// The outcomes. All but the first four are reasons for a full snapshot.
const (
	OutcomePending      ResumeOutcome = ""              // not decided yet
	OutcomeSnapshot     ResumeOutcome = "snapshot"      // there was no position
	OutcomeExact        ResumeOutcome = "exact"         // only the changes after it were sent
	OutcomeDigest       ResumeOutcome = "digest"        // the reader was sent a digest to verify what it has with
	OutcomeExpired      ResumeOutcome = "expired"       // changes after it are no longer known
	OutcomeAhead        ResumeOutcome = "ahead"         // this replica did not reach it in time
	OutcomeEpochChanged ResumeOutcome = "epoch_changed" // it is of another revision order
	OutcomeInvalid      ResumeOutcome = "invalid_position"
)

// Subscription is a cursor into a log: a few numbers and a pointer. Snapshot,
// resume, live and catching up after being slow are one operation: give what is
// newer than the cursor, as of the head.
//
// A slow reader costs the log nothing: superseded values are simply gone when it
// continues. During a walk it pins the version that it walks through. If the memory
// is needed, or the reader is slower than its minimum rate, the version is taken
// away, and the reader continues in the newest one.
//
// A Subscription belongs to one goroutine, its pump.
type Subscription struct {
	// Static after construction.
	log     *Log
	options SubscribeOptions

	// Owned by the pump.
	joined
	delivered
	closed     bool
	synced     bool
	paused     bool // Next must not read
	readers    int  // number of subscribers that it counts for; more than 1 for the cursor of a cohort
	changed    *signal.Signal
	aheadUntil time.Time      // how long to wait until the log reaches the position; zero: not waiting
	tick       int64          // the last one in which a release was sent
	releaseAt  time.Time      // when the changes are released that wait for the next tick; zero: none do
	ownStatus  *stream.Status // overrides the status of the watch; nil: nothing does
	sentStatus *stream.Status
	walk       *walk    // nil: it is at rest
	pin        *pin.Pin // of the walk, once it takes more than one flush
	outcome    ResumeOutcome
	skipped    uint64
	first      []string // keys that are to come first
	early      bool     // some did
	digested   uint64   // the seq of the newest state of which the reader was sent the digest
	// told is what a window says that the reader was told last. Its Told may be newer: that of what would have said the
	// same.
	told   storage.Window
	former *former // the window that the reader still has; nil: none
	move   uint64  // the number of a move that the reader was not told of; 0: there is none
	shares bool    // see Share
}

// joined is the revision order that a subscription reads, and how the reader came to it.
type joined struct {
	begun       bool
	fromThisLog bool // everything that the reader has came from this log
	generation  uint64
	epoch       string // as written in positions
	origin      uint64 // the last one sent to the subscriber
}

// digests reports whether the reader is sent digests.
func (s *Subscription) digests() bool { return s.options.Digest && !s.digestsOff() }

// verifies reports whether the reader is sent a digest in place of a reset.
func (s *Subscription) verifies() bool { return s.options.Verify && !s.digestsOff() }

func (s *Subscription) digestsOff() bool {
	return s.options.DigestsOff != nil && s.options.DigestsOff.Load()
}

// join takes the subscriber into the version's revision order.
func (j *joined) join(v *storage.Version) {
	j.begun = true
	j.generation = v.Generation
	j.origin = v.Complete()
	j.epoch = v.Epoch
}

// withRun returns a position with the name of the run, if the reader has nothing but
// what this log gave it. One that came from elsewhere may hold more than its position
// said, which this log need not know.
func (j *joined) withRun(v *storage.Version, p stream.Position) stream.Position {
	if !j.fromThisLog {
		return p
	}
	return v.WithRun(p)
}

// delivered is how far the reader of a subscription has come.
type delivered struct {
	moved    bool            // no batch has carried the position yet
	partial  bool            // the reader was sent changes that its position does not cover
	cleared  bool            // the reader was sent a reset, and not the end of that snapshot
	cursor   uint64          // everything up to this seq was delivered
	position stream.Position // everything up to it was delivered
}

func (d *delivered) moveTo(p stream.Position) {
	d.moved = d.moved || p != d.position
	d.position = p
}

// Subscribe returns a cursor. Close it.
func (l *Log) Subscribe(o SubscribeOptions) *Subscription {
	o.AheadWait = cmp.Or(o.AheadWait, DefaultAheadWait)
	l.counted(1, 1)
	s := &Subscription{log: l, options: o, sentStatus: storage.InSync, changed: l.newest().Changed, readers: 1, first: o.First}
	s.options.First = nil
	if o.Former != nil {
		s.replace(o.Former, o.Keep, o.Move)
	}
	return s
}

// replace makes the subscription go on for the reader of another part of the log. If the reader was
// sent anything, it has the former position until a reset, with which it begins again. f must not
// be read any more.
func (s *Subscription) replace(f *Subscription, keep bool, move uint64) {
	s.options, s.move = f.options, max(f.move, move)
	s.position, s.partial, s.cleared, s.sentStatus = f.position, f.partial, f.cleared, f.sentStatus
	if keep {
		s.keep(f)
	}
	if _, placed := f.Position(); placed {
		s.options.Resume, s.options.Invalid = &stream.Position{}, false // in no epoch
	}
}

// Withdraw takes everything from the reader: it fills b with a reset. A reader that comes back with
// the id of that has nothing, and is sent all of the watch. It returns false if the reader has
// nothing. The subscription must not be read after that.
func (s *Subscription) Withdraw(b *Batch) bool {
	b.reset(s.log)
	s.endWalk()
	p, has := s.Position()
	if r := s.options.Resume; !has && r != nil {
		p, has = *r, true
	}
	if !has {
		return false
	}
	s.position, s.partial = p.OfNothing(), false
	b.addEvent(stream.Event{Type: stream.Reset, Reason: string(stream.ResetEpochChanged)})
	b.boundary = true
	return true
}

// Replaces reports whether the reader still has what it was sent of another part: the next batch is a
// reset.
func (s *Subscription) Replaces() bool { return !s.begun && s.position.Watch != "" }

// Uncovered reports whether the reader was sent changes that its position does not cover, and no
// reset since: a part of a transaction, or of the deletes of a catch-up. Then no id of any kind is
// sent, not even for the sake of another watch: a reader that applies what it has when an id
// arrives would show what never was, and one that is cut off after it would resume from a place
// where it is not.
func (s *Subscription) Uncovered() bool { return s.partial }

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	if s.closed {
		return
	}
	s.endWalk()
	s.forgetFormer()
	s.closed = true
	s.log.counted(-1, -s.readers)
	s.readers = 0
}

// catchingUp reports whether values are being skipped.
func (s *Subscription) catchingUp() bool {
	return s.ownStatus != nil && s.ownStatus.State == stream.CatchingUp
}

// CaughtUp reports whether everything that existed at the last Next was delivered, the first
// snapshot included, and nothing is held back: what comes next is the next change.
func (s *Subscription) CaughtUp() bool {
	return s.synced && !s.walking() && s.aheadUntil.IsZero() && s.ownStatus == nil && !s.paused && s.former == nil && s.move == 0
}

// Changed is closed when Next may have more, after it returned false. Get it again
// after each Next.
func (s *Subscription) Changed() <-chan struct{} { return s.changed.Sent() }

// Deadline is when Next must be called even if nothing changed; zero: never.
func (s *Subscription) Deadline() time.Time {
	switch {
	case s.paused:
		return time.Time{}
	case s.aheadUntil.IsZero():
		return s.releaseAt
	}
	return s.aheadUntil
}

// Position is the place after what was delivered; false before the first delivery.
func (s *Subscription) Position() (stream.Position, bool) { return s.position, s.position.Watch != "" }

// Synced reports whether the first end_of_snapshot was delivered.
func (s *Subscription) Synced() bool { return s.synced }

// Outcome is what became of the position that the subscription came with.
func (s *Subscription) Outcome() ResumeOutcome { return s.outcome }

// Skipped is how many changes this subscriber has not seen one by one so far. In a part
// of another log, those are counted that are still there.
func (s *Subscription) Skipped() uint64 { return s.skipped }

// Next fills b with the next flush. It returns false if there is none now; then
// wait for Changed, and for Deadline if there is one.
func (s *Subscription) Next(b *Batch) bool {
	for !s.NextTurn(b) {
		if !s.Busy() {
			return false
		}
		runtime.Gosched() // let others run
	}
	return true
}

// Busy reports whether the last NextTurn found nothing but has not seen everything:
// call it again, rather than waiting.
func (s *Subscription) Busy() bool { return s.walking() && !s.paused }

// NextTurn is Next for a goroutine that many readers share: it examines a bounded number of
// entries, wanted or not. If it returns false, Busy reports whether there is more to examine.
func (s *Subscription) NextTurn(b *Batch) bool {
	b.reset(s.log)
	v := s.log.newest()
	s.changed, s.releaseAt = v.Changed, time.Time{}
	s.resumeWalk(b, v)
	if !b.final {
		s.addStatus(b, v, false)
	}
	if s.walking() && len(s.first) > 0 && !b.final && !s.paused {
		s.addFirst(b)
	}
	// A flush ends where a walk ends: the next one may begin with what has no id for long.
	for !s.paused && !b.full() && (s.walking() || !b.boundary && s.begin(b, v)) && !b.final {
		deletes := s.walk.deletes && s.walk.purpose == releasing // the upserts that belong to them follow
		s.advance(b)
		if s.walking() && (!b.Empty() && (!deletes || s.walk.deletes) || s.walk.turnOver()) {
			break
		}
	}
	if !b.final {
		s.addStatus(b, v, !s.walking() && s.cursor == v.Seq && s.begun)
	}
	s.pauseWalk(b)
	switch {
	case b.boundary:
		s.moved, s.partial = false, false
	case b.changes() > 0:
		s.partial = true
	}
	return !b.Empty()
}

// advance takes one turn of the walk under way.
func (s *Subscription) advance(b *Batch) {
	w := s.walk
	w.fill(b)
	done := w.done()
	w.midTransaction = w.midTransaction && !done
	switch {
	case done:
		s.cursor = w.v.Seq
		s.place(w.v.Revision, w.v)
	case w.whole(): // it has no place before the end
	case w.replay:
		// Deletes that were found since may be before the head.
		s.cursor = w.seq
		s.moveTo(s.withRun(w.v, s.log.position(s.epoch, w.complete, w.complete, s.position.DeletesCompleteTo())))
	case !w.deletes:
		s.place(w.complete, w.v)
	}
	if done {
		s.end(b)
	}
	// Among the deletes of a catch-up the position is still the one from before: those that were
	// sent are of the state as of the head.
	b.boundary = !b.Empty() && !w.midTransaction && !w.deletes && (done || !w.whole())
}

// place sets the position of a reader that has seen v except for upserts beyond a
// revision.
func (s *Subscription) place(upserts uint64, v *storage.Version) {
	s.moveTo(s.withRun(v, s.log.position(s.epoch, placedUpserts(v, upserts), v.Revision, v.DeletesCompleteTo)))
}

// end adds what ends the walk under way.
func (s *Subscription) end(b *Batch) {
	w, behind := *s.walk, s.sentStatus.State == stream.CatchingUp // so was the reader told, perhaps before a reset
	s.endWalk()
	s.ownStatus, s.partial = nil, false
	switch w.purpose {
	case following:
		b.committed, b.age = w.v.Committed, w.v.Age
		s.addWindow(b, w.v)
	case releasing:
		s.released(b, &w)
	case snapshot:
		s.synced, s.cleared = true, false
		end := stream.Event{Type: stream.EndOfSnapshot, Revision: w.v.Revision, Count: w.v.Count()}
		if s.hasDeletes(w.v) {
			end.Deletes, end.Horizon = true, w.v.Horizon
		}
		b.addEvent(s.withState(end, w.v))
		if behind {
			s.addStatus(b, w.v, true)
		}
	case resuming:
		s.synced, s.cleared = true, false
		b.addEvent(s.withState(stream.Event{Type: stream.EndOfSnapshot, Revision: w.v.Revision, Count: w.v.Count(), Resumed: true}, w.v))
		if behind {
			s.addStatus(b, w.v, true)
		}
	case verifying:
		s.synced = true
		end := s.withState(stream.Event{Type: stream.EndOfSnapshot, Revision: w.v.Revision, Count: w.v.Count(), Resumed: true, Verify: true}, w.v)
		end.Digest = w.v.Digest.String() // also if digests were turned off just now
		b.addEvent(end)
		if behind {
			s.addStatus(b, w.v, true)
		}
	case moving:
		b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: w.v.Revision}, w.v))
		s.addStatus(b, w.v, true)
	case catching:
		skipped := w.skipped(s.log.isView)
		s.skipped += skipped
		b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: w.v.Revision, Skipped: skipped}, w.v))
		// It has caught up, even if there is more by now.
		s.addStatus(b, w.v, true)
	}
}

// begin starts the walk that v calls for; false if there is nothing to do.
func (s *Subscription) begin(b *Batch, v *storage.Version) bool {
	switch {
	case !v.Primed():
		return false
	case !s.begun && s.former != nil:
		return s.goOn(b, v)
	case !s.begun:
		return s.start(b, v)
	case v.Generation != s.generation:
		reason := stream.ResetEpochChanged
		if s.epoch == v.Epoch {
			reason = stream.ResetExpired
		}
		s.beginAgain(b, v, reason)
	case v.Seq == s.cursor:
		s.place(v.Revision, v)
		s.addHorizon(b, v)
		s.tellWindow(b, v)
		return false
	case s.options.Interval > 0:
		return s.release(b, v)
	default:
		s.follow(b, v)
	}
	return true
}

// start decides what becomes of the position that the subscriber came with.
func (s *Subscription) start(b *Batch, v *storage.Version) bool {
	r := s.options.Resume
	switch {
	case r == nil && s.options.Invalid:
		s.outcome = OutcomeInvalid
		s.resetShared(b, v, stream.ResetInvalidPosition)
	case r == nil:
		s.outcome = OutcomeSnapshot
		s.resetShared(b, v, stream.ResetInitial)
	case r.Epoch != v.Epoch:
		s.outcome = OutcomeEpochChanged
		s.refuse(b, v, stream.ResetEpochChanged)
	case r.AsOf > v.Revision:
		if newest := s.log.awaited(v); newest.Revision >= r.AsOf {
			return s.start(b, newest)
		}
		return s.ahead(b, v)
	case !v.CanResume(*r):
		s.outcome = OutcomeExpired
		s.refuse(b, v, stream.ResetExpired)
	default:
		s.outcome = OutcomeExact
		s.resume(b, v, *r)
	}
	s.aheadUntil = time.Time{}
	return true
}

// ahead holds a position from a faster replica until this one has caught up, but not
// for long.
func (s *Subscription) ahead(b *Batch, v *storage.Version) bool {
	first := s.aheadUntil.IsZero()
	if first {
		s.aheadUntil = time.Now().Add(s.options.AheadWait)
	}
	if first || time.Now().Before(s.aheadUntil) {
		since := s.aheadUntil.Add(-s.options.AheadWait)
		s.ownStatus = &stream.Status{State: stream.Resyncing, Since: since, Reason: "this replica is behind the position"}
		s.addStatus(b, v, false)
		return false
	}
	s.outcome = OutcomeAhead
	s.refuse(b, v, stream.ResetAhead)
	s.aheadUntil = time.Time{}
	return true
}

// reset begins a full snapshot. It carries a position at which nothing was
// delivered: a client that is cut off right after it must not come back with its
// previous position, since it has cleared its state.
func (s *Subscription) reset(b *Batch, v *storage.Version, reason stream.ResetReason) {
	s.join(v)
	s.fromThisLog, s.early = true, false
	s.ownStatus, s.partial, s.cleared = nil, false, true
	s.place(0, v)
	b.addEvent(stream.Event{Type: stream.Reset, Reason: string(reason)})
	// The id is on the reset itself: if the flush had more events, some might arrive
	// without the id.
	b.boundary, b.final = true, true
	s.endWalk()
	s.startWalk(b, s.snapshotWalk(v))
}

// Share lets a reader that begins with a snapshot be sent the one of a state from up to a second ago, if others are being sent that,
// and go on from there. The parts of it are then rendered once for all of them. It has no effect on a part of another log: a
// change may have hidden a resource from the reader since then.
func (s *Subscription) Share() { s.shares = true }

// resetShared is reset for a reader that begins. If it can, it begins in the version in which others have begun a moment ago, as if
// it had come with them and its first flush had taken so long.
func (s *Subscription) resetShared(b *Batch, newest *storage.Version, reason stream.ResetReason) {
	if !s.shares || s.options.Interval > 0 || s.Replaces() || s.log.isView || s.log.from != nil {
		s.reset(b, newest, reason)
		return
	}
	pinned, v := s.log.pins.Begin(newest, s.options.MinRate, func(older *storage.Version) bool { return s.canBeginIn(older, newest) })
	s.reset(b, v, reason)
	s.pin = pinned
}

// canBeginIn reports whether a reader can begin with a snapshot of an older version than the newest, and go on from there. It
// must not have a position after it, and what is known of earlier changes must be the same, so that it learns of an
// outage before anything that came after it.
func (s *Subscription) canBeginIn(older, newest *storage.Version) bool {
	if r := s.options.Resume; r != nil && r.Epoch == older.Epoch && r.AsOf > older.Revision {
		return false
	}
	return older.Generation == newest.Generation && older.Seq >= newest.Forgotten && older.Complete() == newest.Complete() &&
		older.Conflated == newest.Conflated && older.Run.Name == newest.Run.Name && older.Run.Horizon == newest.Run.Horizon &&
		storage.SameStatus(older.Status, newest.Status)
}

func (s *Subscription) snapshotWalk(v *storage.Version) walk {
	begin := v.Normalize(storage.Place{})
	return walk{v: v, purpose: snapshot, deletes: s.hasDeletes(v), at: begin, upserts: begin}
}

// hasDeletes reports whether a snapshot of a version begins with deletes. Where they have no revision
// of their own, they are of no use, and those of a window are not all that were there.
func (s *Subscription) hasDeletes(v *storage.Version) bool {
	return s.options.Deletes && !v.Window.Is && !strings.HasPrefix(v.Epoch, stream.UnnumberedEpoch)
}

// refuse begins again for a reader that came with a position that cannot be resumed.
func (s *Subscription) refuse(b *Batch, v *storage.Version, reason stream.ResetReason) {
	if !s.verifies() || v.Window.Is {
		s.resetShared(b, v, reason)
		return
	}
	s.outcome, s.ownStatus = OutcomeDigest, nil
	if s.Replaces() { // in the middle of a stream
		s.beginAgain(b, v, reason)
		return
	}
	s.verify(b, v, s.options.Resume)
}

// beginAgain begins again for a reader that has something already: part of a snapshot is not enough to verify.
func (s *Subscription) beginAgain(b *Batch, v *storage.Version, reason stream.ResetReason) {
	if !s.verifies() || v.Window.Is || s.cleared {
		s.reset(b, v, reason)
		return
	}
	s.ownStatus = &stream.Status{State: stream.CatchingUp, Since: time.Now(), Reason: "verify what is held"}
	s.addStatus(b, v, false)
	s.verify(b, v, nil)
}

// verify lets a reader find out what differs between what it has and a state that is kept for a
// while. Of its own order, it is sent what has changed since its position, if that is little; what
// was deleted is not known. Nothing of it has an id: the reader keeps its position until it has
// the state.
func (s *Subscription) verify(b *Batch, v *storage.Version, from *stream.Position) {
	s.endWalk()
	v = s.log.digested.take(s.log, v)
	s.join(v)
	s.first = nil
	s.fromThisLog = true // once it has verified that it has the state, and takes over the position
	at := storage.Place{Segment: len(v.Segments)}
	if from != nil && from.Epoch == v.Epoch && from.AsOf <= v.Revision {
		if newer := v.NewerThan(from.Upserts); v.EntriesFrom(newer) <= v.Count()/10 {
			at = newer
		}
	}
	s.place(v.Revision, v)
	s.partial = true
	s.startWalk(b, walk{v: v, purpose: verifying, at: at, upserts: at, revision: v.Revision, complete: v.Revision})
}

// provable reports whether the reader, once it has everything, is sent the digest of that. Where
// deletes have no revision, a reader that comes from another replica may have fewer resources than
// this one, which has not noticed yet that they are gone.
func (s *Subscription) provable(v *storage.Version) bool {
	return s.digests() && (s.fromThisLog || !strings.HasPrefix(v.Epoch, stream.UnnumberedEpoch))
}

// withState adds the total of a window, the number of a move, and the digest of a version, to an event at which the reader has all of it.
func (s *Subscription) withState(e stream.Event, v *storage.Version) stream.Event {
	if s.provable(v) {
		e.Digest, s.digested = v.Digest.String(), v.Seq
	}
	e.Window, e.Total, e.Before, e.Next = v.Window.Is, v.Window.Total, v.Window.Before, v.Window.Next
	e.Move, s.move = s.move, 0
	s.told = v.Window
	return e
}

// resume continues after a position, always by catching up. A client that was cut
// off inside a flush has values newer than its position. A replay would go back to
// older ones for a moment; the newest values do not.
func (s *Subscription) resume(b *Batch, v *storage.Version, r stream.Position) {
	s.join(v)
	s.first = nil // it has what it is to show
	s.fromThisLog = v.Issued(r)
	s.moveTo(r)
	switch {
	case r.AsOf < v.Complete():
		s.origin = 0 // the reader may have left before the outage, or its end
		s.addHorizon(b, v)
	case r.Run != 0 && r.Run != v.Run.Name:
		// As with a reset, the id is on the event: what follows is from this
		// replica, and the other one must not take it for its own.
		r.Run = 0
		s.position = s.withRun(v, r)
		b.addEvent(stream.Event{Type: stream.Bookmark, Revision: r.AsOf})
		b.boundary, b.final = true, true
	}
	from := v.NewerThan(r.DeletesCompleteTo())
	s.cursor = v.SeqBefore(from)
	upserts := v.NewerThan(r.Upserts)
	if r.Upserts == 0 || r.Partial() && placedUpserts(v, r.Upserts) == 0 {
		upserts = v.Normalize(storage.Place{})
	}
	s.startWalk(b, walk{
		v: v, purpose: resuming, deletes: true, at: from, upserts: upserts,
		began: s.cursor, revision: r.Upserts, complete: r.Upserts,
	})
}

// follow continues from the cursor: change by change if it is near enough, else by
// catching up.
func (s *Subscription) follow(b *Batch, v *storage.Version) {
	from := v.After(s.cursor)
	revision := s.position.AsOf
	replayable := v.Replayable(s.cursor, from, storage.ReplaySize)
	if !replayable && s.cursor < v.Forgotten {
		// Deletes that the reader has not seen were forgotten meanwhile.
		s.beginAgain(b, v, stream.ResetExpired)
		return
	}
	s.addHorizon(b, v)
	if replayable {
		if v.ConflatedSeq > s.cursor && v.Complete() < v.Conflated { // a gateway that follows this watch must know
			b.addEvent(stream.Event{Type: stream.Bookmark, Revision: revision, Conflated: v.Conflated})
		}
		s.startWalk(b, walk{v: v, replay: true, at: from, seq: s.cursor, complete: revision})
		return
	}
	s.startWalk(b, walk{
		v: v, purpose: catching, deletes: true, at: from, upserts: from,
		began: s.cursor, revision: revision, complete: revision,
	})
	s.ownStatus = &stream.Status{State: stream.CatchingUp, Since: time.Now(), Reason: "too far behind to get every value"}
	s.addStatus(b, v, false)
}

// Moved records that the reader was sent n bytes of another subscription over the same
// connection. They count towards MinRate: all subscriptions of a connection share
// its rate.
func (s *Subscription) Moved(n int) {
	if !s.paused && n > 0 {
		s.log.pins.Credit(s.pin, n)
	}
}

// addStatus adds a status event if the freshness differs from the last one sent. InSync
// is sent only once the subscriber has everything: before that, it would not be true.
func (s *Subscription) addStatus(b *Batch, v *storage.Version, atHead bool) {
	now := v.Status
	if s.ownStatus != nil {
		now = s.ownStatus
	}
	if storage.SameStatus(now, s.sentStatus) || now.State == stream.InSync && !atHead {
		return
	}
	s.sentStatus = now
	b.addEvent(stream.Event{Type: stream.StatusChange, State: now.State, Since: now.Since, Reason: now.Reason})
}

// addHorizon adds a bookmark at the reader's place if v is the first version that
// it sees after an outage, or after part of one. It precedes the changes after the
// outage: a gateway that follows this watch must never resume a position inside the
// outage, and has given out none of those yet.
func (s *Subscription) addHorizon(b *Batch, v *storage.Version) {
	if v.Complete() == s.origin {
		return
	}
	s.origin = v.Complete()
	b.addEvent(stream.Event{Type: stream.Bookmark, Revision: s.position.AsOf, Horizon: s.origin})
	b.boundary = true
}

// untold reports whether the reader is to be told of what a window says. It may have been told already, with changes.
func (s *Subscription) untold(v *storage.Version) bool {
	if v.Window.Told == s.told.Told {
		return false
	}
	told := s.told
	if told.Told = v.Window.Told; told == v.Window {
		s.told = told
		return false
	}
	return true
}

// addWindow adds a bookmark if a window says something else than what the reader was told last.
func (s *Subscription) addWindow(b *Batch, v *storage.Version) {
	if !s.untold(v) {
		return
	}
	b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: v.Revision}, v))
	b.boundary = true
}

// tellWindow is addWindow for a reader that has everything: one with an interval is told in the next tick.
func (s *Subscription) tellWindow(b *Batch, v *storage.Version) {
	if s.untold(v) && s.inTick(v) {
		s.addWindow(b, v)
	}
}

// Bookmark fills b with progress: the position has moved on, without data, since
// the last one that was sent, or the reader was not sent the digest of what it has. It returns
// false if neither is so, or if Next has something.
func (s *Subscription) Bookmark(b *Batch) bool {
	b.reset(s.log)
	v := s.log.newest()
	if !s.begun || s.walking() || v.Generation != s.generation || v.Seq != s.cursor {
		return false
	}
	s.place(v.Revision, v)
	s.addHorizon(b, v)
	if !s.moved && b.Empty() && (s.digested == v.Seq || !s.provable(v)) {
		return false
	}
	if b.Empty() {
		b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: v.Revision}, v))
	}
	b.boundary = true
	s.moved = false
	return true
}

// addFirst adds the resources that the reader wants first of a snapshot, as many as fit.
// An id follows them, that of nothing: a reader that comes back with it is sent all of the snapshot, and
// what was deleted since. They come again at their places.
//
// One that cannot be found at once, since the log has gone on, only comes at its place.
func (s *Subscription) addFirst(b *Batch) {
	v := s.walk.v
	for len(s.first) > 0 && !b.full() {
		_, e, known := v.GetQuickly(s.log.framing, storage.NewKey(s.first[0]))
		s.first = s.first[1:]
		if known && e != nil && !e.Is(storage.IsDelete) {
			at := v.After(e.Seq - 1)
			b.addEntry(v.Segments[at.Segment], at.Entry)
		}
	}
	if len(s.first) == 0 {
		s.first = nil
	}
	if b.changes() > 0 {
		s.early, b.boundary, b.final = true, true, true
	}
}
