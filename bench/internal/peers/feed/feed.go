// Package feed carries published events from the benchmark to a server that it
// runs as a child: frames on the child's standard input, an answer to each on
// its standard output.
//
// A frame is the number of events and then, for each, its length and its bytes;
// numbers have four bytes, least significant first. The answer is one byte: the
// server has accepted the publish.
package feed

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// limit is the most events of a frame, and the most bytes of an event:
// anything larger is not a frame.
const limit = 1 << 24

// Writer is the bench's end. It belongs to one goroutine.
type Writer struct {
	frames  io.Writer
	answers io.Reader
	buf     []byte
	answer  [1]byte
}

// NewWriter returns a Writer that sends frames and reads answers.
func NewWriter(frames io.Writer, answers io.Reader) *Writer {
	return &Writer{frames: frames, answers: answers}
}

// Publish sends one frame and waits for the answer.
func (w *Writer) Publish(events [][]byte) error {
	w.buf = Append(w.buf[:0], events)
	if _, err := w.frames.Write(w.buf); err != nil {
		return fmt.Errorf("publish %d events: %w", len(events), err)
	}
	if _, err := io.ReadFull(w.answers, w.answer[:]); err != nil {
		return fmt.Errorf("publish %d events: the server did not answer: %w", len(events), err)
	}
	return nil
}

// Append appends the frame of one publish to b.
func Append(b []byte, events [][]byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(events)))
	for _, e := range events {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e)))
		b = append(b, e...)
	}
	return b
}

// Reader is the server's end. It belongs to one goroutine.
type Reader struct {
	frames  *bufio.Reader
	answers io.Writer
	events  [][]byte
}

// NewReader returns a Reader of frames that sends answers.
func NewReader(frames io.Reader, answers io.Writer) *Reader {
	return &Reader{frames: bufio.NewReaderSize(frames, 64<<10), answers: answers}
}

// Next returns the events of the next publish; the bytes belong to the caller,
// the slice of them is valid until the next call. At the end of the input the
// error is io.EOF.
func (r *Reader) Next() ([][]byte, error) {
	n, err := r.number()
	if err != nil {
		return nil, err
	}
	r.events = r.events[:0]
	for range n {
		size, err := r.number()
		if err != nil {
			return nil, unexpected(err)
		}
		event := make([]byte, size)
		if _, err := io.ReadFull(r.frames, event); err != nil {
			return nil, unexpected(err)
		}
		r.events = append(r.events, event)
	}
	return r.events, nil
}

// Answer confirms that the last publish was accepted.
func (r *Reader) Answer() error {
	_, err := r.answers.Write([]byte{1})
	return err
}

func (r *Reader) number() (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(r.frames, b[:]); err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint32(b[:])
	if n > limit {
		return 0, fmt.Errorf("not a frame: %d exceeds %d", n, limit)
	}
	return n, nil
}

// unexpected converts an end inside a frame to an error that reports it.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
