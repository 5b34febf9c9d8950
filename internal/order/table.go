package order

import "hash/maphash"

// table finds the record of a key. It is a hash table with linear probing.
type table struct {
	slots []uint32 // handles; 0: empty. Their number is a power of two
	n     int
	seed  maphash.Seed
}

// start is where the slots of a key begin.
func (t *table) start(key []byte) int { return int(maphash.Bytes(t.seed, key)) & (len(t.slots) - 1) }

// find returns the slot of a key, and its handle; 0: it is not there, and belongs into the slot.
func (t *table) find(key []byte, keyOf func(uint32) []byte) (slot int, h uint32) {
	if len(t.slots) == 0 {
		return 0, 0
	}
	for slot = t.start(key); t.slots[slot] != 0; slot = (slot + 1) & (len(t.slots) - 1) {
		if string(keyOf(t.slots[slot])) == string(key) {
			return slot, t.slots[slot]
		}
	}
	return slot, 0
}

// add adds the handle of a key that is not there.
func (t *table) add(key []byte, h uint32, keyOf func(uint32) []byte) {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow(keyOf)
	}
	slot, _ := t.find(key, keyOf)
	t.slots[slot] = h
	t.n++
}

func (t *table) grow(keyOf func(uint32) []byte) {
	old := t.slots
	if t.slots = make([]uint32, max(16, 2*len(old))); len(old) == 0 {
		t.seed = maphash.MakeSeed()
	}
	for _, h := range old {
		if h == 0 {
			continue
		}
		slot := t.start(keyOf(h))
		for t.slots[slot] != 0 {
			slot = (slot + 1) & (len(t.slots) - 1)
		}
		t.slots[slot] = h
	}
}

// remove empties a slot, and moves those that follow closer to where their slots begin.
func (t *table) remove(slot int, keyOf func(uint32) []byte) {
	mask := len(t.slots) - 1
	for at := slot; ; {
		at = (at + 1) & mask
		if t.slots[at] == 0 {
			break
		}
		if start := t.start(keyOf(t.slots[at])); (at-start)&mask >= (at-slot)&mask {
			t.slots[slot] = t.slots[at]
			slot = at
		}
	}
	t.slots[slot] = 0
	t.n--
}
