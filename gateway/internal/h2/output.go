package h2

import (
	"bytes"
	"encoding/binary"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// output is the frames of a connection that are to be written. The mutex of the connection guards it.
type output struct {
	pending  []byte        // complete frames
	full     int           // how much is pending at most before streams wait for room: outputFirst or outputFull
	claim    *limits.Claim // for more than outputFirst; nil: no buffer has more
	controls int           // bytes in pending of frames that wait for no room
	signal   sync.Cond
	blocked  []*Stream // that wait for room, or for the window of the connection
	turns    int       // streams that were told, and have not used it yet
	writes   bool      // the connection is being written to
	began    time.Time // when the last write began
	size     int       // of that
	slow     bool      // a write took long, and no large one was quick since
	written  time.Time // when a write ended that took long
	encoder  *hpack.Encoder
	fields   bytes.Buffer // what the encoder has written
}

const (
	// outputFirst is how much is pending at most before streams wait for room, while as much is written.
	outputFirst = 16 << 10
	// outputFull is that while the client is not known to be slow: so much that a shard has the next part ready before
	// this one is taken. It needs a claim.
	outputFull = 128 << 10
	// controlsFull is how much may be pending of frames that answer those of the client. One that
	// does not read them must not ask for more.
	controlsFull = 16 << 10
	// littleData is how much a stream may write before those that wait: an event of ordinary size.
	littleData = 4 << 10
	// longWrite is how long a write takes at least if the client is slow.
	longWrite = time.Second
	// quickWrite is how long a write of outputFirst takes at most if one of outputFull is no longWrite.
	quickWrite = longWrite * outputFirst / outputFull
	// keepFields is the largest size of a buffer for headers that is kept.
	keepFields = 2 << 10
)

const (
	// smallBuffer is enough for outputFirst, a frame of littleData after it, and some controls.
	smallBuffer = 24 << 10
	// largeBuffer is enough for outputFull.
	largeBuffer = outputFull + smallBuffer - outputFirst
)

// smallBuffers and largeBuffers hold the buffers of connections that have nothing to write.
var (
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, 0, smallBuffer); return &b }}
	largeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, largeBuffer); return &b }}
)

// giveBack gives a buffer back. One that has grown is dropped.
func giveBack(p []byte) {
	p = p[:0]
	switch cap(p) {
	case smallBuffer:
		smallBuffers.Put(&p)
	case largeBuffer:
		largeBuffers.Put(&p)
	}
}

func (o *output) init(mu *sync.Mutex) {
	o.signal.L, o.full = mu, outputFirst
	o.encoder = hpack.NewEncoder(&o.fields)
}

// write writes what is pending, until the connection ends.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.claim.Release() }()
	for {
		for len(c.pending) == 0 && c.closed == nil {
			c.awakenBlocked(len(c.blocked)) // those that were told may have had nothing to write
			if len(c.blocked) == 0 && c.turns == 0 {
				c.narrow()
			}
			c.signal.Wait()
		}
		if c.closed != nil {
			return
		}
		p := c.pending
		c.pending, c.controls, c.writes = nil, 0, true
		c.began, c.size = time.Now(), len(p)
		c.awakenBlocked(c.turnsAtOnce())
		c.mu.Unlock()
		_, err := c.net.Write(p)
		giveBack(p)
		c.mu.Lock()
		c.writes = false
		switch now := time.Now(); {
		case now.Sub(c.began) >= longWrite:
			c.written, c.slow = now, true
			c.narrow()
		case now.Sub(c.began) <= quickWrite && c.size >= outputFirst:
			c.slow = false
		case c.full == outputFirst:
			c.narrow()
		}
		if err != nil {
			c.abort() // the goroutine that reads ends everything
			return
		}
	}
}

