package client

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// readBytes is the minimum number of bytes read at a time.
	readBytes = 64 << 10
	// keepBytes is the largest buffer that is kept after a large event.
	keepBytes = 1 << 20
)

// body filters the body of a response for the r3labs reader, which gets whole
// events, one for each Read: an event that the end of the body cuts off is
// dropped. Lines may end with \n, \r\n or \r, and are handed over with \n.
//
// Owned by the goroutine that reads; Close may be called by another.
type body struct {
	// Static after construction.
	io.ReadCloser
	silence *silence
	limit   int            // bytes of one event
	held    func(more int) // is told how large the buffer is; nil: nobody is

	buffer []byte
	from   int   // of buffer, first byte that was not handed over
	to     int   // end of the bytes read
	event  int   // end of the current event, if it is complete; else from
	line   int   // start of the current line
	seen   int   // up to here there is no end of a line
	cr     bool  // the last byte read was \r
	err    error // how the body ended; nil: it has not
}

func newBody(of io.ReadCloser, s *silence, limit int, held func(int)) *body {
	return &body{ReadCloser: of, silence: s, limit: limit, held: held}
}

// Read hands over one event, or a part of it if p is smaller.
func (b *body) Read(p []byte) (int, error) {
	for b.event == b.from {
		found := b.findEvent()
		if size := b.seen - b.from; size > b.limit {
			b.err = fmt.Errorf("%w: an event has more than %d bytes", ErrInvalid, b.limit)
			return 0, b.err
		}
		if found {
			break
		}
		if b.err != nil {
			return 0, b.err
		}
		b.err = b.fill()
	}
	n := copy(p, b.buffer[b.from:b.event])
	b.from += n
	return n, nil
}

// findEvent looks for the empty line that ends an event.
func (b *body) findEvent() bool {
	for {
		i := bytes.IndexByte(b.buffer[b.seen:b.to], '\n')
		if i < 0 {
			b.seen = b.to
			return false
		}
		end := b.seen + i
		empty := end == b.line
		b.line, b.seen = end+1, end+1
		if empty {
			b.event = end + 1
			return true
		}
	}
}

// fill reads more of the body. Only the time that is spent in it counts as
// silence: a slow consumer is not a dead server.
func (b *body) fill() error {
	b.makeRoom()
	b.silence.begin()
	n, err := b.ReadCloser.Read(b.buffer[b.to:])
	b.silence.end()
	b.to += b.endLines(b.buffer[b.to : b.to+n])
	return err
}

// endLines replaces each end of a line by \n, and returns how many bytes are left. A \r ends its
// line at once: what comes next may take long.
func (b *body) endLines(read []byte) int {
	if !b.cr && bytes.IndexByte(read, '\r') < 0 {
		return len(read)
	}
	left := read[:0]
	for _, c := range read {
		if c != '\n' || !b.cr {
			left = append(left, c)
		}
		if b.cr = c == '\r'; b.cr {
			left[len(left)-1] = '\n'
		}
	}
	return len(left)
}

// makeRoom moves the remainder to the front, and grows the buffer with the event.
func (b *body) makeRoom() {
	left := copy(b.buffer, b.buffer[b.from:b.to])
	b.line, b.seen = b.line-b.from, b.seen-b.from
	b.from, b.event, b.to = 0, 0, left
	if left == 0 && len(b.buffer) > keepBytes {
		b.resize(0)
	}
	if left == len(b.buffer) {
		b.resize(max(min(2*left, b.limit+readBytes), left+readBytes))
	}
}

// resize replaces the buffer.
func (b *body) resize(size int) {
	if b.held != nil {
		b.held(size - len(b.buffer))
	}
	resized := make([]byte, size)
	copy(resized, b.buffer)
	b.buffer = resized
}
