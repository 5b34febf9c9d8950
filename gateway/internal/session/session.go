package session

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Session produces everything that is sent on one stream, regardless of what
// carries the bytes: hello, the events of its watches, bookmarks, heartbeats,
// goodbye. It never waits.
//
// Owned by one pump.
type Session struct {
	// Static after construction.
	Deps    *Deps
	Format  frame.Format // 0: it is not text
	Until   bool
	Digest  bool // it has digests
	Verify  bool // and they come in place of a reset
	Deletes bool // its snapshots begin with deletes
	// Interval is how often changes are sent at most; 0: as they come.
	Interval time.Duration
	Answer   Answer      // nil: it is a stream
	Coding   wire.Coding // in which the stream is sent
	watches  []Choice
	// transport is empty if it has the name of the format.
	transport string

	*Own    // nil for a group's own
	Follows []Follow
	Lease   limits.Lease // lease for large reads
	Turns   bool         // others share its goroutine: a turn also ends if it finds nothing
	Streams int          // number of streams that it represents

	*Scratch
	QuietSince time.Time               // of the last flush
	Committed  introspection.Moment    // of the oldest change written but not yet flushed
	Counted    int                     // bytes already reported to the metrics
	Delivered  introspection.Delivered // to one stream
}

// Own is the state of a session that belongs to one stream only.
//
// Owned by the pump of the stream.
type Own struct {
	Retry        time.Duration
	Began        time.Time
	AdmissionRef limits.Ref             // under which the stream was admitted
	Identity     introspection.Identity // identity of the stream
	Request      tracing.Parent         // nil: it is not traced
	Term
	GoodbyeSaid stream.GoodbyeReason // "": none was sent
}

// Scratch is the working memory of a flush. It has no state between two flushes, so all
// sessions of a goroutine can share it: there may be a group for each of thousands of
// views.
//
// Owned by one goroutine.
type Scratch struct {
	Batch  log.Batch
	slices [][]byte
	id     []byte
}

// New begins a stream of watches, as it was asked for. Its authorization may be nil.
func New(d *Deps, req Request, with *authz.Authorization, watches []*watch.Watch) Session {
	now := time.Now()
	c := Session{
		Deps: d, Format: req.Format, Until: req.Until, Digest: req.Digest, Verify: req.Verify, Deletes: req.Deletes, Interval: req.Interval, watches: req.Watches, transport: req.Transport,
		Coding: req.Coding, Own: &Own{Retry: d.RetryHint(), Began: now, Term: d.newTerm(now, with)}, Scratch: &Scratch{}, QuietSince: now, Streams: 1,
	}
	for i, watch := range watches {
		c.watches[i].Name = watch.Name() // the one in the request keeps its first line in memory
		c.Follows = append(c.Follows, d.Follow(watch, req.Watches[i], &req))
		c.watches[i].first = nil // it is with the subscription, while it is needed
	}
	c.Lease = limits.NewLease(d.Snapshots)
	return c
}

// Transport is the value of the label transport in metrics.
func (s *Session) Transport() string { return cmp.Or(s.transport, s.Format.String()) }

// Hello writes hello before anything that may wait. The status of each watch that
// is not in sync follows, before the snapshot of another watch begins.
func (s *Session) Hello(out Encoder) {
	out.WriteHello(s)
	s.Deps.Metrics.EventsOut(s.Transport(), stream.Hello, 1)
	s.Delivered.Events++
	for i := range s.Follows {
		f := &s.Follows[i]
		if f.Watch.Status().State != stream.InSync && f.Sub.NextStatus(&s.Batch) {
			s.WriteBatch(f, out)
		}
	}
}

// WriteBatch writes the batch of one watch, with the id of the whole stream if the batch
// ends where the client may resume. The id speaks for all watches of the stream.
func (s *Session) WriteBatch(f *Follow, out Encoder) {
	f.quietSince = time.Now()
	s.id = s.id[:0]
	if s.Batch.Boundary() && !s.uncovered() {
		s.id = appendPositions(s.id, s.Follows)
	}
	out.WriteBatch(s, s.id)
	s.Batch.Release()
	s.countBatch(f)
}

// uncovered reports whether the client has received changes of a watch that no position of it
// covers yet.
func (s *Session) uncovered() bool {
	for i := range s.Follows {
		if s.Follows[i].Sub.Uncovered() {
			return true
		}
	}
	return false
}

// Flushed is called after a flush of everything written so far, bytes in total,
// and restarts the heartbeat timer.
func (s *Session) Flushed(now time.Time, bytes int, err error) {
	s.QuietSince = now
	s.CountBytes(bytes)
	if err == nil {
		s.Written(now, s.Committed)
	}
	s.Committed = introspection.Moment{}
	if s.Own != nil { // a group is not flushed before its members are
		s.MarkFlushed()
	}
}

