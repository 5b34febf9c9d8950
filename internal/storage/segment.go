package storage

import (
	"math"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/watchtide/watchtide/internal/digest"
)

// smallest keeps watches with few resources small: slabs grow with the log up
// to a full one.
const smallest = 4 << 10

// The flags of an entry.
const (
	// IsDelete marks a tombstone.
	IsDelete = 1 << iota
	// EndsCommit marks the last entry of a transaction.
	EndsCommit
	// UnnumberedDelete marks a tombstone that has no revision of its own, but that of
	// its commit.
	UnnumberedDelete
	// ValueBase64 marks a value that is base64 in a JSON string.
	ValueBase64
	keyEscaped // the key in the frame has JSON escapes
	keyBase64  // the key in the frame is base64, since it is not UTF-8
	// Conflated marks an entry before which values of its key may have been left out.
	Conflated
	// Unseen marks an entry for a resource that the log did not have before it.
	Unseen
)

// Entry is one change in a segment: where its frame is, and what is needed to find
// and judge it without reading the frame. It has 56 bytes and no pointer, so the
// garbage collector has nothing to scan.
type Entry struct {
	// Written before the entry is published, static from then on.
	Seq      uint64
	Revision uint64 // its place in the log's order
	Off      uint32 // of the frame in the slab
	Size     uint32 // of the frame
	KeyLen   uint32 // as in the frame
	Back     uint32 // how many seqs before it the key's previous entry is, at most FarBack; 0: there was none
	Hash     uint32
	Flags    uint8
	Content  digest.Hash // of what an upsert delivers, whatever its revision is

	// Superseded is the seq of the change from which on this entry no longer counts,
	// 0 while it counts. Written by the log's writer.
	Superseded atomic.Uint64
}

// FarBack is the largest Back. The previous entry of a key may be further back.
const FarBack = math.MaxUint32

// Is reports whether a flag is set.
func (e *Entry) Is(flag uint8) bool { return e.Flags&flag != 0 }

// Previous is the seq of the previous entry of the key, or of an earlier one; 0: there was
// none, or it is very far back.
func (e *Entry) Previous() uint64 {
	if e.Back == 0 || e.Back == FarBack {
		return 0
	}
	return e.Seq - uint64(e.Back)
}

// Visible reports whether the entry counts as seen at seq.
func (e *Entry) Visible(seq uint64) bool {
	s := e.Superseded.Load()
	return s == 0 || s > seq
}

// ClearEndInOutage is called for the last entry of a commit, nil if it has none, which may
// bring changes from an outage that ended at origin. If the entry lies in the outage, no id
// may follow it directly: only the whole commit, at its own revision, is a state that the
// upstream had. The same holds at each gateway that follows.
func (e *Entry) ClearEndInOutage(revision, origin uint64) {
	if e != nil && e.Revision < min(revision, origin) {
		e.Flags &^= EndsCommit
	}
}

// EntrySize is how many bytes an entry takes.
const EntrySize = int64(unsafe.Sizeof(Entry{}))

// Segment is a slab of frames and the table of its entries. The writer appends to
// the last segment of a log; readers see only as many entries as their version says.
// A full segment no longer changes, except for the field Superseded of its entries.
type Segment struct {
	// Static after construction; the bytes and entries beyond what was
	// published belong to the writer.
	Name    uint64 // no other segment of this process has, or had, it
	Born    uint64 // number of the first version that holds it
	Slab    []byte
	Entries []Entry
	Lent    bool // the slab is that of another log's segment: there is something between the frames

	// Owned by the writer; static, and so readable, once the segment is full.
	N    int // entries in use
	Used int // bytes in use

	// Owned by the writer.
	Dead int    // bytes of superseded entries
	ripe uint64 // the smallest seq up to which a quarter was superseded; 0: not known
}

// segmentNames is the last name given out.
var segmentNames atomic.Uint64

// NewSegment returns an empty segment of a log whose next version has the number born.
func NewSegment(born uint64, bytes, entries int) *Segment {
	s := &Segment{Name: segmentNames.Add(1), Born: born}
	s.Entries, s.Slab = allocate(bytes, entries)
	return s
}

// allocate returns a table and a slab. Small ones share an allocation: there may be very many
// small logs, and each allocation is rounded up, by as much as a sixth. A slab that may be lent
// is allocated separately.
func allocate(bytes, entries int) ([]Entry, []byte) {
	if bytes == 0 || bytes >= SegmentSize {
		return make([]Entry, entries), make([]byte, bytes)
	}
	all := make([]Entry, entries+(bytes+int(EntrySize)-1)/int(EntrySize))
	return all[:entries:entries], unsafe.Slice((*byte)(unsafe.Pointer(&all[entries])), bytes)
}

// NewLent returns a full segment with some of the frames of another one, which is full
// too. Their entries are to be copied with Lend.
func NewLent(born uint64, of *Segment, entries int) *Segment {
	return &Segment{Name: segmentNames.Add(1), Born: born, Slab: of.Slab, Entries: make([]Entry, entries), Lent: true}
}

// Lend appends an entry of the segment whose slab this one shares.
func (s *Segment) Lend(e *Entry) *Entry {
	to := &s.Entries[s.N]
	to.Seq, to.Revision, to.Off, to.Size, to.KeyLen, to.Hash, to.Flags = e.Seq, e.Revision, e.Off, e.Size, e.KeyLen, e.Hash, e.Flags
	to.Content = e.Content
	s.N++
	s.Used += int(e.Size)
	return to
}

