package limits

// InternTable counts streams by a key, and assigns a small number to each key that
// has a stream; the owner of a stream remembers the number instead of the key. A key
// without streams takes no room, and its number is reused.
//
// Owned by the holder of the lock around it.
type InternTable[K comparable] struct {
	numbers map[K]int32
	rows    []internRow[K] // by number
	free    []int32        // numbers of rows without a key
}

type internRow[K comparable] struct {
	key     K
	streams int32
}

// Keys returns how many keys have a stream.
func (t *InternTable[K]) Keys() int { return len(t.numbers) }

// streams returns how many streams a key has.
func (t *InternTable[K]) streams(key K) int {
	at, known := t.numbers[key]
	if !known {
		return 0
	}
	return int(t.rows[at].streams)
}

// Enter counts a stream in, and returns the number of its key.
func (t *InternTable[K]) Enter(key K) int32 {
	at, known := t.numbers[key]
	if !known {
		at = t.add(key)
	}
	t.rows[at].streams++
	return at
}

func (t *InternTable[K]) add(key K) int32 {
	if t.numbers == nil {
		t.numbers = map[K]int32{}
	}
	at := int32(len(t.rows))
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.rows = append(t.rows, internRow[K]{})
	}
	t.numbers[key], t.rows[at].key = at, key
	return at
}

// Key returns the key of a number.
func (t *InternTable[K]) Key(at int32) K { return t.rows[at].key }

// Find returns the key of a number that may not have a stream any more; the zero value if it has
// no key.
func (t *InternTable[K]) Find(at int32) (key K) {
	if int(at) < len(t.rows) {
		key = t.rows[at].key
	}
	return key
}

// Leave counts a stream out, and returns its key.
func (t *InternTable[K]) Leave(at int32) K {
	row := &t.rows[at]
	key := row.key
	if row.streams--; row.streams > 0 {
		return key
	}
	delete(t.numbers, key)
	*row = internRow[K]{}
	t.free = append(t.free, at)
	if len(t.numbers) == 0 {
		*t = InternTable[K]{} // neither maps nor slices shrink
	}
	return key
}