// Written measures a change that was written.
func (s *Session) Written(now time.Time, of introspection.Moment) {
	committed, id := introspection.FromNanos(of.At), ""
	if !committed.IsZero() && s.Deps.Tracing.SlowCommit(now.Sub(committed)) {
		id = s.Deps.Tracing.Commit(committed, now, tracing.Delivery{Transport: s.Transport(), Watches: s.Names()})
	}
	s.Deps.Metrics.Written(now, committed, of.Age, id)
	for i := range s.Follows {
		if f := &s.Follows[i]; f.news && !committed.IsZero() {
			f.tally.Written(now.Sub(committed))
		}
	}
}

// MarkFlushed is called once everything that was written so far is flushed: from now on, other
// watches may have news.
func (s *Session) MarkFlushed() {
	for i := range s.Follows {
		s.Follows[i].news = false
	}
}

// ForceHeartbeat makes a heartbeat due.
func (s *Session) ForceHeartbeat() { s.QuietSince = time.Time{} }

// HeartbeatAt returns when the next heartbeat is due.
func (s *Session) HeartbeatAt() time.Time { return s.QuietSince.Add(s.Deps.Heartbeat) }

// WakeAt returns the earliest time at which something is due.
func (s *Session) WakeAt() time.Time {
	at := Earlier(s.HeartbeatAt(), s.EndsAt())
	if s.Answer != nil {
		at = Earlier(s.Answer.EndsAt(), s.Authorization.EndsAt())
	}
	for i := range s.Follows {
		at = Earlier(at, s.Follows[i].Sub.Deadline())
	}
	return at
}

// Fork returns a session at the same position, in which the subscription of the
// i-th watch is sub(i); c must have caught up. The fork has nothing of its own.
func (s *Session) Fork(sub func(i int) *log.Subscription) Session {
	f := *s
	f.Follows = slices.Clone(s.Follows)
	for i := range f.Follows {
		f.Follows[i].Sub, f.Follows[i].news = sub(i), false
	}
	f.Own = nil
	f.Lease = limits.NewLease(s.Deps.Snapshots)
	f.Streams, f.Counted, f.Committed = 1, 0, introspection.Moment{}
	return f
}

// Release frees the references of the session, which another one
// continues.
func (s *Session) Release() {
	s.Lease.Release()
	for i := range s.Follows {
		s.Follows[i].Sub.Close()
	}
}

// Close frees the references of the session, and adds the counts that are
// known only at its end.
func (s *Session) Close(bytes int, timedOut bool) {
	s.Release()
	s.CountBytes(bytes)
	s.Deps.Metrics.StreamClosed(s.Transport())
	if timedOut {
		s.Deps.Metrics.WriteTimeout(s.Transport())
	}
}

// Earlier returns the earlier of two times; the zero time means never.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// Closed reports whether a channel on which nothing is sent is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// GroupKey identifies the properties that members of one group share.
func (s *Session) GroupKey() string {
	key := append([]byte(s.Transport()), 0, byte(s.Coding))
	key = strconv.AppendBool(strconv.AppendBool(strconv.AppendBool(key, s.Digest), s.Verify), s.Deletes)
	key = strconv.AppendInt(append(key, 0), int64(s.Interval), 10)
	key = strconv.AppendUint(append(key, 0), s.Deps.Generation, 10)
	for _, w := range s.watches {
		key = append(append(key, 0), w.Name...)
		key = append(append(key, 0), w.View.ID()...)
	}
	return string(key)
}

// Turn writes one batch of each watch that has one.
func (s *Session) Turn(out Encoder) bool {
	said := false
	for i := range s.Follows {
		said = s.TurnOf(i, out) || said
	}
	return said
}

// TurnOf writes one batch of the watch at the index, if it has one.
func (s *Session) TurnOf(i int, out Encoder) bool {
	f := &s.Follows[i]
	if s.Until && f.Sub.Synced() {
		return false // its part of this response is complete
	}
	if f.waits = s.waits(i); f.waits {
		return false
	}
	s.check(f)
	if !s.next(f) {
		return false
	}
	s.Lease.Moved()
	s.share(i)
	s.WriteBatch(f, out)
	return true
}

// waits reports whether a watch lets another one go first that is in the middle of a large
// transaction, or of deletes: until that is over, no id can be sent for any of them, and two
// watches that were never at such a place at the same time would never have one. The reset with which
// another part of a watch begins waits in any case, since it must have an id.
func (s *Session) waits(of int) bool {
	if s.Follows[of].Sub.Uncovered() {
		return false
	}
	for i := range s.Follows {
		if sub := s.Follows[i].Sub; sub.Uncovered() && (sub.Busy() || s.Follows[of].Sub.Replaces()) {
			return true
		}
	}
	return false
}

