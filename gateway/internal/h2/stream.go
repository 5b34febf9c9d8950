package h2

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// Stream is a stream of a connection: a request, and the answer to it. It belongs to the goroutine of its handler
// until that detaches it. Then its owner writes to it without waiting.
//
// The mutex of the connection guards all fields that change.
type Stream struct {
	// Static after construction.
	conn *conn
	id   uint32

	window  int64 // bytes that the client takes
	gotEnd  bool  // the client has ended its side
	sentEnd bool  // the answer is complete
	waits   bool  // for room, or for the window; it is told
	blocked bool  // it is among the blocked streams of its connection
	heads   bool  // it has a header to write, which needs no window
	turn    int   // one more than the bytes that it may write although others wait; 0: it has not been told
	failure error // why nothing more can be written; nil: it can

	*handled            // nil: it is detached
	news     func(News) // tells the owner of a detached stream; nil: there is nobody to tell
}

// handled is what a stream has while its handler runs.
type handled struct {
	cancel   context.CancelFunc // of the context of the request
	changed  sync.Cond          // there is room, the body has bytes, or the stream has failed
	body     body
	deadline deadline // of writes
	runs     bool     // it counts as a handler that runs
}

// News is what the owner of a detached stream is told.
type News uint8

const (
	// Writable means that the stream takes bytes again.
	Writable News = iota
	// Gone means that the client has ended the stream, or the connection.
	Gone
)

// errReset means that a stream was reset.
var errReset = errors.New("the stream was reset")

// ErrBlocked means that a detached stream takes no more bytes now.
var ErrBlocked = errors.New("the stream takes no more bytes now")

// fail ends a stream without another frame. Everybody who waits for it is told.
func (st *Stream) fail(why error) {
	if st.failure == nil {
		st.failure = why
	}
	st.conn.remove(st)
	if st.handled != nil {
		st.cancel()
		st.body.fail(st.failure)
		st.changed.Broadcast()
	}
	if st.news != nil {
		st.news(Gone)
		st.news = nil
	}
}

// reset ends a stream with RST_STREAM.
func (st *Stream) reset(code http2.ErrCode, why error) {
	if st.failure == nil && !(st.gotEnd && st.sentEnd) {
		st.conn.appendReset(st.id, code)
	}
	st.fail(why)
}

// resetSoon ends a stream whose answer is complete, in a while, if its client goes on sending. Some clients,
// curl 7.88 among them, lose an answer that is followed at once by a reset. Until then its window bounds what the client sends.
func (st *Stream) resetSoon() {
	c := st.conn
	time.AfterFunc(linger, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams[st.id] == st {
			st.reset(http2.ErrCodeNo, errReset)
		}
	})
}

// tellRoom tells the handler or the owner of a stream that waits that there may be room.
func (st *Stream) tellRoom() {
	if !st.waits {
		return
	}
	st.waits = false
	switch {
	case st.handled != nil:
		st.changed.Broadcast()
	case st.news != nil:
		st.news(Writable)
	}
}

// end is called once the answer is complete.
func (st *Stream) end() {
	st.sentEnd = true
	st.stop()
	if st.gotEnd {
		st.conn.remove(st)
	}
}

// stop counts the handler out.
func (st *Stream) stop() {
	if st.handled != nil && st.runs {
		st.runs = false
		st.conn.running--
	}
}

// write writes data, and waits for room. end ends the answer with it.
func (st *Stream) write(p []byte, end bool) error {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if st.failure != nil {
			return st.failure
		}
		n := c.room(st, len(p))
		if n == len(p) && (n > 0 || end) {
			c.appendData(st, p, end)
			st.endTurn()
			if end {
				st.end()
			}
			return nil
		}
		if len(p) == 0 {
			return nil
		}
		if n == 0 {
			if c.awaitRoom(st); st.waits {
				st.wait()
			}
			continue
		}
		c.appendData(st, p[:n], false)
		p = p[n:]
	}
}

// awaitOutput waits until the output has room for a header. The mutex is held.
func (st *Stream) awaitOutput() error {
	for st.failure == nil && len(st.conn.pending) >= st.conn.full {
		st.waits, st.heads = true, true
		st.conn.enqueue(st)
		st.wait()
		st.heads = false
	}
	st.waits = false
	st.endTurn()
	return st.failure
}