// overdue reports whether the client takes less than the minimum rate of a buffer that others could have.
func (c *conn) overdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	rate := time.Duration(c.of.settings.MinRate)
	if !c.writes || c.claim == nil || rate <= 0 {
		return false
	}
	return time.Since(c.began) > netconn.RateWindow+time.Duration(c.size)*time.Second/rate
}

// widen gives the output more room, unless its client is slow or others have all of it.
func (c *conn) widen() {
	if c.slow || c.writes && time.Since(c.began) > quickWrite {
		return
	}
	if c.claim == nil {
		c.claim = c.of.settings.Outputs.TryTake(c.client, 2*outputFull)
	}
	if c.claim != nil {
		c.full = outputFull
	}
}

// narrow gives that back, once what is pending is little.
func (c *conn) narrow() {
	if c.full = outputFirst; cap(c.pending) <= smallBuffer {
		c.claim.Release()
		c.claim = nil
	}
}

// turnsAtOnce returns how many streams that wait have room at once.
func (c *conn) turnsAtOnce() int { return c.full / frameBytes }

// awaken makes the goroutine look that writes.
func (c *conn) awaken() { c.signal.Signal() }

// room returns how many bytes of data a stream can write now, of those that it has. Where several streams wait for
// the connection, one that has much may write a frame when it is told, and then the others are.
func (c *conn) room(st *Stream, want int) int {
	n := c.takes(st, want)
	if want <= littleData || len(c.blocked) == 0 && (c.turns == 0 || c.turns == 1 && st.turn > 0) {
		return n // nobody else waits
	}
	return min(n, max(0, st.turn-1))
}

// takes returns how many bytes of a stream the connection takes now. Little is taken as a whole while the output is
// not full.
func (c *conn) takes(st *Stream, want int) int {
	if c.full == outputFirst && len(c.pending)+want > outputFirst {
		c.widen()
	}
	left := c.full - len(c.pending)
	if left > 0 {
		left = max(left, littleData)
	}
	return int(max(0, min(int64(want), st.window, c.window, int64(left), frameBytes)))
}

// awaitRoom has a stream told when it may have room: at once, if it has now.
func (c *conn) awaitRoom(st *Stream) {
	st.endTurn()
	if st.waits = true; st.window > 0 {
		c.enqueue(st)
	}
	c.awakenBlocked(c.turnsAtOnce())
}

// beginTurn lets a stream that has waited write a frame although others wait.
func (st *Stream) beginTurn() {
	if st.turn == 0 {
		st.conn.turns++
	}
	st.turn = 1 + frameBytes
}

// endTurn ends that: the stream has written what it has, or waits again.
func (st *Stream) endTurn() {
	if st.turn > 0 {
		st.turn = 0
		st.conn.turns--
	}
}

// enqueue adds a stream to those that wait for the connection.
func (c *conn) enqueue(st *Stream) {
	if !st.blocked {
		st.blocked = true
		c.blocked = append(c.blocked, st)
	}
}

// awakenBlocked tells the streams that have waited longest for the connection, at most so many. If more wait, the
// goroutine that writes tells them once it has nothing to write.
func (c *conn) awakenBlocked(most int) {
	waiting := c.blocked[:0]
	for _, st := range c.blocked {
		switch {
		case !st.heads && st.window <= 0: // it waits for its own window
			st.blocked = false
		case most > 0 && len(c.pending) < c.full && (st.heads || c.window > 0):
			st.blocked = false
			most--
			st.beginTurn()
			st.tellRoom()
		default:
			waiting = append(waiting, st)
		}
	}
	clear(c.blocked[len(waiting):])
	if c.blocked = waiting; len(waiting) > 0 && len(c.pending) == 0 && most == 0 {
		c.awaken()
	}
}

// reserve makes sure that there is a buffer, for so many bytes more if there is a claim.
func (c *conn) reserve(n int) {
	switch {
	case c.full == outputFull && len(c.pending)+n > cap(c.pending) && cap(c.pending) < largeBuffer:
		p := append(*largeBuffers.Get().(*[]byte), c.pending...)
		giveBack(c.pending)
		c.pending = p
	case c.pending == nil:
		c.pending = *smallBuffers.Get().(*[]byte)
	}
}

