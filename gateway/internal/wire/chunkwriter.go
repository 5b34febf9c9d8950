package wire

import (
	"errors"
	"net"
	"os"
	"strconv"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
)

// ChunkWriter writes the body of one response, in chunks, to a connection that was
// taken over from net/http. The connection is a patient one, so no deadline is needed
// here. Small writes are gathered, so that a chunk goes out as one slice: one system
// call and, over TLS, as few records as possible.
//
// The first error sticks and turns every later call into a no-op. Not safe for
// concurrent use: owned by one pump.
type ChunkWriter struct {
	Conn net.Conn // static after construction

	head   []byte  // of the response; nil: it has been sent
	buffer *[]byte // the open chunk, after room for its head; nil: nothing to send
	bytes  int     // sent so far, without the framing
	err    error
}

// NewChunkWriter returns a writer of a response to conn that begins with head.
func NewChunkWriter(conn net.Conn, head []byte) *ChunkWriter {
	return &ChunkWriter{Conn: conn, head: head}
}

const (
	// chunkRoom is the room for the head of a chunk: four digits and a line end.
	chunkRoom = 6
	// chunkTail is the room after it, for its end and the end of the body or the head
	// of a large chunk.
	chunkTail = 24
	// chunkFull is where the data in a buffer ends at the latest.
	chunkFull = gatherSize - chunkTail
)

// Write sends p to the client, now or at the next flush. It does not retain p. Data
// that fits into one chunk is not split.
func (w *ChunkWriter) Write(p []byte) {
	if conn, plain := w.Conn.(*netconn.StallTimeoutConn); plain && len(p) >= gatherSmall {
		w.writeLarge(conn, p)
		return
	}
	if w.buffer != nil && len(p) > chunkFull-len(*w.buffer) && len(p) <= chunkFull-chunkRoom {
		w.Flush()
	}
	for len(p) > 0 && w.err == nil {
		w.open()
		n := min(len(p), chunkFull-len(*w.buffer))
		*w.buffer = append(*w.buffer, p[:n]...)
		if p = p[n:]; len(p) > 0 {
			w.Flush()
		}
	}
}

// writeLarge sends the buffered bytes, and p without a copy. TLS would copy it
// anyway.
func (w *ChunkWriter) writeLarge(conn *netconn.StallTimeoutConn, p []byte) {
	if w.head != nil {
		w.send(nil)
	}
	if w.err != nil {
		return
	}
	w.open()
	defer w.release()
	front := AppendChunkHead(w.sealed(), len(p))
	w.bytes += len(p)
	w.err = conn.WriteAll(net.Buffers{front, p, ChunkEnd})
}

// open makes sure that there is an open chunk.
func (w *ChunkWriter) open() {
	if w.buffer == nil {
		w.buffer = gatherBuffers.Get().(*[]byte)
		*w.buffer = (*w.buffer)[:chunkRoom]
	}
}

// Flush sends the buffered bytes.
func (w *ChunkWriter) Flush() {
	if w.buffer == nil {
		return
	}
	defer w.release()
	w.send(w.sealed())
}

// End sends the buffered bytes, and ends the body.
func (w *ChunkWriter) End() {
	if w.buffer == nil {
		w.send([]byte(LastChunk))
		return
	}
	defer w.release()
	w.send(append(w.sealed(), LastChunk...))
}

// sealed returns the open chunk with its head and its end. If the chunk is empty it
// returns an empty slice, with room for a head.
func (w *ChunkWriter) sealed() []byte {
	b := *w.buffer
	size := len(b) - chunkRoom
	if size == 0 {
		return b[:0]
	}
	w.bytes += size
	var digits [chunkRoom]byte
	head := append(strconv.AppendUint(digits[:0], uint64(size), 16), "\r\n"...)
	copy(b[chunkRoom-len(head):], head)
	return append(b[chunkRoom-len(head):], ChunkEnd...)
}

func (w *ChunkWriter) send(p []byte) {
	if w.err != nil {
		return
	}
	if w.head != nil {
		p, w.head = append(w.head, p...), nil
	}
	_, w.err = w.Conn.Write(p)
}

func (w *ChunkWriter) release() {
	*w.buffer = (*w.buffer)[:0]
	gatherBuffers.Put(w.buffer)
	w.buffer = nil
}

// Sent implements Sender.
func (w *ChunkWriter) Sent() int { return w.bytes }

// Failure implements Sender.
func (w *ChunkWriter) Failure() error { return w.err }

// TimedOut implements Sender.
func (w *ChunkWriter) TimedOut() bool { return errors.Is(w.err, os.ErrDeadlineExceeded) }

// LastChunk ends a chunked body (RFC 9112, section 7.1).
const LastChunk = "0\r\n\r\n"

// AppendChunkHead appends the head of a chunk of n bytes.
func AppendChunkHead(dst []byte, n int) []byte {
	return append(strconv.AppendUint(dst, uint64(n), 16), "\r\n"...)
}

// ChunkEnd ends the data of a chunk (RFC 9112, section 7.1).
var ChunkEnd = []byte("\r\n")

// LengthOf returns the sum of the lengths.
func LengthOf(bs [][]byte) (n int) {
	for _, b := range bs {
		n += len(b)
	}
	return n
}
