package log

// flushBytes is the size from which a flush ends at the next place where it may: an
// id is sent at least as often.
const flushBytes = segmentSize

// turnEntries is the most entries that a walk examines in one turn, give or take a
// segment, even if the reader wants few of them.
const turnEntries = 4 << 10

// walk is a reader's way through one version: from where it is to the version's
// head. There are two kinds. A replay gives the entries as they are, superseded ones
// included, in the upstream's order. A catch-up, and so a snapshot, gives the state
// as of the head: first the deletes, then the live upserts by rising revision.
//
// Why a position in a catch-up needs two numbers: an upsert that was superseded
// before T is not given, so "everything up to R" is true only as seen at T.
type walk struct {
	active         bool     // a walk is under way
	v              *version // nil between two flushes, and if no walk is under way
	purpose        purpose
	replay         bool
	midTransaction bool // a replay that is inside a transaction

	paused pausedWalk // between two flushes

	examined int       // entries examined in this turn
	counting *counting // of what the reader has in the end; nil: everything

	deletes bool  // a catch-up that is still at the deletes
	at      place // next entry to examine
	upserts place // where the upserts begin, once the deletes are done

	began     uint64 // seq of the last entry before the walk
	seq       uint64 // of the last transaction replayed
	revision  uint64 // of the last entry passed
	complete  uint64 // every entry up to this revision was passed
	delivered int
}

// purpose is the reason for a walk, which decides how it begins and ends.
type purpose uint8

const (
	following purpose = iota // nothing: changes are changes
	snapshot                 // begins with reset, ends with end_of_snapshot
	resuming                 // ends with end_of_snapshot (resumed)
	catching                 // begins with status, ends with bookmark and status
)

func (w *walk) done() bool {
	return !w.deletes && w.at.segment >= len(w.v.segments)
}

// turnOver reports whether the turn is over, although b may have nothing yet.
func (w *walk) turnOver() bool { return w.examined >= turnEntries }

// fill adds entries to b until b is full or the turn is over, at a place where the
// flush may end.
func (w *walk) fill(b *Batch, prefix string) {
	w.examined = 0
	switch {
	case w.replay:
		w.fillReplay(b, prefix)
	case w.deletes:
		w.fillDeletes(b, prefix)
	default:
		w.fillUpserts(b, prefix)
	}
}

// fillReplay ends between transactions, except inside a very large one.
func (w *walk) fillReplay(b *Batch, prefix string) {
	f := &b.log.framing
	for w.at.segment < len(w.v.segments) && b.bytes < replayBytes && b.holds < replayBytes {
		s := w.v.segments[w.at.segment]
		e := &s.entries[w.at.entry]
		if f.hasPrefix(s, e, prefix) {
			b.addEntry(s, w.at.entry)
			w.delivered++
		}
		w.step()
		if w.midTransaction = !e.is(endsCommit); w.midTransaction {
			continue
		}
		w.seq, w.complete = e.seq, e.revision
		if b.full() {
			return
		}
	}
}

func (w *walk) fillDeletes(b *Batch, prefix string) {
	f := &b.log.framing
	for w.at.segment < len(w.v.segments) {
		s := w.v.segments[w.at.segment]
		e := &s.entries[w.at.entry]
		if e.is(isDelete) && e.visible(w.v.seq) && f.hasPrefix(s, e, prefix) {
			b.addEntry(s, w.at.entry)
			w.delivered++
		}
		w.step()
		if w.examined++; b.full() || w.turnOver() {
			return
		}
	}
	w.deletes, w.at = false, w.upserts
}

// fillUpserts ends with a segment if the next one might not fit. What is given of a
// segment is then the same for all readers, wherever they began, and can be built
// once for all. This does not apply to a narrowed watch, which may have little in
// each segment.
func (w *walk) fillUpserts(b *Batch, prefix string) {
	for w.at.segment < len(w.v.segments) && !b.full() && !w.turnOver() {
		if w.at.entry == 0 && b.bytes > 0 && prefix == "" && b.bytes+w.v.used(w.at.segment) > flushBytes {
			break
		}
		w.fillSegment(b, prefix)
	}
	if w.at.segment >= len(w.v.segments) || w.entry().revision > w.revision {
		w.complete = w.revision
	}
}

// fillSegment goes through one segment, or as much of it as fits.
func (w *walk) fillSegment(b *Batch, prefix string) {
	s, entries, f := w.v.segments[w.at.segment], w.v.entries(w.at.segment), &b.log.framing
	i, from, size := w.at.entry, w.at.entry, b.bytes // entries from "from" on are a run
	for ; i < len(entries) && size < flushBytes; i++ {
		e := &entries[i]
		if e.revision > w.revision {
			w.complete, w.revision = w.revision, e.revision
		}
		if !e.is(isDelete) && e.visible(w.v.seq) && f.hasPrefix(s, e, prefix) {
			size += int(e.size)
			continue
		}
		w.addUpserts(b, s, from, i)
		from = i + 1
	}
	w.addUpserts(b, s, from, i)
	w.examined += i - w.at.entry
	if w.at.entry = i; i == len(entries) {
		w.at = place{segment: w.at.segment + 1}
	}
}

func (w *walk) addUpserts(b *Batch, s *segment, from, to int) {
	if from < to {
		b.addUpserts(s, from, to)
		w.delivered += to - from
	}
}

func (w *walk) entry() *entry { return &w.v.segments[w.at.segment].entries[w.at.entry] }

func (w *walk) step() {
	w.at.entry++
	if w.at.entry >= len(w.v.entries(w.at.segment)) {
		w.at = place{segment: w.at.segment + 1}
	}
}
