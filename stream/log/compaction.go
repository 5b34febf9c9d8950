package log

// replayBytes is how much of the log's tail stays as it was written, so that readers
// near the head get every change in the upstream's order, as one slice.
const replayBytes = 1 << 20

// sweepBytes bounds what one commit spends on compaction.
const sweepBytes = 1 << 20

// sweepSegments bounds how many segments one commit looks at.
const sweepSegments = 512

// compactAfter is called after a commit of so many bytes. A commit that supersedes
// much must be compacted at once, or a log could hold twice what it serves for long.
func (w *Writer) compactAfter(added int64) {
	for ; added >= 0; added -= sweepBytes / 4 {
		w.compact()
	}
}

// compact rewrites segments that are largely superseded, a bounded number at each
// commit. It keeps superseded frames below two fifths of the live ones, not counting
// the tail. Each pass continues where the last one stopped. Readers that hold an
// older version keep the old segments; the garbage collector does the rest.
func (w *Writer) compact() {
	live := w.used - w.dead
	if w.dead <= live*2/5+w.account.TailBytes(replayBytes) {
		return
	}
	v := &w.next
	end := w.sealed()
	if end == 0 {
		return
	}
	begin := min(v.after(w.sweep).segment, end)
	if begin == end {
		begin = 0
	}
	stop := min(end, begin+sweepSegments)
	c := compaction{number: v.number, segments: v.segments[:begin:begin], first: v.first[:begin:begin]}
	i := begin
	for ; i < stop && c.read < sweepBytes; i++ {
		c.add(w, v.segments[i], v.first[i], v.entries(i))
	}
	if i < len(v.segments) {
		w.sweep = v.first[i] - 1
	}
	if !c.rewrote {
		return
	}
	c.close()
	c.segments = append(c.segments, v.segments[i:]...)
	c.first = append(c.first, v.first[i:]...)
	w.retire(w.listed, inList*int64(len(v.segments)))
	w.listed = v.number
	v.segments, v.first = c.segments, c.first
	w.used -= c.freed
	w.dead -= c.freed
	w.allocated += c.allocated
}

// inList is how many bytes a segment takes in the lists of a version.
const inList = 16

// sealed is how many segments precede the tail that is left alone.
func (w *Writer) sealed() int {
	tail := w.account.TailBytes(replayBytes)
	i, kept := len(w.next.segments)-1, int64(0)
	for i > 0 && kept < tail {
		kept += int64(w.next.segments[i].used)
		i--
	}
	return max(i, 0)
}

// compaction is one pass: the list of segments as it will be.
type compaction struct {
	segments []*segment
	first    []uint64
	out      *segment // the last of segments, if this pass made it and it has room

	number    uint64 // of the version being made
	rewrote   bool
	read      int   // bytes examined
	freed     int64 // bytes of frames dropped
	allocated int64
}

// add takes over a segment, unchanged or rewritten.
func (c *compaction) add(w *Writer, s *segment, first uint64, entries []entry) {
	// If two sevenths of all are superseded, at least one segment is worth
	// rewriting.
	worth := s.dead*7 >= s.used*2
	mergeable := c.out != nil && s.used-s.dead <= len(c.out.slab)-c.out.used
	if !worth && !mergeable {
		c.close()
		c.segments, c.first = append(c.segments, s), append(c.first, first)
		return
	}
	c.rewrote = true
	c.read += s.used
	c.freed += int64(s.dead)
	c.allocated -= s.bytes()
	w.retire(s.born, s.bytes())
	for i := range entries {
		e := &entries[i]
		if superseded := e.superseded.Load(); superseded != 0 {
			w.next.readable = max(w.next.readable, superseded)
			w.next.intact = max(w.next.intact, e.seq)
			continue
		}
		c.take(s, e)
	}
}

func (c *compaction) take(from *segment, e *entry) {
	if c.out == nil || !c.out.fits(int(e.size)) {
		c.close()
		bytes := max(segmentSize, int(e.size))
		c.out = newSegment(c.number, bytes, bytes/int(e.size)*5/4+4)
		c.allocated += c.out.bytes()
		c.segments, c.first = append(c.segments, c.out), append(c.first, e.seq)
	}
	c.out.take(from, e)
}

// close ends the segment being filled, and trims it if much of it is empty.
func (c *compaction) close() {
	s := c.out
	c.out = nil
	if s == nil || s.used*8 >= len(s.slab)*7 {
		return
	}
	cut := newSegment(c.number, s.used, s.n)
	for i := range s.entries[:s.n] {
		cut.take(s, &s.entries[i])
	}
	c.allocated += cut.bytes() - s.bytes()
	c.segments[len(c.segments)-1] = cut
}
