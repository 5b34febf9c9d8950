package log

import (
	"time"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// pausedWalk is the place of a walk between two flushes, in terms that remain valid in newer
// versions of the log. The version itself is pinned meanwhile, or was taken away.
type pausedWalk struct {
	passed  uint64 // seq of the last entry passed
	upserts uint64 // seq of the last entry before the upserts, in a catch-up that is still at the deletes
	asOf    uint64 // seq of the newest entry of the version
	count   int    // resources of the version
}

// walking reports whether a walk is under way.
func (s *Subscription) walking() bool { return s.walk != nil }

// startWalk begins a walk, in the batch that is being filled: most walks end in the flush in
// which they begin, and a reader at rest holds nothing for the next.
func (s *Subscription) startWalk(b *Batch, w walk) {
	b.walk = w
	s.walk = &b.walk
}

// pauseWalk is called after a flush that did not end the walk under way. From now on
// its pin holds the version, not the walk itself, and the subscription the walk.
func (s *Subscription) pauseWalk(b *Batch) {
	if !s.walking() || s.walk.v == nil {
		return
	}
	if s.walk == &b.walk {
		kept := b.walk
		s.walk, b.walk = &kept, walk{}
	}
	w := s.walk
	if s.pin == nil {
		s.pin = s.log.pins.Add(w.v, s.options.MinRate)
	}
	s.log.pins.Credit(s.pin, b.bytes)
	w.paused = pausedWalk{passed: w.v.SeqBefore(w.at), asOf: w.v.Seq, count: w.v.Count()}
	if w.deletes {
		w.paused.upserts = w.v.SeqBefore(w.upserts)
	}
	w.v = nil
}

// resumeWalk continues a paused walk, unless the watch has begun a new generation. If
// its version was taken away, it continues in the newest one.
func (s *Subscription) resumeWalk(b *Batch, newest *storage.Version) {
	switch {
	case !s.walking():
	case s.generation != newest.Generation:
		s.endWalk()
	case s.paused:
		s.log.pins.Pause(s.pin)
	default:
		if s.walk.v = s.pin.Version(); s.walk.v == nil {
			s.restartWalk(b, newest)
		}
	}
}

// endWalk ends the walk under way, if there is one.
func (s *Subscription) endWalk() {
	if !s.walking() {
		return
	}
	s.log.pins.Release(s.pin)
	*s.walk = walk{} // the batch that it may be in is used again
	s.walk, s.pin = nil, nil
}

// restartWalk continues a walk whose version was taken away in the newest version,
// with what is newer than what was passed. What was passed may have changed since,
// so a key may come twice, the second time newer.
func (s *Subscription) restartWalk(b *Batch, v *storage.Version) {
	w := *s.walk
	outage := v.Complete() != s.origin && w.purpose != snapshot
	s.endWalk()
	switch {
	case w.purpose == verifying:
		s.verify(b, v, nil)
		return
	case w.purpose == moving:
		s.reset(b, v, stream.ResetExpired)
		return
	case w.replay && !w.midTransaction:
		return // the cursor says where to continue
	case w.purpose == snapshot && w.revision == 0 && !s.early:
		s.startWalk(b, s.snapshotWalk(v)) // nothing was passed
		return
	case w.replay:
		w.purpose, w.replay, w.began = catching, false, s.cursor
		w.paused = pausedWalk{passed: s.cursor, asOf: s.cursor}
		w.revision, w.complete, w.delivered = s.position.AsOf, s.position.AsOf, 0
	case w.purpose == snapshot:
		w.purpose = resuming
	case w.purpose == releasing:
		w.purpose = catching
	}
	deletes, upserts := w.paused.asOf, w.paused.passed
	if w.deletes {
		deletes, upserts = w.paused.passed, w.paused.upserts
	}
	if deletes < v.Forgotten || outage {
		// A gateway that follows must learn of an outage before it receives anything
		// from after it, and a bookmark would commit what it has received so far.
		s.reset(b, v, stream.ResetExpired)
		return
	}
	w.midTransaction = false
	s.cursor = min(deletes, upserts)
	w.v, w.deletes, w.at, w.upserts = v, true, v.After(deletes), v.After(upserts)
	s.startWalk(b, w)
	s.ownStatus = &stream.Status{State: stream.CatchingUp, Since: time.Now(), Reason: "too slow to be sent the state of one moment: going on with the newest"}
	s.sentStatus = &stream.Status{}
	s.addStatus(b, v, false)
}
