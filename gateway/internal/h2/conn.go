package h2

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// frameBytes is the most that a frame has: the default of RFC 9113, which every peer takes.
	frameBytes = 16 << 10
	// initialWindow is that of streams and connections at first (RFC 9113, section 6.9.2).
	initialWindow = 1<<16 - 1
	// connWindow is how much a connection holds of the bodies of all its requests.
	connWindow = 4 * initialWindow
	// maxWindow is the largest flow-control window.
	maxWindow = 1<<31 - 1
	// headerTable is the size of the table of the header compression, in each direction.
	headerTable = 4 << 10
	// linger is how long a connection that has ended is kept, for its client to read the rest: closing it
	// may discard that.
	linger = 250 * time.Millisecond
)

// conn is a connection. It has two goroutines: one reads frames and one writes them. Frames to be written are
// collected in the output.
type conn struct {
	// Static after construction.
	of      *server
	http    *http.Server
	net     net.Conn
	client  limits.Client
	handler http.Handler
	ctx     context.Context // of all its requests

	// Owned by the goroutine that reads.
	in     input
	framer *http2.Framer

	mu      sync.Mutex // guards the following fields
	output             // what is to be written
	streams map[uint32]*Stream
	running int                  // handlers
	last    uint32               // the last stream that the client has opened
	resets  [recentResets]uint32 // streams that ended before their client had ended its side
	reset   int                  // the oldest of these
	window  int64                // bytes that the client takes, of all streams
	initial int64                // window of a new stream
	granted int64                // bytes that the client may still send, of all streams
	owed    int64                // bytes that were read, and for which the client has no new window yet
	flood   flood
	settled bool // the client has sent its settings
	away    bool // a GOAWAY was sent: streams that come are ignored
	closed  error
	heard   time.Time // of the last frame
	idle    time.Time // since when there is no stream
	pinged  bool      // an answer is awaited since then
	timer   *time.Timer
}

// recentResets is how many streams are remembered that ended before their client had ended its
// side. What it had sent by then is ignored.
const recentResets = 64

func newConn(of *server, s *http.Server, c net.Conn, h http.Handler, ctx context.Context) *conn {
	now := time.Now()
	out := &conn{
		of: of, http: s, net: c, client: limits.ClientOf(limits.PeerAddress(c.RemoteAddr().String()).Addr()), handler: h, ctx: ctx, streams: map[uint32]*Stream{},
		window: initialWindow, initial: initialWindow, granted: initialWindow, flood: flood{left: floodBurst, at: now}, heard: now, idle: now,
	}
	in := io.Reader(c)
	if secure, ok := c.(*tls.Conn); ok && netconn.Of(c) != nil {
		beneath := netconn.Of(c)
		in = &wasteMeter{conn: out, secure: secure, beneath: beneath, useful: beneath.Heard()}
	}
	out.in.r = bufio.NewReaderSize(in, 4<<10)
	out.framer = http2.NewFramer(nil, &out.in)
	out.framer.ReadMetaHeaders = hpack.NewDecoder(headerTable, nil)
	out.framer.MaxHeaderListSize = uint32(of.settings.MaxHeaderBytes + 10*32) // a field counts 32 bytes more than it has
	out.framer.SetMaxReadFrameSize(frameBytes)
	out.framer.SetReuseFrames()
	out.output.init(&out.mu)
	return out
}

// input is what the client sends.
//
// Owned by the goroutine that reads.
type input struct {
	r    *bufio.Reader
	left int // of the frame, with those that continue it
}

// errTooLong means that the header of a request does not end.
var errTooLong = errors.New("the frames of one header are too long, or too many")

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	if i.left <= 0 {
		return 0, errTooLong
	}
	n, err := i.r.Read(p[:min(len(p), i.left)])
	i.left -= n
	return n, err
}