// wait waits for a change, within the deadline of writes. Without a deadline, each wait has as long as the answer to a
// PING. The mutex is held.
func (st *Stream) wait() {
	if !st.deadline.at.IsZero() {
		st.changed.Wait()
		return
	}
	st.deadline.set(&st.conn.mu, time.Now().Add(st.conn.of.settings.PingTimeout))
	st.changed.Wait()
	st.deadline.at = time.Time{}
}

// Own begins to tell the owner of a detached stream what happens to it. news is called with a lock held: it must not
// call the stream.
func (st *Stream) Own(news func(News)) {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	if st.news = news; st.failure != nil {
		st.news(Gone)
		st.news = nil
	}
}

// Write writes to a detached stream, without waiting. If it would have to wait, it returns ErrBlocked and the number of
// bytes taken so far.
func (st *Stream) Write(p []byte) (taken int, err error) {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	defer st.endTurn()
	return st.writeNow(p, len(p))
}

// WriteSome writes the first bytes of a text of so many bytes. If that is empty, it returns ErrBlocked.
func (st *Stream) WriteSome(p []byte, of int) (taken int, err error) {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	if taken, err = st.writeNow(p, of); len(p) == 0 && st.failure == nil {
		err = ErrBlocked
	}
	if taken == of {
		st.endTurn()
	}
	return taken, err
}

// WriteAll writes several slices as if they were one.
func (st *Stream) WriteAll(all [][]byte) (taken int, err error) {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	defer st.endTurn()
	left := 0
	for _, p := range all {
		left += len(p)
	}
	for _, p := range all {
		n, err := st.writeNow(p, left)
		left -= n
		if taken += n; err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// writeNow writes a part of a text of which so many bytes are left.
func (st *Stream) writeNow(p []byte, left int) (taken int, err error) {
	for {
		if st.failure != nil {
			return taken, st.failure
		}
		if taken == len(p) {
			return taken, nil
		}
		n := min(st.conn.room(st, left-taken), len(p)-taken)
		if n == 0 {
			return taken, ErrBlocked
		}
		st.conn.appendData(st, p[taken:taken+n], false)
		taken += n
	}
}

// Room returns how many bytes, of so many, a detached stream takes at least.
func (st *Stream) Room(want int) int {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	return st.conn.room(st, want)
}

// Queues reports whether a stream that takes no bytes waits for nothing but other streams of its connection, which
// takes bytes or is closed.
func (st *Stream) Queues() bool {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	return st.failure == nil && st.window > 0 && st.conn.window > 0
}

// Await has the owner of a detached stream told when it takes bytes: at once, if it does now.
func (st *Stream) Await(writable bool) {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.waits = false; !writable {
		return
	}
	c.awaitRoom(st)
}

// Finish ends a detached stream after what was written to it. Its owner is told that the client is gone, which has
// nothing more to say.
func (st *Stream) Finish() error {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.failure != nil {
		return st.failure
	}
	c.control(http2.FrameData, http2.FlagDataEndStream, st.id)
	st.end()
	if st.news != nil {
		st.news(Gone)
		st.news = nil
	}
	return nil
}

// Close ends a detached stream. One that is not finished is reset.
func (st *Stream) Close() {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	st.news = nil
	if !st.sentEnd {
		st.reset(http2.ErrCodeCancel, errReset)
	}
}

// deadline is the time after which something may not go on. The mutex of the connection guards it.
type deadline struct {
	at     time.Time // zero: there is none
	timer  *time.Timer
	passed func() // static after construction; called with the mutex held
}

// set sets the time.
func (d *deadline) set(mu *sync.Mutex, at time.Time) {
	d.at = at
	switch {
	case at.IsZero():
	case !at.After(time.Now()):
		d.passed()
	case d.timer == nil:
		d.timer = time.AfterFunc(time.Until(at), func() { d.look(mu) })
	default:
		d.timer.Reset(time.Until(at))
	}
}

func (d *deadline) look(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
	switch now := time.Now(); {
	case d.timer == nil || d.at.IsZero():
	case d.at.After(now):
		d.timer.Reset(d.at.Sub(now))
	default:
		d.passed()
	}
}

func (d *deadline) stop() {
	if d.at = (time.Time{}); d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// lateWrite ends a stream whose client did not take what was written in time.
func (st *Stream) lateWrite() {
	if st.failure == nil && !st.sentEnd {
		st.reset(http2.ErrCodeInternal, os.ErrDeadlineExceeded)
	}
}
