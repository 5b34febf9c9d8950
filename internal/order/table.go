package order

import "hash/maphash"

// table finds the record of a key. It is a hash table with linear probing.
type table struct {
	slots []uint32 // handles; 0: empty. Their number is a power of two
	n     int
	seed  maphash.Seed
}

// newTable returns an empty table with room for n keys.
func newTable(n int) table {
	slots := 16
	for 4*n > 3*slots {
		slots *= 2
	}
	return table{slots: make([]uint32, slots), seed: maphash.MakeSeed()}
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
	t.put(key, h)
	t.n++
}

// put puts the handle of a key that is not there into the first empty slot.
func (t *table) put(key []byte, h uint32) {
	slot := t.start(key)
	for t.slots[slot] != 0 {
		slot = (slot + 1) & (len(t.slots) - 1)
	}
	t.slots[slot] = h
}

func (t *table) grow(keyOf func(uint32) []byte) {
	old := t.slots
	if len(old) == 0 {
		*t = newTable(0)
		return
	}
	t.slots = make([]uint32, 2*len(old))
	for _, h := range old {
		if h != 0 {
			t.put(keyOf(h), h)
		}
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
