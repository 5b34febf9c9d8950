package gateway

// tally counts streams by a key, and gives each key that has one a small number:
// who holds a stream remembers that instead of the key. A key without streams
// takes no room, and its number is given again.
//
// Owned by whoever holds the lock of admission.
type tally[K comparable] struct {
	numbers map[K]int32
	rows    []tallyRow[K]
	free    []int32
}

type tallyRow[K comparable] struct {
	key     K
	streams int32
}

// streams is how many a key has.
func (t *tally[K]) streams(key K) int {
	at, known := t.numbers[key]
	if !known {
		return 0
	}
	return int(t.rows[at].streams)
}

// enter counts a stream in, and returns the number of its key.
func (t *tally[K]) enter(key K) int32 {
	at, known := t.numbers[key]
	if !known {
		at = t.add(key)
	}
	t.rows[at].streams++
	return at
}

func (t *tally[K]) add(key K) int32 {
	at := int32(len(t.rows))
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.rows = append(t.rows, tallyRow[K]{})
	}
	if t.numbers == nil {
		t.numbers = map[K]int32{}
	}
	t.rows[at].key, t.numbers[key] = key, at
	return at
}

// leave counts a stream out, and returns its key.
func (t *tally[K]) leave(at int32) K {
	row := &t.rows[at]
	key := row.key
	if row.streams--; row.streams > 0 {
		return key
	}
	*row = tallyRow[K]{}
	delete(t.numbers, key)
	t.free = append(t.free, at)
	if len(t.numbers) == 0 {
		*t = tally[K]{} // maps and slices keep what they once had
	}
	return key
}
