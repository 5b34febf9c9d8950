package h2

import (
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// body is the body of a request, as far as it has arrived and is not read. The mutex of the connection guards it.
type body struct {
	stream   *Stream // static after construction, like the following field
	expected int64   // bytes; negative: it is not known

	arrived  []byte
	got      int64 // bytes
	granted  int64 // bytes that the client may still send
	owed     int64 // bytes that were read, and for which the client has no new window yet
	ended    error // after what has arrived; nil: more comes
	late     bool  // the deadline of reads has passed
	deadline deadline
	asks     bool // the client waits to be asked to continue (RFC 9110, section 10.1.1)
}

// take adds bytes that have arrived. The framing was padded by so many bytes.
func (b *body) take(p []byte, padded int64, end bool) error {
	size := int64(len(p)) + padded
	if b.granted -= size; b.granted < 0 {
		b.stream.conn.pay(size)
		return http2.StreamError{StreamID: b.stream.id, Code: http2.ErrCodeFlowControl}
	}
	b.got += int64(len(p))
	if b.expected >= 0 && (b.got > b.expected || end && b.got < b.expected) {
		b.stream.conn.pay(size)
		return http2.StreamError{StreamID: b.stream.id, Code: http2.ErrCodeProtocol}
	}
	if padded > 0 {
		b.pay(padded)
	}
	if b.ended == nil {
		b.arrived = append(b.arrived, p...)
	} else {
		b.stream.conn.pay(int64(len(p))) // nobody reads it
	}
	if end {
		b.finish()
	}
	b.stream.changed.Broadcast()
	return nil
}

// finish is called when the client has ended its side.
func (b *body) finish() {
	if b.ended == nil {
		b.ended = io.EOF
	}
	b.deadline.stop()
	b.stream.changed.Broadcast()
}

// fail drops what was not read.
func (b *body) fail(why error) {
	if b.ended == nil || b.ended == io.EOF && len(b.arrived) > 0 {
		b.ended = why
	}
	b.stream.conn.pay(int64(len(b.arrived)))
	b.arrived = nil
	b.deadline.stop()
}

// pay returns the window for bytes that were read.
func (b *body) pay(n int64) {
	b.stream.conn.pay(n)
	if b.ended != nil {
		return
	}
	if b.owed += n; b.owed >= initialWindow/2 {
		b.stream.conn.appendWindow(b.stream.id, b.owed)
		b.granted += b.owed
		b.owed = 0
	}
}

// pay returns the window of the connection for bytes that were read.
func (c *conn) pay(n int64) {
	if c.owed += n; c.owed >= connWindow/4 && c.closed == nil {
		c.appendWindow(0, c.owed)
		c.granted += c.owed
		c.owed = 0
	}
}

// bodyReader is the body as its handler has it.
type bodyReader struct{ of *Stream }

// Read implements io.Reader.
func (r bodyReader) Read(p []byte) (int, error) {
	st := r.of
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	b := &st.handled.body
	if b.asks {
		b.asks = false
		st.appendStatus(http.StatusContinue, false)
	}
	for len(p) > 0 && len(b.arrived) == 0 && b.ended == nil && !b.late {
		st.changed.Wait()
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case len(b.arrived) > 0:
		n := copy(p, b.arrived)
		if b.arrived = b.arrived[n:]; len(b.arrived) == 0 {
			b.arrived = nil
		}
		b.pay(int64(n))
		return n, nil
	case b.ended != nil:
		return 0, b.ended
	}
	return 0, os.ErrDeadlineExceeded
}

// Close implements io.Closer: what comes from now on is dropped.
func (r bodyReader) Close() error {
	r.of.conn.mu.Lock()
	defer r.of.conn.mu.Unlock()
	r.of.handled.body.fail(errBodyClosed)
	return nil
}

// setReadDeadline sets the time until which reads wait.
func (st *Stream) setReadDeadline(mu *sync.Mutex, at time.Time) {
	b := &st.handled.body
	if b.late = false; b.ended == nil {
		b.deadline.set(mu, at)
	}
}
