package storage

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
