package wire

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
)

// How much is handed to net/http at once, and so must be sent within one write
// deadline. HTTP/2 cuts into frames of 16 KiB anyway, and a client's flow-control
// window may be as small as that.
const (
	pieceHTTP1 = 64 << 10
	pieceHTTP2 = 16 << 10
)

// gatherSize is the size of the buffer in which small frames are gathered, so that
// one write carries many of them. Data of gatherSmall or more bypasses it uncopied.
const (
	gatherSize  = 32 << 10
	gatherSmall = 4 << 10
)

// gatherBuffers holds the buffers between flushes: a waiting stream has none.
var gatherBuffers = sync.Pool{New: func() any { b := make([]byte, 0, gatherSize); return &b }}

// BorrowBuffer returns an empty buffer for a short time, to be given back to ReturnBuffer.
func BorrowBuffer() *[]byte { return gatherBuffers.Get().(*[]byte) }

// ReturnBuffer returns a buffer to those that can be borrowed.
func ReturnBuffer(b *[]byte) { gatherBuffers.Put(b) }

// Writer writes the body of one response through net/http. The deadline of a write
// starts with each piece, so that a slow reader stays connected, and a client that
// does not read is cut off after timeout. Between flushes no deadline is armed:
// HTTP/2 would end a waiting stream.
//
// The first error sticks and turns every later call into a no-op. Not safe for
// concurrent use: owned by one pump.
type Writer struct {
	// Static after construction.
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	timeout time.Duration
	piece   int

	overdueAt func() time.Time // when writing must end although bytes move; nil, and zero: never

	pace     *netconn.Pace // nil: the client may be arbitrarily slow
	gathered *[]byte       // nil: nothing to write yet
	armed    time.Time     // the deadline; zero: none
	bytes    int           // handed to net/http so far
	err      error
}

// NewWriter returns a writer of a response whose client has timeout for each write.
func NewWriter(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Writer {
	out := &Writer{w: w, r: r, control: http.NewResponseController(w), timeout: timeout, piece: pieceHTTP1}
	if r.ProtoMajor >= 2 {
		out.piece = pieceHTTP2
	}
	return out
}

// KeepPace ends the response from now on if its client takes less than rate bytes per
// second. The pace must be stopped.
func (w *Writer) KeepPace(rate int64) {
	w.piece = answerPiece
	w.pace = netconn.NewPace(rate, w.piece, func() { netconn.CutOff(w.w, w.r) })
}

// StopPace ends what KeepPace began.
func (w *Writer) StopPace() { w.pace.Stop() }

// Response returns the response that is written.
func (w *Writer) Response() http.ResponseWriter { return w.w }

// EndBy makes writing end at the time that overdueAt returns, although bytes move; a
// zero time means never.
func (w *Writer) EndBy(overdueAt func() time.Time) { w.overdueAt = overdueAt }

// Write sends p to the client, now or at the next flush. It does not retain p.
func (w *Writer) Write(p []byte) {
	if len(p) >= gatherSmall {
		w.writeGathered()
		w.writePieces(p)
		return
	}
	if w.gathered == nil {
		w.gathered = gatherBuffers.Get().(*[]byte)
	}
	if len(*w.gathered)+len(p) > gatherSize {
		w.writeGathered()
	}
	*w.gathered = append(*w.gathered, p...)
}

// Flush sends the buffered bytes, and disarms the deadline.
func (w *Writer) Flush() {
	w.End()
	if w.err != nil {
		return
	}
	w.armed = time.Time{}
	w.err = w.control.SetWriteDeadline(w.armed)
}

// End is the last flush: the deadline stays armed for what net/http itself writes at
// the end of a body.
func (w *Writer) End() {
	w.writeGathered()
	if w.gathered != nil {
		gatherBuffers.Put(w.gathered)
		w.gathered = nil
	}
	w.arm()
	if w.err == nil {
		w.err = w.control.Flush()
	}
}

func (w *Writer) writeGathered() {
	if w.gathered == nil {
		return
	}
	w.writePieces(*w.gathered)
	*w.gathered = (*w.gathered)[:0]
}

func (w *Writer) writePieces(p []byte) {
	for len(p) > 0 && w.err == nil {
		w.arm()
		n, err := w.w.Write(p[:min(len(p), w.piece)])
		w.bytes += n
		w.pace.Move(n)
		w.err = err
		p = p[n:]
	}
}

// armedLongEnough is how old a write deadline may be and still count as new: the
// write and the flush of one event need only one.
const armedLongEnough = time.Millisecond

// arm sets a new write deadline.
func (w *Writer) arm() {
	deadline := time.Now().Add(w.timeout)
	if w.overdueAt != nil {
		if last := w.overdueAt(); !last.IsZero() && last.Before(deadline) {
			deadline = last
		}
	}
	if w.err == nil && !deadline.After(time.Now()) {
		w.err = netconn.ErrOverdue
	}
	if w.err != nil || deadline.Sub(w.armed) < armedLongEnough {
		return
	}
	w.armed = deadline
	w.err = w.control.SetWriteDeadline(deadline)
}

// Sent implements Sender.
func (w *Writer) Sent() int { return w.bytes }

// Failure implements Sender.
func (w *Writer) Failure() error { return w.err }

// TimedOut reports whether the error is that the client did not read. HTTP/2 shows
// this not by its error but by when the error comes.
func (w *Writer) TimedOut() bool {
	late := !w.armed.IsZero() && !time.Now().Before(w.armed)
	return w.err != nil && (late || w.pace.TooSlow() || errors.Is(w.err, os.ErrDeadlineExceeded))
}

// Outlet takes the bytes of a session, in order. It may keep them until the next
// flush of the pump, but no longer.
type Outlet interface{ Write(p []byte) }

// Sender is an outlet with a client at its end. After a failure it does nothing.
type Sender interface {
	Outlet
	Flush()         // sends the buffered bytes
	End()           // the last flush, which ends the body
	Sent() int      // bytes, without the framing
	Failure() error // the first one
	TimedOut() bool // the failure is that the client did not read
}
