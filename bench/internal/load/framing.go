package load

// framing finds the body in a response as received: without the head and, if it is
// chunked, without the chunk sizes. Those may cut an event anywhere. The zero
// value is at the start.
type framing struct {
	part    part
	blank   uint8  // of headEnd
	coding  uint8  // of chunkedCoding
	chunked bool   // according to the head
	left    uint64 // of the chunk, or its size as far as it was read
}

// part is the part that comes next.
type part uint8

const (
	inHead    part = iota
	inBody         // to the end of the connection
	inSize         // of a chunk
	inChunk        //
	afterOne       // the end of line after a chunk
	inTrailer      // and nothing more
)

var (
	headEnd       = newMarker([]byte("\r\n\r\n"))
	chunkedCoding = newMarker([]byte("\r\nTransfer-Encoding: chunked\r\n"))
)

// next returns the first piece of the body in b, which may be empty, and the
// bytes after it. The last line feed of the head counts as body: so every line
// has one before it.
func (f *framing) next(b []byte) (body, rest []byte) {
	switch f.part {
	case inHead:
		return f.head(b)
	case inBody:
		return b, nil
	case inSize:
		return nil, f.size(b)
	case inChunk:
		n := min(uint64(len(b)), f.left)
		if f.left -= n; f.left == 0 {
			f.part = afterOne
		}
		return b[:n], b[n:]
	case afterOne:
		for i, c := range b {
			if c == '\n' {
				f.part = inSize
				return nil, b[i+1:]
			}
		}
	}
	return nil, nil
}

func (f *framing) head(b []byte) (body, rest []byte) {
	end, after := headEnd.next(b, f.blank)
	head := b
	if f.blank = after; end >= 0 {
		head = b[:end]
	}
	n, coding := chunkedCoding.count(head, f.coding)
	f.coding, f.chunked = coding, f.chunked || n > 0
	if end < 0 {
		return nil, nil
	}
	if f.part = inBody; f.chunked {
		f.part = inSize
	}
	return b[end-1 : end], b[end:]
}

// size reads a chunk's size, in hexadecimal digits, to the end of its line.
func (f *framing) size(b []byte) (rest []byte) {
	for i, c := range b {
		switch {
		case c == '\n':
			if f.part = inChunk; f.left == 0 {
				f.part = inTrailer
			}
			return b[i+1:]
		case '0' <= c && c <= '9':
			f.left = f.left<<4 | uint64(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			f.left = f.left<<4 | uint64(c|0x20-'a'+10)
		}
	}
	return nil
}
