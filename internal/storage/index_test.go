package storage

import "testing"

// find returns the seq of the newest entry with a hash; 0 if there is none.
func find(t *Index, hash uint32) (found uint64) {
	t.Probe(hash, func(seq uint64) bool { found = seq; return true })
	return found
}

// TestTable: what was set last is found, until it is dropped.
func TestTable(t *testing.T) {
	x := NewIndex(100)
	set := func(hash uint32, seq uint64) { x.Set(x.Probe(hash, func(uint64) bool { return true }), hash, seq) }
	for seq := range uint64(100) {
		set(uint32(seq)<<20, seq+1)
	}
	set(7<<20, 200)
	for hash, want := range map[uint32]uint64{0: 1, 7 << 20: 200, 99 << 20: 100, 100 << 20: 0} {
		if got := find(x, hash); got != want {
			t.Errorf("hash %x: got entry %d, want %d", hash, got, want)
		}
	}
	x.Drop(x.Probe(7<<20, func(seq uint64) bool { return seq == 200 }), 7<<20, 300)
	if got := find(x, 7<<20); got != 0 {
		t.Errorf("entry %d is found, of a key that was dropped", got)
	}
	if !x.DroppedAfter(7<<20, 299) || x.DroppedAfter(7<<20, 300) || x.DroppedAfter(8<<20, 0) {
		t.Error("it is not known from where on the key has no entry")
	}
}

// TestFullTable: a table says in time that it needs a larger one, in which a probe ends.
func TestFullTable(t *testing.T) {
	x := NewIndex(0)
	for hash := uint32(1); !x.Full(); hash++ {
		x.Set(x.Probe(hash, func(uint64) bool { return false }), hash, uint64(hash))
		if int(hash) > x.Size() {
			t.Fatalf("%d keys are in %d slots", hash, x.Size())
		}
	}
	if grown := NewIndex(x.Size()); grown.Size() <= x.Size() || grown.Bytes() != 8*int64(grown.Size()) {
		t.Errorf("a table for %d keys has %d slots in %d bytes", x.Size(), grown.Size(), grown.Bytes())
	}
}
