package log

import (
	"github.com/watchtide/watchtide/internal/storage"
)

// sweepBytes bounds how many bytes one commit compacts.
const sweepBytes = 1 << 20

// sweepSegments bounds how many segments one commit examines.
const sweepSegments = 512

// compactAfter is called after a commit of so many bytes. A commit that supersedes
// much must be compacted at once, or a log could hold twice what it serves for long.
func (w *Writer) compactAfter(added int64) {
	for ; added >= 0; added -= sweepBytes / 4 {
		w.compact()
	}
}

// compact rewrites segments that are largely superseded, a bounded number at each
// commit, without what was superseded up to the mark. It keeps superseded frames below
// two fifths of the live ones, not counting the tail. Each pass continues where the last
// one stopped. Readers that hold an older version keep the old segments; the garbage
// collector does the rest.
func (w *Writer) compact() {
	live := w.used - w.dead
	if w.dead <= live*2/5+w.tailBytes() {
		return
	}
	v := w.next
	end := w.compactable()
	if end == 0 {
		return
	}
	begin := min(v.After(w.sweep).Segment, end)
	if begin == end {
		begin = 0
	}
	stop := min(end, begin+sweepSegments)
	c := compaction{mark: w.mark(end), list: storage.NewCompaction(v.Number, v.Segments[:begin:begin], v.First[:begin:begin])}
	i := begin
	for ; i < stop && c.read < sweepBytes; i++ {
		c.add(w, v.Segments[i], v.First[i], v.Entries(i))
	}
	if i < len(v.Segments) {
		w.sweep = v.First[i] - 1
	}
	if !c.rewrote {
		return
	}
	c.list.Close()
	w.retire(w.listed, inList*int64(len(v.Segments)))
	w.listed = v.Number
	v.Segments, v.First = append(c.list.Segments, v.Segments[i:]...), append(c.list.First, v.First[i:]...)
	w.used -= c.freed
	w.dead -= c.freed
	w.allocated += c.allocated + c.list.Allocated
}

// inList is how many bytes a segment takes in the lists of a version.
const inList = 16

// compactable is how many segments precede the tail that is left alone.
func (w *Writer) compactable() int {
	tail := w.tailBytes()
	i, kept := len(w.next.Segments)-1, int64(0)
	for i > 0 && kept < tail {
		kept += int64(w.next.Segments[i].Used)
		i--
	}
	return max(i, 0)
}

// tailBytes is the size of the tail that is left alone. There may be very many parts, and
// their readers are seldom behind.
func (w *Writer) tailBytes() int64 {
	most := int64(storage.ReplaySize)
	if w.isView {
		most = min(most, partTail+w.used-w.dead)
	}
	return w.account.TailBytes(most)
}

// partTail is the tail of an empty part.
const partTail = 8 << 10

// pack moves the entries of a small log into one segment that is just large enough.
func (w *Writer) pack() {
	v := w.next
	if v.Count()+v.Tombstones == 0 || w.used > int64(storage.SegmentSize) {
		return
	}
	for _, s := range v.Segments {
		w.retire(s.Born, s.Bytes())
	}
	packed := v.Packed(int(w.used - w.dead))
	v.Segments, v.First, v.Tail = []*storage.Segment{packed}, []uint64{packed.Entries[0].Seq}, packed.N
	w.allocated, w.used, w.dead = packed.Bytes(), w.used-w.dead, 0
}

// compaction is one pass.
type compaction struct {
	list      storage.Compaction
	mark      uint64 // what was superseded after it is kept
	rewrote   bool
	read      int   // bytes examined
	freed     int64 // bytes of frames dropped
	allocated int64 // less those of segments that were dropped
}

// add takes over a segment, unchanged or rewritten.
func (c *compaction) add(w *Writer, s *storage.Segment, first uint64, entries []storage.Entry) {
	if !c.worth(w, s) && !c.list.Mergeable(s, c.mark) {
		c.list.Keep(s, first)
		return
	}
	c.rewrote = true
	c.read += s.Used
	c.allocated -= s.Bytes()
	w.retire(s.Born, s.Bytes())
	for i := range entries {
		e := &entries[i]
		if superseded := e.Superseded.Load(); superseded != 0 && superseded <= c.mark {
			c.freed += int64(e.Size)
			w.next.Readable = max(w.next.Readable, superseded)
			w.next.Intact = max(w.next.Intact, e.Seq)
			continue
		}
		c.list.Copy(s, e)
	}
}

// worth reports whether so much of a segment can be dropped that it is worth rewriting: a
// quarter, which can be dropped of at least one if too much is superseded; see Writer.mark.
func (c *compaction) worth(w *Writer, s *storage.Segment) bool {
	worth, searched := s.QuarterDead(c.mark, w.next.Seq)
	if searched {
		c.read += s.Used / 2 // about what it costs
	}
	return worth
}
