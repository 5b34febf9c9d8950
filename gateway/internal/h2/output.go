package h2

import (
	"bytes"
	"encoding/binary"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// output is the frames of a connection that are to be written. The mutex of the connection guards it.
type output struct {
	pending  []byte // complete frames
	spare    []byte // an empty buffer; nil: the goroutine that writes has it
	controls int    // bytes in pending of frames that wait for no room
	signal   sync.Cond
	blocked  []*Stream // that wait for room, or for the window of the connection
	encoder  *hpack.Encoder
	fields   bytes.Buffer // what the encoder has written
}

const (
	// outputFull is how much is pending at most before streams wait for room.
	outputFull = 32 << 10
	// controlsFull is how much may be pending of frames that answer those of the client. One that
	// does not read them must not ask for more.
	controlsFull = 16 << 10
	// keepOutput is the largest size of a buffer that is kept while nothing is pending.
	keepOutput = 2 << 10
)

func (o *output) init(mu *sync.Mutex) {
	o.signal.L = mu
	o.encoder = hpack.NewEncoder(&o.fields)
}

// write writes what is pending, until the connection ends.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.pending) == 0 {
			if c.closed != nil {
				return
			}
			if cap(c.pending) > keepOutput {
				c.pending = nil
			}
			c.signal.Wait()
		}
		if c.closed != nil {
			return
		}
		p := c.pending
		c.pending, c.spare, c.controls = c.spare, nil, 0
		c.awakenBlocked()
		c.mu.Unlock()
		_, err := c.net.Write(p)
		c.mu.Lock()
		if err != nil {
			c.abort() // the goroutine that reads ends everything
			return
		}
		if cap(p) <= 2*outputFull {
			c.spare = p[:0]
		}
		if len(c.pending) == 0 {
			c.pending, c.spare = c.spare, nil
		}
	}
}

// awaken makes the goroutine look that writes.
func (c *conn) awaken() { c.signal.Signal() }

// room returns how many bytes of data a stream can write now, of those that it has.
func (c *conn) room(st *Stream, want int) int {
	return int(max(0, min(int64(want), st.window, c.window, int64(outputFull-len(c.pending)), frameBytes)))
}

// awaitRoom has a stream told when it may have room.
func (c *conn) awaitRoom(st *Stream) {
	st.waits = true
	if st.window > 0 && !st.blocked {
		st.blocked = true
		c.blocked = append(c.blocked, st)
	}
}

// awakenBlocked tells the streams that wait for the connection that there is room. A detached one is told only if
// it can write: it counts as moving.
func (c *conn) awakenBlocked() {
	all := c.blocked
	c.blocked = nil
	for _, st := range all {
		if st.handled == nil && c.room(st, 1) == 0 {
			c.blocked = append(c.blocked, st)
			continue
		}
		st.blocked = false
		st.tellRoom()
	}
}

// appendHead appends the head of a frame.
func (c *conn) appendHead(kind http2.FrameType, flags http2.Flags, id uint32, size int) {
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
	c.flood.credit(dataCredit)
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
	if c.fields.Cap() > keepOutput {
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
