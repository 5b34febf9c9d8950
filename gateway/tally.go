package gateway

import "hash/maphash"

// tally counts streams by a key, and assigns a small number to each key that has a
// stream; the owner of a stream remembers the number instead of the key. A key
// without streams takes no room, and its number is reused.
//
// It looks keys up in an open-addressing table of numbers, since a map would hold
// each key a second time.
//
// Owned by the holder of the lock around it.
type tally[K comparable] struct {
	rows    []tallyRow[K]
	free    []int32
	keys    int
	numbers []int32 // each is a number plus one, near the hash of its key; 0: none
	seed    maphash.Seed
}

type tallyRow[K comparable] struct {
	key     K
	streams int32
}

// streams returns how many streams a key has.
func (t *tally[K]) streams(key K) int {
	if t.keys == 0 {
		return 0
	}
	slot := t.find(key)
	if t.numbers[slot] == 0 {
		return 0
	}
	return int(t.rows[t.numbers[slot]-1].streams)
}

// enter counts a stream in, and returns the number of its key.
func (t *tally[K]) enter(key K) int32 {
	if 4*(t.keys+1) > 3*len(t.numbers) {
		t.grow()
	}
	slot := t.find(key)
	if t.numbers[slot] == 0 {
		t.numbers[slot] = t.add(key) + 1
	}
	at := t.numbers[slot] - 1
	t.rows[at].streams++
	return at
}

func (t *tally[K]) add(key K) int32 {
	t.keys++
	at := int32(len(t.rows))
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.rows = append(t.rows, tallyRow[K]{})
	}
	t.rows[at].key = key
	return at
}

// key returns the key of a number.
func (t *tally[K]) key(at int32) K { return t.rows[at].key }

// leave counts a stream out, and returns its key.
func (t *tally[K]) leave(at int32) K {
	row := &t.rows[at]
	key := row.key
	if row.streams--; row.streams > 0 {
		return key
	}
	t.forget(t.find(key))
	*row = tallyRow[K]{}
	t.free = append(t.free, at)
	if t.keys--; t.keys == 0 {
		*t = tally[K]{} // slices do not shrink
	}
	return key
}

// home returns the place where a key belongs.
func (t *tally[K]) home(key K) int {
	return int(maphash.Comparable(t.seed, key) & uint64(len(t.numbers)-1))
}

// find returns the place of a key, or the empty place where it belongs.
func (t *tally[K]) find(key K) int {
	slot := t.home(key)
	for t.numbers[slot] != 0 && t.rows[t.numbers[slot]-1].key != key {
		slot = (slot + 1) & (len(t.numbers) - 1)
	}
	return slot
}

// forget empties a place, and moves up the entries after it that depend on it.
func (t *tally[K]) forget(empty int) {
	mask := len(t.numbers) - 1
	for at := (empty + 1) & mask; t.numbers[at] != 0; at = (at + 1) & mask {
		home := t.home(t.rows[t.numbers[at]-1].key)
		if (at-home)&mask >= (at-empty)&mask {
			t.numbers[empty] = t.numbers[at]
			empty = at
		}
	}
	t.numbers[empty] = 0
}

// grow makes room for twice as many keys.
func (t *tally[K]) grow() {
	if t.numbers == nil {
		t.seed = maphash.MakeSeed()
	}
	before := t.numbers
	t.numbers = make([]int32, max(8, 2*len(before)))
	for _, number := range before {
		if number != 0 {
			t.numbers[t.find(t.rows[number-1].key)] = number
		}
	}
}