// serve serves the connection until it ends.
func (c *conn) serve(greeted, leaving bool) {
	if stall := netconn.Of(c.net); stall != nil {
		stall.Overdue = c.overdue
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	defer func() {
		c.abort() // also if a panic ends the goroutine that reads
		c.mu.Lock()
		c.end(io.ErrUnexpectedEOF)
		c.mu.Unlock()
		<-written
	}()
	c.mu.Lock()
	c.timer = time.AfterFunc(c.of.settings.HelloTimeout, c.look)
	c.greet()
	if leaving {
		c.goAway(http2.ErrCodeNo)
	}
	c.mu.Unlock()
	err := c.read(greeted)
	c.mu.Lock()
	if code, ours := codeOf(err); ours {
		c.goAway(code)
		c.endStreams(err)
		c.mu.Unlock()
		_, _ = io.Copy(io.Discard, netconn.Bottom(c.net)) // until the timer closes the connection; nothing is decrypted any more
		c.mu.Lock()
	}
	c.end(err)
	c.mu.Unlock()
}

// codeOf returns the error code of a GOAWAY. It returns false if the connection itself has failed.
func codeOf(err error) (http2.ErrCode, bool) {
	var fault http2.ConnectionError
	switch {
	case errors.As(err, &fault):
		return http2.ErrCode(fault), true
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ErrCodeFrameSize, true
	case errors.Is(err, errTooLong), errors.Is(err, netconn.ErrHeardTooMuch):
		return http2.ErrCodeEnhanceYourCalm, true
	}
	return 0, false
}

// read reads frames until the connection must end.
func (c *conn) read(greeted bool) error {
	if !greeted {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(c.in.r, preface); err != nil {
			return err
		}
		if !bytes.Equal(preface, []byte(http2.ClientPreface)) {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
	}
	for {
		c.in.left = frameBytes + 2*c.of.settings.MaxHeaderBytes
		f, err := c.framer.ReadFrame()
		if err := c.take(f, err); err != nil {
			return err
		}
	}
}

// take takes a frame, or the error with which it was read. A fault that concerns one stream ends that.
func (c *conn) take(f http2.Frame, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.heard, c.pinged = time.Now(), false
		err = c.process(f)
	}
	var fault http2.StreamError
	if !errors.As(err, &fault) {
		return err
	}
	if fault.StreamID > c.last { // its header is at fault
		c.last = fault.StreamID
	}
	if c.away && c.streams[fault.StreamID] == nil {
		return nil
	}
	c.resetStream(fault.StreamID, fault.Code)
	return c.flood.pay(resetCost)
}

// resetStream ends a stream for a fault of its client.
func (c *conn) resetStream(id uint32, code http2.ErrCode) {
	if st := c.streams[id]; st != nil {
		st.reset(code, errReset)
		return
	}
	c.remember(id)
	c.appendReset(id, code)
}

// remember remembers a stream that ended before its client had ended its side.
func (c *conn) remember(id uint32) {
	c.resets[c.reset] = id
	c.reset = (c.reset + 1) % len(c.resets)
}

// wasReset reports whether a stream ended lately before its client had ended its side.
func (c *conn) wasReset(id uint32) bool {
	return slices.Contains(c.resets[:], id)
}

// leave sends a GOAWAY. The connection ends with its last stream.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goAway(http2.ErrCodeNo)
}

// goAway sends a GOAWAY. The connection ends with its last stream, or at once if it is for an error.
func (c *conn) goAway(code http2.ErrCode) {
	if c.away && code == http2.ErrCodeNo {
		return
	}
	c.away = true
	c.appendGoAway(c.last, code)
	if code != http2.ErrCodeNo || len(c.streams) == 0 {
		c.closeSoon()
	}
}

// closeSoon closes the connection in a while.
func (c *conn) closeSoon() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
		time.AfterFunc(linger, func() { c.net.Close() })
	}
}

// abort closes the connection without another frame.
func (c *conn) abort() {
	netconn.Bottom(c.net).Close()
}

// end ends everything that the connection has. Then nothing is written any more.
func (c *conn) end(why error) {
	if c.closed != nil {
		return
	}
	if c.closed = why; why == nil {
		c.closed = io.EOF
	}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	c.endStreams(c.closed)
	c.awaken()
}

func (c *conn) endStreams(why error) {
	for _, st := range c.streams {
		st.fail(why)
	}
}

// look ends a connection that does not go on, and sends a PING to a silent one.
func (c *conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		return
	}
	s, now := c.of.settings, time.Now()
	silent, unanswered := c.heard.Add(s.PingAfter), c.heard.Add(s.PingAfter+s.PingTimeout)
	if c.writes { // the PING is behind what is written, which has a time-out of its own
		unanswered = now.Add(s.PingTimeout)
	} else if c.written.Add(s.PingTimeout).After(unanswered) {
		unanswered = c.written.Add(s.PingTimeout)
	}
	switch {
	case !c.settled, c.pinged && !now.Before(unanswered):
		c.abort()
		return
	case !c.pinged && !now.Before(silent):
		c.pinged = true
		c.appendPing()
	}
	next := silent
	if c.pinged {
		next = unanswered
	}
	if len(c.streams) == 0 {
		idle := c.idle.Add(s.IdleTimeout)
		if !now.Before(idle) {
			c.goAway(http2.ErrCodeNo)
			return
		}
		if idle.Before(next) {
			next = idle
		}
	}
	c.timer.Reset(time.Until(next))
}

// setState tells net/http whether the connection has streams.
func (c *conn) setState(s http.ConnState) {
	if c.http.ConnState != nil {
		c.http.ConnState(c.net, s)
	}
}

// add adds a stream.
func (c *conn) add(st *Stream) {
	c.streams[st.id] = st
	if len(c.streams) == 1 {
		c.setState(http.StateActive)
	}
}

// remove removes a stream that has ended.
func (c *conn) remove(st *Stream) {
	if c.streams[st.id] != st {
		return
	}
	delete(c.streams, st.id)
	st.endTurn()
	if st.blocked {
		st.blocked = false
		c.blocked = slices.DeleteFunc(c.blocked, func(one *Stream) bool { return one == st })
	}
	c.awakenBlocked(c.turnsAtOnce()) // it may have been told, and not have written
	if !st.gotEnd {
		c.remember(st.id)
	}
	if len(c.streams) > 0 {
		return
	}
	c.streams = map[uint32]*Stream{} // a map never shrinks
	c.setState(http.StateIdle)
	c.idle = time.Now()
	if c.away {
		c.closeSoon()
	}
}
