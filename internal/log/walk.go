package log

import (
	"time"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// walk is the progress of a reader through one version, from its place to the version's
// head. There are two kinds. A replay gives the entries as they are, superseded ones
// included, in the upstream's order. A catch-up, and so a snapshot, gives the state
// as of the head: first the deletes, then the live upserts by rising revision.
//
// Why a position in a catch-up needs two numbers: an upsert that was superseded
// before T is not given, so "everything up to R" is true only as seen at T.
type walk struct {
	v              *storage.Version // nil between two flushes
	purpose        purpose
	replay         bool
	midTransaction bool // a replay that is inside a transaction

	paused pausedWalk // between two flushes

	examined int // entries examined in this turn

	deletes bool          // a catch-up that is still at the deletes
	at      storage.Place // next entry to examine
	upserts storage.Place // where the upserts begin, once the deletes are done

	began      uint64 // seq of the last entry before the walk
	seq        uint64 // of the last transaction replayed
	revision   uint64 // of the last entry passed
	complete   uint64 // every entry up to this revision was passed
	delivered  int    // entries; each is once, in whatever versions
	superseded uint64 // entries of a catch-up that were passed over

	difference *difference // of a move: what is not sent yet
}

// purpose is the reason for a walk, which decides how it begins and ends.
type purpose uint8

const (
	following purpose = iota // begins and ends without an event of its own
	snapshot                 // begins with reset, ends with end_of_snapshot
	resuming                 // ends with end_of_snapshot (resumed)
	catching                 // begins with status, ends with bookmark and status
	verifying                // ends with end_of_snapshot (verify)
	releasing                // ends with bookmark, if something was skipped or there is nothing else for the id
	moving                   // ends with bookmark
)

// skipped is how many changes a catch-up has left out. Of a view of another log, whose seqs
// have gaps, those are counted that were still there when they were passed.
func (w *walk) skipped(inPart bool) uint64 {
	if inPart {
		return w.superseded
	}
	return w.v.Seq - w.began - uint64(w.delivered)
}

// whole reports whether the reader has nothing of the walk before it has all of it.
func (w *walk) whole() bool {
	return w.purpose == verifying || w.purpose == releasing || w.purpose == moving
}

func (w *walk) done() bool {
	if w.purpose == moving {
		return w.difference.sent()
	}
	return !w.deletes && w.at.Segment >= len(w.v.Segments)
}

// turnOver reports whether the turn is over, although there may be nothing to send yet:
// deletes and superseded entries are passed over among the upserts.
func (w *walk) turnOver() bool { return w.examined >= storage.TurnEntries }

// fill adds entries to b until b is full or the turn is over, at a place where the
// flush may end.
func (w *walk) fill(b *Batch) {
	w.examined = 0
	switch {
	case w.purpose == moving:
		w.fillMove(b)
	case w.replay:
		w.fillReplay(b)
	case w.deletes:
		w.fillDeletes(b)
	default:
		w.fillUpserts(b)
	}
}

// mostHeld is the size of the segments that a flush of a replay refers to, from which it ends.
const mostHeld = 1 << 20

// fillReplay ends between transactions, except inside a very large one.
func (w *walk) fillReplay(b *Batch) {
	for w.at.Segment < len(w.v.Segments) && b.bytes < storage.ReplaySize && b.heldBytes < mostHeld {
		s := w.v.Segments[w.at.Segment]
		e := &s.Entries[w.at.Entry]
		b.addEntry(s, w.at.Entry)
		w.delivered++
		w.step()
		if w.midTransaction = !e.Is(storage.EndsCommit); w.midTransaction {
			continue
		}
		w.seq, w.complete = e.Seq, e.Revision
		if b.full() {
			return
		}
	}
}

func (w *walk) fillDeletes(b *Batch) {
	for w.at.Segment < len(w.v.Segments) {
		s := w.v.Segments[w.at.Segment]
		e := &s.Entries[w.at.Entry]
		switch {
		case !e.Is(storage.IsDelete):
		case e.Visible(w.v.Seq) && !w.neverHeld(e):
			b.addDelete(s, w.at.Entry)
			w.delivered++
		default:
			w.superseded++
		}
		w.step()
		if w.examined++; b.full() || w.turnOver() {
			return
		}
	}
	w.deletes, w.at = false, w.upserts
}

// mostBefore is how many entries of a key are looked at to know whether the reader had it.
const mostBefore = 8

// neverHeld reports whether the key of a delete was in no state that the reader has had: it came and went since. This is known
// only of a reader that has had exactly the state before the walk, of this log. Where it is not known, the delete is sent.
func (w *walk) neverHeld(e *storage.Entry) bool {
	if w.purpose != releasing {
		return false
	}
	for range mostBefore {
		_, before, known := w.v.Before(e)
		switch {
		case !known:
			return false
		case before == nil:
			return true
		case before.Seq <= w.began:
			return before.Is(storage.IsDelete)
		}
		e = before
	}
	return false
}

// fillUpserts ends with a segment if the next one might not fit. What is given of a
// segment is then the same for all readers, wherever they began, and can be built
// once for all.
func (w *walk) fillUpserts(b *Batch) {
	for w.at.Segment < len(w.v.Segments) && !b.full() && !w.turnOver() {
		if w.at.Entry == 0 && b.bytes > 0 && b.bytes+w.v.UsedBytes(w.at.Segment) > storage.FlushSize {
			break
		}
		w.fillSegment(b)
	}
	if w.at.Segment >= len(w.v.Segments) || w.entry().Revision > w.revision {
		w.complete = w.revision
	}
}

// fillSegment goes through one segment, or as much of it as fits.
func (w *walk) fillSegment(b *Batch) {
	s, entries := w.v.Segments[w.at.Segment], w.v.Entries(w.at.Segment)
	i, from, size := w.at.Entry, w.at.Entry, b.bytes // entries from "from" on are a run
	for ; i < len(entries) && size < storage.FlushSize; i++ {
		e := &entries[i]
		if e.Revision > w.revision {
			w.complete, w.revision = w.revision, e.Revision
		}
		if !e.Is(storage.IsDelete) {
			if e.Visible(w.v.Seq) {
				size += int(e.Size)
				continue
			}
			w.superseded++
		}
		w.addUpserts(b, s, from, i)
		from = i + 1
	}
	w.addUpserts(b, s, from, i)
	w.examined += i - w.at.Entry
	if w.at.Entry = i; i == len(entries) {
		w.at = storage.Place{Segment: w.at.Segment + 1}
	}
}

func (w *walk) addUpserts(b *Batch, s *storage.Segment, from, to int) {
	if from < to {
		b.addUpserts(s, from, to)
		w.delivered += to - from
	}
}

func (w *walk) entry() *storage.Entry { return &w.v.Segments[w.at.Segment].Entries[w.at.Entry] }

func (w *walk) step() {
	w.at.Entry++
	if w.at.Entry >= len(w.v.Entries(w.at.Segment)) {
		w.at = storage.Place{Segment: w.at.Segment + 1}
	}
}

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
		if s.walk.v = s.pin.Version(); s.walk.v == nil || s.walk.purpose == verifying && !s.verifies() {
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

// restartWalk continues a walk whose version was taken away in the newest version, or in one
// that another reader has pinned, with what is newer than what was passed. What was passed may have
// changed since, so a key may come twice, the second time newer.
func (s *Subscription) restartWalk(b *Batch, v *storage.Version) {
	w := *s.walk
	s.endWalk()
	switch {
	case w.purpose == verifying:
		s.beginAgain(b, v, stream.ResetExpired)
		return
	case w.purpose == moving:
		s.reset(b, v, stream.ResetExpired)
		return
	case w.replay && !w.midTransaction:
		return // the cursor says where to continue
	}
	newest := v
	pinned, joined := s.log.pins.Join(v.Generation, w.paused.asOf, s.options.MinRate)
	if joined != nil {
		v = joined
	}
	outage := v.Complete() != s.origin && w.purpose != snapshot
	switch {
	case w.purpose == snapshot && w.revision == 0 && !s.early: // nothing was passed
		s.startWalk(b, s.snapshotWalk(v))
		s.pin = pinned
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
		s.log.pins.Release(pinned)
		s.beginAgain(b, newest, stream.ResetExpired)
		return
	}
	w.midTransaction = false
	s.cursor = min(deletes, upserts)
	w.v, w.deletes, w.at, w.upserts = v, true, v.After(deletes), v.After(upserts)
	s.startWalk(b, w)
	s.pin = pinned
	s.ownStatus = &stream.Status{State: stream.CatchingUp, Since: time.Now(), Reason: "too slow to be sent the state of one moment: going on with a newer one"}
	s.sentStatus = &stream.Status{}
	s.addStatus(b, v, false)
}
