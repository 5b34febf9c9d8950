package storage

// Compaction is the list of segments as it will be. The zero value is not usable; see New.
//
// Owned by the log's writer.
type Compaction struct {
	Segments  []*Segment
	First     []uint64 // seq of the first entry of each
	Allocated int64    // bytes of segments that were made

	number uint64   // of the version being made
	out    *Segment // the last of Segments, if the list made it and it has room
}

// NewCompaction returns a list that begins with some segments. They are for the version with a number.
func NewCompaction(number uint64, segments []*Segment, first []uint64) Compaction {
	return Compaction{Segments: segments, First: first, number: number}
}

// Keep takes over a segment as it is.
func (l *Compaction) Keep(s *Segment, first uint64) {
	l.Close()
	l.Segments, l.First = append(l.Segments, s), append(l.First, first)
}

// Copy takes over an entry.
func (l *Compaction) Copy(from *Segment, e *Entry) {
	if l.out == nil || !l.out.Fits(int(e.Size)) {
		l.Close()
		bytes := max(SegmentSize, int(e.Size))
		l.out = NewSegment(l.number, bytes, bytes/int(e.Size)*5/4+4)
		l.Allocated += l.out.Bytes()
		l.Segments, l.First = append(l.Segments, l.out), append(l.First, e.Seq)
	}
	l.out.AppendCopy(from, e)
}

// Mergeable reports whether what is left of a segment, without what was superseded up to a
// mark, fits into the one being filled.
func (l *Compaction) Mergeable(s *Segment, mark uint64) bool {
	if l.out == nil || s.Used-s.Dead > len(l.out.Slab)-l.out.Used {
		return false
	}
	return s.Used-s.DeadAt(mark) <= len(l.out.Slab)-l.out.Used
}

// Close ends the segment being filled, and trims it if much of it is empty.
func (l *Compaction) Close() {
	s := l.out
	l.out = nil
	if s == nil || s.Used*8 >= len(s.Slab)*7 {
		return
	}
	cut := NewSegment(l.number, s.Used, s.N)
	for i := range s.Entries[:s.N] {
		cut.AppendCopy(s, &s.Entries[i])
	}
	l.Allocated += cut.Bytes() - s.Bytes()
	l.Segments[len(l.Segments)-1] = cut
}
