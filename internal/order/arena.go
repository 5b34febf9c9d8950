package order

import "encoding/binary"

// arena holds records in large chunks, so that the garbage collector has nothing to look at. The
// room of one that is freed is taken by the next one of the same size.
type arena struct {
	chunks [][]byte
	tail   int      // bytes of the last chunk in use
	free   []uint32 // by size in units: the first that is free; it has the next one in its first bytes; 0: none
	large  map[uint32][]byte
	unused []uint32 // handles of large records that were freed
}

const (
	unit      = 8 // bytes: sizes and places are multiples of it
	chunkSize = 64 << 10
	inChunk   = chunkSize / unit

	// header is the length of the sort key, and that of the key.
	header = 2 + 4
)

// largest is the size of the largest record that lies in a chunk, in units.
const largest = inChunk / 8

// isLarge marks the handle of a record that has memory of its own.
const isLarge = 1 << 31

func unitsOf(bytes int) int { return (bytes + unit - 1) / unit }

// add adds a record, and returns its handle, which is not 0.
func (a *arena) add(sortKey []byte, key string) uint32 {
	n := unitsOf(header + len(sortKey) + len(key))
	h, room := a.take(n)
	binary.LittleEndian.PutUint16(room, uint16(len(sortKey)))
	binary.LittleEndian.PutUint32(room[2:], uint32(len(key)))
	copy(room[header:], sortKey)
	copy(room[header+len(sortKey):], key)
	return h
}

func (a *arena) take(n int) (h uint32, room []byte) {
	if n > largest {
		if a.large == nil {
			a.large = map[uint32][]byte{}
		}
		h = isLarge + uint32(len(a.large))
		if n := len(a.unused); n > 0 {
			h, a.unused = a.unused[n-1], a.unused[:n-1]
		}
		a.large[h] = make([]byte, n*unit)
		return h, a.large[h]
	}
	if n < len(a.free) && a.free[n] != 0 {
		h = a.free[n]
		room = a.at(h)
		a.free[n] = binary.LittleEndian.Uint32(room)
		return h, room
	}
	if len(a.chunks) == 0 || a.tail+n*unit > chunkSize {
		a.chunks = append(a.chunks, make([]byte, chunkSize))
		a.tail = 0
		if len(a.chunks) == 1 {
			a.tail = unit // no handle is 0
		}
	}
	h = uint32((len(a.chunks)-1)*inChunk + a.tail/unit)
	a.tail += n * unit
	return h, a.at(h)
}

// at returns the memory from a handle on.
func (a *arena) at(h uint32) []byte {
	if h&isLarge != 0 {
		return a.large[h]
	}
	return a.chunks[h/inChunk][h%inChunk*unit:]
}

// item returns the sort key and the key of a record, one after the other.
func (a *arena) item(h uint32) []byte {
	b := a.at(h)
	n := int(binary.LittleEndian.Uint16(b)) + int(binary.LittleEndian.Uint32(b[2:]))
	return b[header : header+n : header+n]
}

// parts returns the sort key and the key of a record.
func (a *arena) parts(h uint32) (sortKey, key []byte) {
	item := a.item(h)
	n := binary.LittleEndian.Uint16(a.at(h))
	return item[:n:n], item[n:]
}

// remove frees a record.
func (a *arena) remove(h uint32) {
	if h&isLarge != 0 {
		delete(a.large, h)
		if a.unused = append(a.unused, h); len(a.large) == 0 {
			a.unused = nil
		}
		return
	}
	n := unitsOf(header + len(a.item(h)))
	for n >= len(a.free) {
		a.free = append(a.free, 0)
	}
	binary.LittleEndian.PutUint32(a.at(h), a.free[n])
	a.free[n] = h
}

// bytes is how much memory the records take.
func (a *arena) bytes() (n int64) {
	for _, room := range a.large {
		n += int64(len(room))
	}
	return n + int64(len(a.chunks))*chunkSize + int64(cap(a.free))*4
}
