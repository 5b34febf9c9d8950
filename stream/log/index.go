package log

import (
	"hash/maphash"
	"sync/atomic"
)

// index finds the newest entry of a key: an open-addressing table of tagged seqs,
// without pointers and without the keys, which are in the frames. It takes 11 to 21
// bytes for each key. Compaction moves entries but keeps their seq, so it does not
// touch the index.
//
// Only the log's writer writes to it. A reader may probe it meanwhile: a slot is one
// atomic word, a key's slot is never emptied while the key has an entry, and a grown
// table is a new table. A reader must check what it finds against the version that
// it holds (see version.get).
type index struct {
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

// hashSeed is shared by the whole process: hashes never leave it.
var hashSeed = maphash.MakeSeed()

func hashKey(wire string) uint32 {
	h := maphash.String(hashSeed, wire)
	return uint32(h>>32) ^ uint32(h)
}

func newIndex(keys int) *index {
	size := 16
	for size*3 < keys*4 {
		size *= 2
	}
	return &index{slots: make([]atomic.Uint64, size)}
}

func slotOf(hash uint32, seq uint64) uint64 {
	return uint64(hash>>(32-tagBits))<<(64-tagBits) | seq
}

// full reports whether one more key needs a larger table.
func (x *index) full() bool { return (x.filled+1)*4 > len(x.slots)*3 }

// probe calls try with the slot number and seq of each entry that may have the hash,
// until try returns true or there are no more. It returns the number of the slot
// where it stopped: an empty one if try was never true.
func (x *index) probe(hash uint32, try func(seq uint64) bool) int {
	mask := uint32(len(x.slots) - 1)
	tag := slotOf(hash, 0)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := x.slots[i].Load()
		if slot == 0 {
			return int(i)
		}
		if slot&^seqMask == tag && try(slot&seqMask) {
			return int(i)
		}
	}
}

// set stores the seq of the newest entry of the key whose slot probe found.
func (x *index) set(slot int, hash uint32, seq uint64) {
	if x.slots[slot].Load() == 0 {
		x.filled++
	}
	x.slots[slot].Store(slotOf(hash, seq))
}

// drop records that the key whose slot probe found has no entry from seq on. The
// slot is not reused.
func (x *index) drop(slot int, hash uint32, seq uint64) {
	x.slots[slot].Store(slotOf(hash, seq) | droppedBit)
}

// droppedAfter reports whether a key that may have the hash was dropped after seq,
// so that as of seq it may have had an entry.
func (x *index) droppedAfter(hash uint32, seq uint64) bool {
	mask := uint32(len(x.slots) - 1)
	tag := slotOf(hash, droppedBit)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := x.slots[i].Load()
		if slot == 0 {
			return false
		}
		if slot&^seqMask == tag && slot&seqMask > seq {
			return true
		}
	}
}

func (x *index) bytes() int64 { return int64(len(x.slots)) * 8 }
