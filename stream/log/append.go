package log

import "time"

// append writes a transaction to the tail; its changes are already in order. It
// returns the last entry, or nil if there is none.
func (l *Log) append(changes []Change, revision uint64, result *CommitResult) *entry {
	l.warm(changes)
	now := time.Now()
	at := l.place()
	used := l.used
	var last *entry
	for i := range changes {
		if changes[i].Deleted {
			last = l.appendDelete(changes[i], at.borrows(&changes[i]), revision, now)
			result.Deletes++
			continue
		}
		last = l.appendUpsert(&changes[i])
		result.Upserts++
	}
	l.next.revision = revision
	l.next.committed = now
	if last == nil {
		return nil
	}
	last.flags |= endsCommit
	l.forget(now)
	l.keepCompact(l.used - used)
	return last
}

func (l *Log) appendUpsert(c *Change) *entry {
	e := l.appendChange(c)
	e.valueLen = uint32(len(c.Value))
	if c.Encoding != "" {
		e.flags |= valueBase64
	}
	l.next.count++
	return e
}

// place is where the next commit goes.
func (l *Log) place() placed { return placed{before: l.next.revision, unnumbered: l.unnumbered} }

// appendDelete writes a tombstone. A borrowed one takes the revision of the commit,
// and shows it if it has none of its own.
func (l *Log) appendDelete(c Change, borrowed bool, revision uint64, now time.Time) *entry {
	if c.Revision == 0 {
		c.Revision = revision
	}
	e := l.appendChange(&c)
	e.flags |= isDelete
	if borrowed {
		e.flags |= isBorrowed
		e.revision = revision
	}
	l.deletes.push(tombstone{seq: e.seq, at: now})
	l.deletes.bytes += int64(e.size)
	l.next.tombstones++
	return e
}

// appendChange writes the frame and its entry, and supersedes the older entry.
func (l *Log) appendChange(c *Change) *entry {
	k := newWireKey(c.Key)
	if l.index.full() {
		l.growIndex()
	}
	slot, oldSegment, old := l.lookup(k)
	size := l.framing.frameSize(c, k)
	s := l.tailFor(size)
	e, frame := s.next(size)
	l.framing.appendFrame(frame, c, k)
	l.next.seq++
	e.seq, e.revision, e.flags = l.next.seq, c.Revision, k.flags
	e.keyLen, e.hash = uint32(len(k.text)), k.hash
	l.next.tail = s.n
	if s.n == 1 {
		l.next.first = append(l.next.first, e.seq)
	}
	l.used += int64(size)
	if old != nil {
		l.supersede(oldSegment, old, e.seq)
	}
	l.index.set(slot, k.hash, e.seq)
	return e
}

// supersede hides an entry from every version from seq on.
func (l *Log) supersede(s *segment, e *entry, seq uint64) {
	e.superseded.Store(seq)
	s.dead += int(e.size)
	l.dead += int64(e.size)
	if e.is(isDelete) {
		l.next.tombstones--
		l.deletes.bytes -= int64(e.size)
		return
	}
	l.next.count--
}

// tailFor returns the last segment, or a new one if the frame does not fit.
func (l *Log) tailFor(size int) *segment {
	if n := len(l.next.segments); n > 0 && l.next.segments[n-1].fits(size) {
		return l.next.segments[n-1]
	}
	bytes, entries := segmentFor(size, l.used)
	s := newSegment(l.next.number, bytes, entries)
	l.next.segments = append(l.next.segments, s)
	l.allocated += s.bytes()
	l.added += s.bytes()
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
func (l *Log) growIndex() {
	grown := newIndex(2 * (l.next.count + l.next.tombstones + 8))
	l.retire(l.indexed, l.index.bytes())
	for i := range l.next.segments {
		entries := l.next.entries(i)
		for j := range entries {
			e := &entries[j]
			if e.superseded.Load() == 0 {
				grown.set(grown.probe(e.hash, func(uint64) bool { return false }), e.hash, e.seq)
			}
		}
	}
	l.index, l.indexed = grown, l.next.number
}