// appendHead appends the head of a frame.
func (c *conn) appendHead(kind http2.FrameType, flags http2.Flags, id uint32, size int) {
	c.reserve(frameHead + size)
	c.pending = append(c.pending, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	c.pending = binary.BigEndian.AppendUint32(c.pending, id)
}

// control appends a frame that does not wait for room.
func (c *conn) control(kind http2.FrameType, flags http2.Flags, id uint32, payload ...byte) {
	c.appendHead(kind, flags, id, len(payload))
	c.pending = append(c.pending, payload...)
	if c.controls += frameHead + len(payload); c.controls > controlsFull {
		c.abort()
	}
	c.awaken()
}

// frameHead is the size of the head of a frame.
const frameHead = 9

// appendData appends a frame of data, for which there is room.
func (c *conn) appendData(st *Stream, p []byte, end bool) {
	flags := http2.Flags(0)
	if end {
		flags = http2.FlagDataEndStream
	}
	c.appendHead(http2.FrameData, flags, st.id, len(p))
	c.pending = append(c.pending, p...)
	st.window -= int64(len(p))
	c.window -= int64(len(p))
	if st.turn > 0 {
		st.turn = max(1, st.turn-len(p))
	}
	if len(p) >= smallData || st.window > 0 && c.window > 0 {
		c.flood.credit(dataCredit)
	}
	c.awaken()
}

// appendFields appends the frames of a header.
func (c *conn) appendFields(st *Stream, fields []hpack.HeaderField, end bool) {
	c.fields.Reset()
	for _, f := range fields {
		_ = c.encoder.WriteField(f) // a buffer takes everything
	}
	kind, flags := http2.FrameHeaders, http2.Flags(0)
	if end {
		flags = http2.FlagHeadersEndStream
	}
	for first := true; first || c.fields.Len() > 0; first = false {
		p := c.fields.Next(frameBytes)
		if c.fields.Len() == 0 {
			flags |= http2.FlagHeadersEndHeaders
		}
		c.appendHead(kind, flags, st.id, len(p))
		c.pending = append(c.pending, p...)
		kind, flags = http2.FrameContinuation, 0
	}
	if c.fields.Cap() > keepFields {
		c.fields = bytes.Buffer{}
	}
	c.awaken()
}

// greet appends the settings of the gateway, and the window of the connection.
func (c *conn) greet() {
	var p []byte
	for _, s := range []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.of.settings.MaxStreams)},
		{ID: http2.SettingMaxHeaderListSize, Val: c.framer.MaxHeaderListSize},
	} {
		p = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(p, uint16(s.ID)), s.Val)
	}
	c.control(http2.FrameSettings, 0, 0, p...)
	c.appendWindow(0, connWindow-initialWindow)
	c.granted = connWindow
}

func (c *conn) appendSettingsAck() { c.control(http2.FrameSettings, http2.FlagSettingsAck, 0) }

func (c *conn) appendPing() { c.control(http2.FramePing, 0, 0, make([]byte, 8)...) }

func (c *conn) appendPingAck(data [8]byte) {
	c.control(http2.FramePing, http2.FlagPingAck, 0, data[:]...)
}

func (c *conn) appendReset(id uint32, code http2.ErrCode) {
	c.control(http2.FrameRSTStream, 0, id, binary.BigEndian.AppendUint32(nil, uint32(code))...)
}

func (c *conn) appendGoAway(last uint32, code http2.ErrCode) {
	c.control(http2.FrameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), uint32(code))...)
}

func (c *conn) appendWindow(id uint32, n int64) {
	c.control(http2.FrameWindowUpdate, 0, id, binary.BigEndian.AppendUint32(nil, uint32(n))...)
}