// Adjacent reports whether the frames of the i-th entry and of the next one are.
func (s *Segment) Adjacent(i int) bool {
	e := &s.Entries[i]
	return !s.Lent || e.Off+e.Size == s.Entries[i+1].Off
}

// SizeFor returns the size of the next segment of a log that has used so many
// bytes; size is that of its first frame. Slabs grow with the log. There are as many
// entries as frames of this size would fill, and some more.
func SizeFor(size int, used int64) (bytes, entries int) {
	bytes = max(size, min(smallest, SegmentSize), min(int(used), SegmentSize))
	return bytes, bytes/size*5/4 + 4
}

// Bytes is the memory that the segment holds.
func (s *Segment) Bytes() int64 {
	return int64(len(s.Slab)) + int64(len(s.Entries))*EntrySize
}

// Fits reports whether there is room for an entry with a frame of so many bytes.
func (s *Segment) Fits(frame int) bool {
	return !s.Lent && s.N < len(s.Entries) && s.Used+frame <= len(s.Slab)
}

// Reserve reserves the next entry and size bytes for its frame.
func (s *Segment) Reserve(size int) (*Entry, []byte) {
	e := &s.Entries[s.N]
	e.Off, e.Size = uint32(s.Used), uint32(size)
	frame := s.Slab[s.Used : s.Used : s.Used+size]
	s.N++
	s.Used += size
	return e, frame
}

// AppendCopy appends a copy of an entry of another segment. If that is superseded, so is the
// copy.
func (s *Segment) AppendCopy(from *Segment, e *Entry) {
	to, frame := s.Reserve(int(e.Size))
	to.Seq, to.Revision = e.Seq, e.Revision
	to.KeyLen, to.Back = e.KeyLen, e.Back
	to.Hash, to.Flags, to.Content = e.Hash, e.Flags, e.Content
	_ = append(frame, from.Frame(e)...)
	if superseded := e.Superseded.Load(); superseded != 0 {
		to.Superseded.Store(superseded)
		s.Dead += int(e.Size)
	}
}

// DeadAt is how many bytes of a full segment were superseded up to seq.
func (s *Segment) DeadAt(seq uint64) int {
	n := 0
	for i := range s.Entries[:s.N] {
		if e := &s.Entries[i]; !e.Visible(seq) {
			n += int(e.Size)
		}
	}
	return n
}

// QuarterDead reports whether a quarter of a full segment was superseded up to seq, which is
// not after head, the newest one. If much was superseded after seq, it has to search for when
// a quarter was. It does so once.
func (s *Segment) QuarterDead(seq, head uint64) (is, searched bool) {
	quarter := func(bytes int) bool { return bytes*4 >= s.Used }
	switch {
	case !quarter(s.Dead):
		return false, false
	case s.ripe != 0:
		return s.ripe <= seq, false
	case quarter(s.DeadAt(seq)):
		return true, false
	}
	s.ripe = seq + uint64(sort.Search(int(head-seq), func(n int) bool { return quarter(s.DeadAt(seq + uint64(n))) }))
	return false, true
}

// Run returns the frames of the entries from up to, but not including, to: they are
// adjacent.
func (s *Segment) Run(from, to int) []byte {
	first, last := &s.Entries[from], &s.Entries[to-1]
	return s.Slab[first.Off : last.Off+last.Size]
}

// Frame is the frame of an entry.
func (s *Segment) Frame(e *Entry) []byte { return s.Slab[e.Off : e.Off+e.Size] }

// The sizes at which a log, and what is sent to a subscriber, is divided. They are variables so
// that tests can make them small: with few and short events, a reader then takes several flushes
// for a transaction, and for the deletes of a catch-up, and the log has several segments. Nothing
// else may change them, and no log may exist when they are changed.
var (
	// FlushSize is the number of bytes from which a flush ends at the next place where it may: an
	// id is sent at least as often.
	FlushSize = 64 << 10
	// ReplaySize is the number of bytes of the tail of a log that stays as written, so that readers
	// near the head get every change in the upstream's order. A larger transaction takes several
	// flushes.
	ReplaySize = 1 << 20
	// TurnEntries is the most entries that a walk examines in one turn, give or take a segment.
	TurnEntries = 4 << 10
	// SegmentSize is the number of bytes in the slab of a full segment. A snapshot is read, and an
	// id is sent, at least once for each.
	SegmentSize = 64 << 10
)

// Packing simulates how frames will fill segments. The zero value begins with none.
type Packing struct {
	Used    int64 // bytes of frames so far
	Room    int   // in the last slab
	Entries int   // free in the last segment
	Bytes   int64 // added
}

// PackingAfter begins with the segments of a log, which have so many bytes of frames.
func PackingAfter(segments []*Segment, used int64) Packing {
	p := Packing{Used: used}
	if n := len(segments); n > 0 {
		last := segments[n-1]
		p.Room, p.Entries = len(last.Slab)-last.Used, len(last.Entries)-last.N
	}
	return p
}

// inIndex is the most bytes that a key takes in the index.
const inIndex = 24

// Add adds a frame of so many bytes.
func (p *Packing) Add(frame int) {
	if p.Room < frame || p.Entries == 0 {
		p.Room, p.Entries = SizeFor(frame, p.Used)
		p.Bytes += int64(p.Room) + int64(p.Entries)*EntrySize
	}
	p.Room -= frame
	p.Entries--
	p.Used += int64(frame)
	p.Bytes += inIndex
}

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
