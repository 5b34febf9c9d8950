package stream

// flushBytes is how much a flush holds at least before it ends, where it may: an
// id is sent at least as often.
const flushBytes = segmentSize

// turnEntries is how many entries a walk looks at in one turn at most, give or take
// a segment, also where the reader wants few of them.
const turnEntries = 4 << 10

// walk is a reader's way through one version: from where it is to the version's
// head. There are two. A replay gives the entries as they lie, superseded ones
// included, in the upstream's order. A catch-up, and so a snapshot, gives the
// state as of the head: first the deletes, then the live upserts by rising
// revision.
//
// Why a position in a catch-up needs two numbers: an upsert that was superseded
// before T is not given, so "everything up to R" is true only as seen at T.
type walk struct {
	under   bool     // there is one
	v       *version // nil between two flushes, and where there is none
	purpose purpose
	replay  bool
	torn    bool // a replay that is inside of a transaction

	paused pausedWalk // between two flushes

	looked   int       // entries that were looked at in this turn
	counting *counting // of what the reader has in the end; nil: it has all

	deletes bool  // a catch-up that is still at the deletes
	at      place // next entry to look at
	upserts place // where the upserts begin, once the deletes are done

	began     uint64 // seq of the last entry before the walk
	seq       uint64 // of the last transaction that was replayed
	revision  uint64 // of the last entry that was passed
	complete  uint64 // every entry up to this revision was passed
	delivered int
}

// purpose is why a walk is made, which decides how it begins and ends.
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

// tired says whether the turn is over, although b may have nothing yet.
func (w *walk) tired() bool { return w.looked >= turnEntries }

// fill adds entries to b until it is full or the turn is over, at a place where it
// may end.
func (w *walk) fill(b *Batch, prefix string) {
	w.looked = 0
	switch {
	case w.replay:
		w.fillReplay(b, prefix)
	case w.deletes:
		w.fillDeletes(b, prefix)
	default:
		w.fillUpserts(b, prefix)
	}
}

// fillReplay ends between transactions, but for one that is very large.
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
		if w.torn = !e.is(endsCommit); w.torn {
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
		if w.looked++; b.full() || w.tired() {
			return
		}
	}
	w.deletes, w.at = false, w.upserts
}

// fillUpserts ends with a segment if the next one might not find room: what is
// given of a segment is then the same for all readers, wherever they began, and
// what is made of it for one serves all. Not so of a narrowed watch, which may have
// little in each.
func (w *walk) fillUpserts(b *Batch, prefix string) {
	for w.at.segment < len(w.v.segments) && !b.full() && !w.tired() {
		if w.at.entry == 0 && b.bytes > 0 && prefix == "" && b.bytes+w.v.used(w.at.segment) > flushBytes {
			break
		}
		w.passUpserts(b, prefix)
	}
	if w.at.segment >= len(w.v.segments) || w.entry().revision > w.revision {
		w.complete = w.revision
	}
}

// passUpserts goes through one segment, or as much of it as there is room for.
func (w *walk) passUpserts(b *Batch, prefix string) {
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
		w.giveUpserts(b, s, from, i)
		from = i + 1
	}
	w.giveUpserts(b, s, from, i)
	w.looked += i - w.at.entry
	if w.at.entry = i; i == len(entries) {
		w.at = place{segment: w.at.segment + 1}
	}
}

func (w *walk) giveUpserts(b *Batch, s *segment, from, to int) {
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
