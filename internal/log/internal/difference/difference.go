package difference

import (
	"bytes"
	"unsafe"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// State is what a reader has: the state of a log at a seq, in a version that still has it.
type State struct {
	Version *storage.Version
	Seq     uint64
}

// Difference is the events that lead from one state to another: deletes, then upserts by rising
// revision.
//
// Static after construction.
type Difference struct {
	Runs  []Run
	Bytes int64 // of the frames that are sent
	Holds int64 // bytes of the deletes, which nothing else holds
}

// Run is the entries of a segment from From up to, but not including, To: all deletes or all
// upserts.
type Run struct {
	Segment  *storage.Segment
	From, To int
	Bytes    int // of frames
}

// Deletes reports whether a run has deletes.
func (r Run) Deletes() bool { return r.Segment.Entries[r.From].Is(storage.IsDelete) }

// Left returns the number of bytes from a run on, at most limit.
func (d *Difference) Left(run, limit int) (n int) {
	for ; run < len(d.Runs) && n < limit; run++ {
		n += d.Runs[run].Bytes
	}
	return min(n, limit)
}

// Between returns the difference from a state to the newest state of another part of the same
// log, which must not be older; nil: to the empty state. It returns nil if sending the whole
// new state takes fewer bytes.
func Between(old State, now *storage.Version, f *storage.Format) *Difference {
	m := maker{old: cursorAt(old), format: f, to: now, revision: old.Version.Revision, most: int64(1) << 62}
	if now != nil {
		m.new = cursorAt(State{Version: now, Seq: now.Seq})
		m.revision, m.most = now.Revision, max(int64(storage.SegmentSize), used(now)) // a small one is made, however small the new state is
	}
	if !m.make() || now != nil && m.deleted+m.added > max(int64(storage.SegmentSize), m.live) {
		return nil
	}
	runs, holds := m.deletes()
	d := &Difference{Runs: append(runs, m.upserts...), Bytes: m.deleted + m.added, Holds: holds}
	d.Holds += int64(cap(d.Runs)) * int64(unsafe.Sizeof(Run{}))
	return d
}

// used returns the number of bytes of frames in the segments of a version.
func used(v *storage.Version) (n int64) {
	for i := range v.Segments {
		n += int64(v.UsedBytes(i))
	}
	return n
}

// maker walks through two states side by side. A change has the same seq in all parts of a log.
type maker struct {
	old, new cursor
	format   *storage.Format
	to       *storage.Version // nil: nothing remains
	revision uint64           // of the deletes
	most     int64            // bytes of deletes or of upserts at which it gives up

	removed []storage.Key
	upserts []Run
	deleted int64 // bytes of deletes
	added   int64 // bytes of upserts
	live    int64 // bytes of the new state
}

// make finds all deletes and upserts. It returns false if there are too many.
func (m *maker) make() bool {
	for m.old.entry != nil || m.new.entry != nil {
		switch {
		case m.new.entry == nil || m.old.entry != nil && m.old.entry.Seq < m.new.entry.Seq:
			m.gone(m.format.KeyOf(m.old.segment(), m.old.entry))
			m.old.next()
		case m.old.entry == nil || m.new.entry.Seq < m.old.entry.Seq:
			m.add()
			m.new.next()
		default:
			if !bytes.Equal(m.old.frame(), m.new.frame()) {
				m.add()
			} else {
				m.live += int64(m.new.entry.Size)
			}
			m.old.next()
			m.new.next()
		}
		if max(m.deleted, m.added) > m.most {
			return false
		}
	}
	return true
}

// gone adds a delete for a resource of the old state, unless the new state has a newer value of
// it.
func (m *maker) gone(k storage.Key) {
	if m.to != nil {
		if _, e := m.to.Get(m.format, k); e != nil && !e.Is(storage.IsDelete) {
			return
		}
	}
	m.removed = append(m.removed, k)
	m.deleted += int64(m.size(k))
}

// size returns the size of the frame of a delete, in bytes.
func (m *maker) size(k storage.Key) int {
	return m.format.Size(&stream.Resource{Revision: m.revision}, true, k.Key)
}

// deletes writes the frames of the deletes into segments of the exact size.
func (m *maker) deletes() (runs []Run, holds int64) {
	for left := m.removed; len(left) > 0; {
		n, size := 0, 0
		for n < len(left) && (n == 0 || size+m.size(left[n]) <= storage.SegmentSize) {
			size += m.size(left[n])
			n++
		}
		s := storage.NewSegment(0, size, n)
		for _, k := range left[:n] {
			m.write(s, k)
		}
		runs, holds, left = append(runs, Run{Segment: s, To: n, Bytes: size}), holds+s.Bytes(), left[n:]
	}
	return runs, holds
}

func (m *maker) write(s *storage.Segment, k storage.Key) {
	e, frame := s.Reserve(m.size(k))
	m.format.Append(frame, &stream.Resource{Revision: m.revision}, true, k.Key)
	e.Revision, e.Hash, e.KeyLen, e.Flags = m.revision, k.Hash, uint32(len(k.Text)), k.Flags|storage.IsDelete
}

// add adds an upsert for a resource of the new state.
func (m *maker) add() {
	size := int64(m.new.entry.Size)
	m.added += size
	m.live += size
	m.upserts = addTo(m.upserts, m.new.segment(), m.new.at.Entry)
}

// addTo extends the last run by an entry that follows it, unless the run fills a flush.
// Otherwise it begins a run.
func addTo(runs []Run, s *storage.Segment, i int) []Run {
	size := int(s.Entries[i].Size)
	if n := len(runs); n > 0 && runs[n-1].Segment == s && runs[n-1].To == i && runs[n-1].Bytes < storage.SegmentSize {
		runs[n-1].To++
		runs[n-1].Bytes += size
		return runs
	}
	return append(runs, Run{Segment: s, From: i, To: i + 1, Bytes: size})
}

// cursor walks through the resources of a state.
type cursor struct {
	State
	at    storage.Place
	entry *storage.Entry // nil: there are no more
}

func cursorAt(s State) cursor {
	c := cursor{State: s, at: s.Version.Normalize(storage.Place{})}
	c.find()
	return c
}

func (c *cursor) next() {
	c.at = c.Version.Next(c.at)
	c.find()
}

// find advances to the next entry that is part of the state.
func (c *cursor) find() {
	for ; c.at.Segment < len(c.Version.Segments); c.at = c.Version.Next(c.at) {
		e := c.Version.Entry(c.at)
		if e.Seq > c.Seq {
			break
		}
		if !e.Is(storage.IsDelete) && e.Visible(c.Seq) {
			c.entry = e
			return
		}
	}
	c.entry = nil
}

func (c *cursor) segment() *storage.Segment { return c.Version.Segments[c.at.Segment] }

func (c *cursor) frame() []byte { return c.segment().Frame(c.entry) }
