package storage

import "sync/atomic"

// Index finds the newest entry of a key: an open-addressing table of tagged seqs,
// without pointers and without the keys, which are in the frames. It takes 11 to 21
// bytes for each key. Compaction moves entries but keeps their seq, so it does not
// touch the index.
//
// Only the log's writer writes to it. A reader may probe it meanwhile: a slot is one
// atomic word, a key's slot is never emptied while the key has an entry, and a grown
// table is a new table. A reader must check what it finds against the version that
// it holds; see Version.Get.
type Index struct {
	slots []atomic.Uint64 // a power of two of them; static after construction

	// Owned by the writer.
	filled int // slots in use, dropped ones included
}

// A slot holds a tag, whether its key was dropped, and a seq: that of the key's
// newest entry, or the one at which the key was dropped.
const (
	tagBits    = 12
	seqBits    = 64 - tagBits - 1
	seqMask    = 1<<seqBits - 1
	droppedBit = 1 << seqBits
)

// NewIndex returns an empty table with room for so many keys.
func NewIndex(keys int) *Index {
	size := 16
	for size*3 < keys*4 {
		size *= 2
	}
	return &Index{slots: make([]atomic.Uint64, size)}
}

// slotOf returns a slot that is not dropped.
func slotOf(hash uint32, seq uint64) uint64 {
	return uint64(hash>>(32-tagBits))<<(64-tagBits) | seq
}

// Full reports whether one more key needs a larger table.
func (t *Index) Full() bool { return (t.filled+1)*4 > len(t.slots)*3 }

// Probe calls try with the slot number and seq of each entry that may have the hash,
// until try returns true or there are no more. It returns the number of the slot
// where it stopped: an empty one if try was never true.
func (t *Index) Probe(hash uint32, try func(seq uint64) bool) int {
	mask := uint32(len(t.slots) - 1)
	tag := slotOf(hash, 0)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := t.slots[i].Load()
		if slot == 0 {
			return int(i)
		}
		if slot&^seqMask == tag && try(slot&seqMask) {
			return int(i)
		}
	}
}

// Set stores the seq of the newest entry of the key whose slot Probe found.
func (t *Index) Set(slot int, hash uint32, seq uint64) {
	if t.slots[slot].Load() == 0 {
		t.filled++
	}
	t.slots[slot].Store(slotOf(hash, seq))
}

// Drop records that the key whose slot Probe found has no entry from seq on. The
// slot is not reused.
func (t *Index) Drop(slot int, hash uint32, seq uint64) {
	t.slots[slot].Store(slotOf(hash, seq) | droppedBit)
}

// DroppedAfter reports whether a key that may have the hash was dropped after seq,
// so that as of seq it may have had an entry.
func (t *Index) DroppedAfter(hash uint32, seq uint64) bool {
	mask := uint32(len(t.slots) - 1)
	tag := slotOf(hash, droppedBit)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := t.slots[i].Load()
		if slot == 0 {
			return false
		}
		if slot&^seqMask == tag && slot&seqMask > seq {
			return true
		}
	}
}

// Bytes is the memory that the table takes.
func (t *Index) Bytes() int64 { return int64(len(t.slots)) * 8 }

// Size is the number of slots.
func (t *Index) Size() int { return len(t.slots) }

// Guess returns the seq in the first slot in which the hash may be, for a key that is
// only to be prefetched.
func (t *Index) Guess(hash uint32) uint64 {
	return t.slots[hash&uint32(len(t.slots)-1)].Load() & seqMask
}

// Get finds the entry of a key as of the version; it may be a tombstone.
//
// The index belongs to the writer, which may be ahead of the version. So its result
// is checked, and if it refers to a later entry the log itself is read.
func (v *Version) Get(f *Format, k Key) (s *Segment, e *Entry) {
	if s, e, known := v.GetQuickly(f, k); known {
		return s, e
	}
	return v.scan(f, k)
}

// GetQuickly is Get in a time that does not depend on the number of entries. It is not known whether there is one
// if the log has gone on since and that may have made it hard to find.
func (v *Version) GetQuickly(f *Format, k Key) (s *Segment, e *Entry, known bool) {
	ahead := false
	v.Index.Probe(k.Hash, func(seq uint64) bool {
		if seq > v.Seq {
			ahead = true
			return false
		}
		s, e = v.Find(seq)
		if e != nil && f.KeyEquals(s, e, k) && e.Visible(v.Seq) {
			return true
		}
		ahead = ahead || e == nil || f.KeyEquals(s, e, k)
		s, e = nil, nil
		return false
	})
	return s, e, e != nil || !ahead && !v.Index.DroppedAfter(k.Hash, v.Seq)
}

// scan finds the entry of a key by looking at all of them, newest first.
func (v *Version) scan(f *Format, k Key) (*Segment, *Entry) {
	for i := len(v.Segments) - 1; i >= 0; i-- {
		entries := v.Entries(i)
		for j := len(entries) - 1; j >= 0; j-- {
			e := &entries[j]
			if e.Hash == k.Hash && f.KeyEquals(v.Segments[i], e, k) && e.Visible(v.Seq) {
				return v.Segments[i], e
			}
		}
	}
	return nil, nil
}

// prefetched is how many keys are looked up at the same time.
const prefetched = 16

// Prefetch reads the memory that looking up n keys needs. The sum of the bytes that it returns
// has no meaning.
func (v *Version) Prefetch(x *Index, n int, key func(i int) string) (sum byte) {
	var hashes [prefetched]uint32
	for i := 0; i < n; i += len(hashes) {
		some := hashes[:min(len(hashes), n-i)]
		for j := range some {
			some[j] = NewKey(key(i + j)).Hash
		}
		sum += v.prefetch(x, some)
	}
	return sum
}

func (v *Version) prefetch(x *Index, hashes []uint32) (sum byte) {
	var seqs [prefetched]uint64
	var segments [prefetched]*Segment
	var entries [prefetched]*Entry
	for i, hash := range hashes {
		seqs[i] = x.Guess(hash)
	}
	for i := range hashes {
		segments[i], entries[i] = v.FindNear(seqs[i])
	}
	for i := range hashes {
		if e := entries[i]; e != nil {
			sum += segments[i].Slab[e.Off+e.Size/2]
		}
	}
	return sum
}