// next fills the batch with the next flush of a watch. It returns false if there is
// nothing now.
func (s *Session) next(f *Follow) bool {
	if !s.Turns {
		return f.Sub.Next(&s.Batch)
	}
	if f.Sub.NextTurn(&s.Batch) {
		return true
	}
	if f.Sub.Busy() {
		s.Lease.Moved() // the client is not the cause
	}
	return false
}

// share tells the other watches that the connection also carries the batch of one.
func (s *Session) share(of int) {
	for i := range s.Follows {
		if i != of {
			s.Follows[i].Sub.Moved(s.Batch.Bytes())
		}
	}
}

// Busy reports whether a watch has more to read, although its last turn wrote
// nothing.
func (s *Session) Busy() bool {
	for i := range s.Follows {
		if f := &s.Follows[i]; f.waits && !s.waits(i) || f.Sub.Busy() {
			return true
		}
	}
	return false
}

// check makes a watch with a large amount to read wait for the stream's turn.
func (s *Session) check(f *Follow) {
	if !s.Lease.Check(f.Sub) && s.Lease.Asks() && !s.hasMuch() {
		s.Lease.Release()
	}
	f.granted = s.Lease.Granted
}

// hasMuch reports whether a lease is still needed.
func (s *Session) hasMuch() bool {
	for i := range s.Follows {
		if limits.IsMuch(s.Follows[i].Sub) {
			return true
		}
	}
	return false
}

// digestEvery is after how many heartbeats a watch that is never quiet says what its digest is.
const digestEvery = 4

// Bookmarks writes the position in watches that were quiet for a heartbeat, or whose
// changes all lie outside the view, and the digest of those that have changed.
func (s *Session) Bookmarks(now time.Time, out Encoder) bool {
	said := false
	for i := range s.Follows {
		f := &s.Follows[i]
		due := now.Sub(f.quietSince) >= s.Deps.Heartbeat || f.digests && now.Sub(f.saidAt) >= digestEvery*s.Deps.Heartbeat
		if s.Answer == nil && due && f.Sub.Bookmark(&s.Batch) {
			s.WriteBatch(f, out)
			f.saidAt, said = now, true
		}
	}
	return said
}

// counts holds the counts of one subscription.
type counts struct {
	inSnapshot bool
	synced     bool   // the first end_of_snapshot was counted
	resumed    bool   // the outcome of the resume was counted
	skipped    uint64 // changes that were counted as conflated
}

// counting counts one stream, or a number of streams that are sent the same bytes.
type counting struct {
	metrics   *metrics.Metrics
	tally     *introspection.Tally
	transport string
	streams   int
	began     time.Time                // not of a group, which has had its snapshot
	delivered *introspection.Delivered // to one of them
	watch     string

	tracing *tracing.Tracing // nil: nothing is traced
	request tracing.Parent   // of the stream; nil: it is not traced
}

// count counts the events of a batch that was written.
func (n *counts) count(in counting, sub *log.Subscription, b *log.Batch) {
	m, events := in.metrics, uint64(0)
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		m.EventsOut(in.transport, t, b.Count(t)*in.streams)
		events += uint64(b.Count(t))
	}
	in.delivered.Events += events
	in.tally.Sent(events*uint64(in.streams), uint64(b.Bytes()*in.streams))
	n.inSnapshot = n.inSnapshot || b.Count(stream.Reset) > 0
	if b.Count(stream.EndOfSnapshot) > 0 && n.inSnapshot {
		n.inSnapshot = false
		m.Snapshot(in.transport)
	}
	if !n.synced && sub.Synced() {
		n.synced = true
		in.synced(sub)
	}
	if outcome := sub.Outcome(); !n.resumed && outcome != log.OutcomePending {
		n.resumed = true
		m.Resumed(in.transport, string(outcome))
	}
	skipped := sub.Skipped() - n.skipped
	m.Conflated(in.transport, skipped)
	in.delivered.Skipped += skipped
	n.skipped = sub.Skipped()
}

// synced measures how long the stream took to have all of a watch.
func (in counting) synced(sub *log.Subscription) {
	now := time.Now()
	id := in.tracing.SlowSnapshot(in.request, in.began, now, tracing.Snapshot{
		Transport: in.transport, Watch: in.watch, Outcome: string(sub.Outcome()), Events: in.delivered.Events, Bytes: in.delivered.Bytes,
	})
	in.metrics.TimeToEndOfSnapshot(now.Sub(in.began), id)
}
