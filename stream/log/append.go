package log

import "time"

// append writes a transaction to the tail; its changes are already in order. It
// returns the last entry, or nil if there is none.
func (w *Writer) append(changes []Change, revision uint64, result *CommitResult) *entry {
	w.prefetch(changes)
	now := time.Now()
	at := w.order()
	used := w.used
	var last *entry
	for i := range changes {
		if changes[i].Deleted {
			last = w.appendDelete(changes[i], at.isUnnumbered(&changes[i]), revision, now)
			result.Deletes++
			continue
		}
		last = w.appendUpsert(&changes[i])
		result.Upserts++
	}
	w.next.revision = revision
	w.next.committed = now
	if last == nil {
		return nil
	}
	last.flags |= endsCommit
	w.forgetDeletes(now)
	w.compactAfter(w.used - used)
	return last
}

func (w *Writer) appendUpsert(c *Change) *entry {
	e := w.appendChange(c)
	e.valueLen = uint32(len(c.Value))
	if c.Encoding != "" {
		e.flags |= valueBase64
	}
	w.next.count++
	return e
}

// order is that of the next commit.
func (w *Writer) order() commitOrder {
	return commitOrder{before: w.next.revision, unnumbered: w.unnumbered}
}

// appendDelete writes a tombstone. An unnumbered one takes the revision of the
// commit, and shows it if it has none of its own.
func (w *Writer) appendDelete(c Change, unnumbered bool, revision uint64, now time.Time) *entry {
	if c.Revision == 0 {
		c.Revision = revision
	}
	e := w.appendChange(&c)
	e.flags |= isDelete
	if unnumbered {
		e.flags |= unnumberedDelete
		e.revision = revision
	}
	w.deletes.push(tombstone{seq: e.seq, at: now})
	w.deletes.bytes += int64(e.size)
	w.next.tombstones++
	return e
}

// appendChange writes the frame and its entry, and supersedes the older entry.
func (w *Writer) appendChange(c *Change) *entry {
	k := newWireKey(c.Key)
	if w.index.full() {
		w.growIndex()
	}
	slot, oldSegment, old := w.lookup(k)
	size := w.framing.frameSize(c, k)
	s := w.tailFor(size)
	e, frame := s.next(size)
	w.framing.appendFrame(frame, c, k)
	w.next.seq++
	e.seq, e.revision, e.flags = w.next.seq, c.Revision, k.flags
	e.keyLen, e.hash = uint32(len(k.text)), k.hash
	w.next.tail = s.n
	if s.n == 1 {
		w.next.first = append(w.next.first, e.seq)
	}
	w.used += int64(size)
	if old != nil {
		w.supersede(oldSegment, old, e.seq)
	}
	w.index.set(slot, k.hash, e.seq)
	return e
}

// supersede hides an entry from every version from seq on.
func (w *Writer) supersede(s *segment, e *entry, seq uint64) {
	e.superseded.Store(seq)
	s.dead += int(e.size)
	w.dead += int64(e.size)
	if e.is(isDelete) {
		w.next.tombstones--
		w.deletes.bytes -= int64(e.size)
		return
	}
	w.next.count--
}

// tailFor returns the last segment, or a new one if the frame does not fit.
func (w *Writer) tailFor(size int) *segment {
	if n := len(w.next.segments); n > 0 && w.next.segments[n-1].fits(size) {
		return w.next.segments[n-1]
	}
	bytes, entries := segmentFor(size, w.used)
	s := newSegment(w.next.number, bytes, entries)
	w.next.segments = append(w.next.segments, s)
	w.allocated += s.bytes()
	w.added += s.bytes()
	return s
}

// segmentFor returns the size of the next segment of a log that has used so many
// bytes; size is that of its first frame. Slabs grow with the log. There are as many
// entries as frames of this size would fill, and some more.
func segmentFor(size int, used int64) (bytes, entries int) {
	bytes = max(size, smallestSegment, int(min(used, segmentSize)))
	return bytes, bytes/size*5/4 + 4
}

// growIndex makes a table for the keys that have an entry, with room for as many
// more. Readers keep the old one.
func (w *Writer) growIndex() {
	grown := newIndex(2 * (w.next.count + w.next.tombstones + 8))
	w.retire(w.indexed, w.index.bytes())
	for i := range w.next.segments {
		entries := w.next.entries(i)
		for j := range entries {
			e := &entries[j]
			if e.superseded.Load() == 0 {
				grown.set(grown.probe(e.hash, func(uint64) bool { return false }), e.hash, e.seq)
			}
		}
	}
	w.index, w.indexed = grown, w.next.number
}
