package h2

import (
	"net/http"

	"golang.org/x/net/http2"
)

// process acts on a frame of the client. An error that concerns one stream is a http2.StreamError.
func (c *conn) process(f http2.Frame) error {
	if _, is := f.(*http2.SettingsFrame); !is && !c.settled {
		return http2.ConnectionError(http2.ErrCodeProtocol) // settings come first
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.processHeaders(f)
	case *http2.DataFrame:
		return c.processData(f)
	case *http2.WindowUpdateFrame:
		return c.processWindow(f)
	case *http2.SettingsFrame:
		return c.processSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.appendPingAck(f.Data)
		}
		return c.flood.pay(1)
	case *http2.RSTStreamFrame:
		return c.processReset(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.GoAwayFrame:
		c.goAway(http2.ErrCodeNo) // it opens no more streams
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return c.flood.pay(1)
}

// processHeaders begins a request, or ends its body with trailers, which nobody reads.
func (c *conn) processHeaders(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if st := c.streams[id]; st != nil {
		return st.processTrailers(f)
	}
	if id <= c.last {
		if c.wasReset(id) {
			return c.flood.pay(1)
		}
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if c.away {
		return c.flood.pay(1) // the GOAWAY said that it is not processed
	}
	c.last = id
	if f.HasPriority() && f.Priority.StreamDep == id {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	if most := c.of.settings.MaxStreams; len(c.streams) >= most || c.running >= most {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	return c.begin(f)
}

// begin begins to handle a request.
func (c *conn) begin(f *http2.MetaHeadersFrame) error {
	st := newStream(c, f.StreamID, f.StreamEnded())
	r, err := st.newRequest(f)
	if err != nil {
		st.cancel()
		return err
	}
	handler := c.handler
	if f.Truncated {
		handler = http.HandlerFunc(tooLarge)
	}
	c.add(st)
	st.runs = true
	c.running++
	go st.handle(handler, r)
	return nil
}

// tooLarge answers a request whose header is too large.
func tooLarge(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the header of the request is too large", http.StatusRequestHeaderFieldsTooLarge)
}

func (st *Stream) processTrailers(f *http2.MetaHeadersFrame) error {
	switch {
	case st.gotEnd:
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeStreamClosed}
	case !f.StreamEnded(), len(f.PseudoFields()) > 0:
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeProtocol}
	}
	return st.arrive(nil, 0, true)
}

// processData adds to the body of a request.
func (c *conn) processData(f *http2.DataFrame) error {
	size := int64(f.Length)
	if c.granted -= size; c.granted < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if f.StreamID > c.last && !c.away {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if size < smallData && !f.StreamEnded() {
		if err := c.flood.pay(1); err != nil {
			return err
		}
	}
	st := c.streams[f.StreamID]
	if st == nil || st.gotEnd {
		c.pay(size)
		if st == nil && (c.wasReset(f.StreamID) || f.StreamID > c.last) {
			return nil
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	return st.arrive(f.Data(), size-int64(len(f.Data())), f.StreamEnded())
}

// arrive adds to the body of a request, and ends it.
func (st *Stream) arrive(p []byte, padded int64, end bool) error {
	if end {
		st.gotEnd = true
	}
	err := st.body.take(p, padded, end)
	if end && st.sentEnd {
		st.conn.remove(st)
	}
	return err
}

// processWindow lets the gateway send more.
func (c *conn) processWindow(f *http2.WindowUpdateFrame) error {
	if err := c.flood.pay(1); err != nil {
		return err
	}
	n := int64(f.Increment)
	if f.StreamID == 0 {
		was := c.window
		if c.window += n; c.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		if was <= 0 { // otherwise nobody waits for it
			c.awakenBlocked(c.turnsAtOnce())
		}
		return nil
	}
	if f.StreamID > c.last && !c.away {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	st := c.streams[f.StreamID]
	if st == nil {
		return nil
	}
	if err := st.widen(n); err != nil {
		return err
	}
	if st.blocked {
		c.awakenBlocked(c.turnsAtOnce())
	}
	return nil
}

// widen adds to the window of a stream, which may make it negative. A stream that waits for it then waits for the
// connection; the caller awakens it.
func (st *Stream) widen(n int64) error {
	if st.window += n; st.window > maxWindow {
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeFlowControl}
	}
	if n > 0 && st.waits && st.window > 0 {
		st.endTurn()
		st.conn.enqueue(st)
	}
	return nil
}

// mostSettings is how many settings a frame may have: there are fewer than ten.
const mostSettings = 64

func (c *conn) processSettings(f *http2.SettingsFrame) error {
	if err := c.flood.pay(1); err != nil {
		return err
	}
	if f.IsAck() {
		return nil
	}
	if f.NumSettings() > mostSettings {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	initial := c.initial
	if err := f.ForeachSetting(func(s http2.Setting) error {
		if s.ID == http2.SettingInitialWindowSize {
			initial = int64(s.Val) // the last one counts: going through all streams for each would cost too much
		}
		return c.set(s)
	}); err != nil {
		return err
	}
	if err := c.setInitialWindow(initial); err != nil {
		return err
	}
	if !c.settled {
		c.settled = true
		c.setState(http.StateActive) // a connection does not become idle before that
		c.setState(http.StateIdle)
	}
	c.appendSettingsAck()
	return nil
}

// set checks a setting of the client, and applies it unless it concerns windows.
func (c *conn) set(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	if s.ID == http2.SettingHeaderTableSize {
		c.encoder.SetMaxDynamicTableSize(min(s.Val, headerTable))
	}
	return nil
}

// setInitialWindow changes the windows of all streams.
func (c *conn) setInitialWindow(n int64) error {
	more := n - c.initial
	if more == 0 {
		return nil
	}
	c.initial = n
	for _, st := range c.streams {
		if st.widen(more) != nil {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	}
	c.awakenBlocked(c.turnsAtOnce())
	return c.flood.pay(streamCost * float64(len(c.streams)))
}

// processReset ends a stream that the client does not want any more.
func (c *conn) processReset(f *http2.RSTStreamFrame) error {
	if f.StreamID > c.last && !c.away {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	cost := resetCost
	if st := c.streams[f.StreamID]; st != nil {
		if st.handled == nil {
			cost = detachedCost
		}
		st.gotEnd = true // it sends nothing more
		st.fail(errReset)
	}
	return c.flood.pay(float64(cost))
}
