package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// switchClient is a client with a stream of watches, which it opens again and again.
//
// Its fields are guarded by the mutex of its world.
type switchClient struct {
	world  *switchWorld
	name   string
	who    *switchPrincipal
	held   bool // it applies events when an id arrives, and drops those without one at the end. Otherwise at once
	gzip   bool
	last   []*switchFollow // what it had of each watch when its connection ended
	ids    [][]*switchFollow
	stream *switchStream // nil: it has none
}

// switchStream is one connection. Guarded by the mutex of its world.
type switchStream struct {
	of      *switchClient
	at      *switchGateway
	groups  []string // of its credential
	cancel  context.CancelFunc
	gate    chan struct{} // full: the client does not read
	slow    bool
	frames  bytes.Buffer
	left    int // frames until it hangs up; -1: it does not
	pause   int // frames until it reads nothing; -1: it does not pause
	id      string
	follows []*switchFollow
	goodbye string
	lost    []string // the watches of which it may see nothing any more
	ended   bool
	moved   time.Time // when it was last told to follow something else, or would have been
}

// switchFollow is what a client has of one watch.
type switchFollow struct {
	stream *switchStream
	watch  string
	part   *grantedPart // that its events are of; nil: none were
	conn   *streamtest.Connection
	from   *streamtest.Mark // what it came with; nil: nothing, or an id was sent since
	mark   *streamtest.Mark // its last id
	state  streamtest.State
	safe   streamtest.State // when any id arrived
	ahead  uint64           // up to where the state may be

	flush *streamtest.Flush
}

// open opens a stream at a gateway, with what the client has.
func (c *switchClient) open(g *switchGateway, came []*switchFollow) {
	w := c.world
	ctx, cancel := context.WithCancel(context.Background())
	s := &switchStream{of: c, at: g, groups: c.who.groups, cancel: cancel, gate: make(chan struct{}, 1), left: -1, pause: -1}
	var query, ids []string
	for i, name := range []string{"a", "b"} {
		query = append(query, "watch="+name)
		f := &switchFollow{stream: s, watch: name, state: streamtest.State{}, safe: streamtest.State{}}
		if came != nil && came[i].mark != nil {
			before := came[i]
			f.part, f.from, f.mark, f.state, f.ahead = before.part, before.mark, before.mark, before.state.Clone(), before.ahead
			f.safe = f.state.Clone()
			ids = append(ids, before.mark.Position.String())
		}
		s.follows = append(s.follows, f)
	}
	c.stream, w.streams = s, append(w.streams, s)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gateway/v1/events?"+strings.Join(query, "&"), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	name, value, _ := strings.Cut(c.who.header(w), ": ")
	req.Header.Set(name, value)
	if c.gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if ids != nil {
		req.Header.Set("Last-Event-ID", strings.Join(ids, ","))
	}
	w.say("%s opens a stream at %s from %v", c.name, g.name, ids)
	for _, f := range s.follows {
		f.begin()
	}
	w.mu.Unlock()
	res, err := g.client.Do(req)
	w.mu.Lock()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cancel)
	if res.StatusCode != http.StatusOK {
		w.refused(s, res)
		return
	}
	gatewaytest.Unzip(res)
	go s.read(res.Body)
}

// begin opens the connection in the history of the part that the follow comes to.
func (f *switchFollow) begin() {
	part := f.stream.at.grants(f.watch, f.stream.groups)
	if part == nil {
		return // the stream is refused
	}
	if f.from == nil || f.part == part { // otherwise a reset comes first
		f.connect(part, f.from)
	}
}

// connect adds a connection to the history of a part.
func (f *switchFollow) connect(part *grantedPart, from *streamtest.Mark) {
	s := f.stream
	f.end()
	f.part = part
	f.conn = &streamtest.Connection{Client: s.of.name, Replica: s.at.name, Slow: s.slow, Opened: time.Now(), From: from}
	if from != nil {
		f.conn.Begin, f.conn.Ahead = f.state.Clone(), f.ahead
	}
	part.history.Add(f.conn)
}

// end ends the connection in the history.
func (f *switchFollow) end() {
	if f.conn == nil {
		return
	}
	if f.flush != nil {
		f.flush.Cut = true
		f.put()
	}
	f.conn.Closed, f.conn.Read, f.conn = time.Now(), time.Now(), nil
}

// put adds the flush to the connection.
func (f *switchFollow) put() {
	f.conn.Flushes = append(f.conn.Flushes, *f.flush)
	f.flush = nil
}

// newFlush returns a flush of something that was received now.
func (f *switchFollow) newFlush() *streamtest.Flush {
	w := f.stream.of.world
	w.order++
	at, _ := f.stream.at.Registry.Watch(f.watch)
	head := at.Snapshot().Revision()
	flush := &streamtest.Flush{Order: w.order, At: time.Now(), Head: head}
	flush.Horizon, _ = at.Snapshot().Horizon()
	if f.stream.slow {
		flush.Horizon = ^uint64(0) // it is not known what it was when the flush was sent
	}
	f.ahead = max(f.ahead, head)
	return flush
}

// read reads frames as they arrive.
func (s *switchStream) read(body io.ReadCloser) {
	w := s.of.world
	defer body.Close()
	p := make([]byte, 2<<10)
	for {
		s.gate <- struct{}{}
		<-s.gate
		n, err := body.Read(p)
		w.mu.Lock()
		over := !s.receive(p[:n]) || err != nil
		if over {
			s.close()
		}
		w.mu.Unlock()
		if over {
			return
		}
	}
}

// close ends the stream, and leaves its client with what it has.
func (s *switchStream) close() {
	s.ended = true
	s.cancel()
	for _, f := range s.follows {
		f.end()
		if s.of.held {
			f.state = f.safe
		}
	}
	s.of.last, s.of.stream = s.follows, nil
	s.of.world.ended(s)
}

// receive processes the complete frames. It returns false if the client hangs up.
func (s *switchStream) receive(p []byte) bool {
	s.frames.Write(p)
	for {
		frame, rest, whole := bytes.Cut(s.frames.Bytes(), []byte("\n\n"))
		if !whole {
			return true
		}
		switch {
		case s.left == 0:
			return false
		case s.pause == 0:
			s.pause = -1
			s.stall(true)
			return true // what is here already is processed later
		}
		s.pause = max(s.pause-1, -1)
		s.left = max(s.left-1, -1)
		s.take(frame)
		s.frames.Next(s.frames.Len() - len(rest))
	}
}

// take processes one frame.
func (s *switchStream) take(frame []byte) {
	var ids string
	var data []byte
	for line := range bytes.SplitSeq(frame, []byte("\n")) {
		if v, is := bytes.CutPrefix(line, []byte("id: ")); is {
			ids = string(v)
		}
		if v, is := bytes.CutPrefix(line, []byte("data: ")); is {
			data = v
		}
	}
	if data == nil {
		return
	}
	var d struct {
		Type, Watch, Key, Reason, State, Stream string
		Revision                                uint64 `json:",string"`
		Value                                   json.RawMessage
		Count                                   int
		Resumed                                 bool
		Skipped                                 uint64
		Since                                   time.Time
	}
	if json.Unmarshal(data, &d) != nil && d.Type != "hello" {
		s.broke("%s is no event", data)
	}
	switch d.Type {
	case "hello":
		s.id = d.Stream
		return
	case "goodbye":
		s.goodbye = d.Reason
		s.of.world.say("%s is told goodbye: %s", s.of.name, d.Reason)
		return
	}
	s.of.world.say("  %s: %s %s %s@%d%s%s %s", s.of.name, d.Watch, d.Type, d.Key, d.Revision, d.State, d.Reason, ids)
	state, _ := stream.ParseState(d.State)
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		if t.String() != d.Type {
			continue
		}
		i := slices.IndexFunc(s.follows, func(f *switchFollow) bool { return f.watch == d.Watch })
		s.follows[i].take(stream.Event{
			Type: t, Watch: d.Watch, Resource: stream.Resource{Key: d.Key, Revision: d.Revision, Value: d.Value},
			Reason: d.Reason, Revision: d.Revision, Count: d.Count, Resumed: d.Resumed, Skipped: d.Skipped,
			State: state, Since: d.Since,
		}, frame, ids)
		s.passed(s.follows[i], ids)
	}
}

// take processes one event, which came with ids or none.
func (f *switchFollow) take(e stream.Event, frame []byte, ids string) {
	if e.Type == stream.Reset {
		f.resets(&e, ids)
	}
	if f.conn == nil {
		if e.Type != stream.StatusChange {
			f.stream.broke("%v of %s is sent to a client with a position of something else", e.Type, f.watch)
		}
		return
	}
	if f.flush == nil {
		f.flush = f.newFlush()
	}
	f.flush.Events = append(f.flush.Events, e)
	f.flush.Head = max(f.flush.Head, e.Resource.Revision) // several flushes of the stream may share one id
	f.flush.Search(frame)
	f.state.Apply(e)
	if e.Type == stream.StatusChange && len(f.flush.Events) == 1 && ids == "" {
		f.put() // it may be alone
	}
}

// resets begins a connection to the part that a reset is of, if that is another one, or if everything
// was taken from the client. Other resets are due to the upstream.
func (f *switchFollow) resets(e *stream.Event, ids string) {
	w := f.stream.of.world
	w.serve()
	for text := range strings.SplitSeq(ids, ",") {
		position, _ := stream.ParsePosition(text)
		part := w.called(f.watch, position.Epoch)
		again := e.Reason == string(stream.ResetEpochChanged) && f.mark != nil && f.mark.Position.Epoch == position.Epoch
		if position.Watch != f.watch || part == nil || part == f.part && f.conn != nil && !again {
			continue
		}
		if f.part != nil && part != f.part {
			w.counts["switches"]++
		}
		f.connect(part, nil)
		e.Reason = string(stream.ResetInitial) // it is the first one of its connection
	}
}

// passed processes the ids that came with an event of a watch.
func (s *switchStream) passed(of *switchFollow, ids string) {
	if ids == "" {
		return
	}
	for text := range strings.SplitSeq(ids, ",") {
		position, err := stream.ParsePosition(text)
		i := slices.IndexFunc(s.follows, func(f *switchFollow) bool { return f.watch == position.Watch })
		if err != nil || i < 0 {
			s.broke("%q is no id: %v", text, err)
			continue
		}
		if f := s.follows[i]; f == of {
			f.arrives(position)
		} else {
			f.stays(position)
		}
	}
	for _, f := range s.follows {
		f.safe = f.state.Clone()
	}
	s.of.ids = append(s.of.ids, s.copies())
}

// copies returns what the client has now of each watch.
func (s *switchStream) copies() (out []*switchFollow) {
	for _, f := range s.follows {
		out = append(out, &switchFollow{watch: f.watch, part: f.part, mark: f.mark, state: f.safe, ahead: f.ahead})
	}
	return out
}

// arrives processes the id of the watch itself.
func (f *switchFollow) arrives(position stream.Position) {
	w := f.stream.of.world
	w.serve()
	part := w.called(f.watch, position.Epoch)
	if part == nil || part != f.part || f.conn == nil {
		f.stream.broke("the id %v is of %v without a reset, after %v", position, part, f.part)
		return
	}
	w.mayFollow(f, part)
	f.mark = &streamtest.Mark{Position: position, State: f.state.Clone()}
	f.from = nil
	if f.flush != nil {
		f.flush.Mark = f.mark
		f.put()
	}
}

// stays processes the position of the watch in the id of another one.
func (f *switchFollow) stays(position stream.Position) {
	switch {
	case f.mark == nil:
		f.stream.broke("the id of another watch has %v, and nothing was sent of it", position)
	case position == f.mark.Position:
	case f.conn == nil || position.Epoch != f.mark.Position.Epoch:
		f.stream.broke("the id of another watch has %v, want the old position %v", position, f.mark.Position)
	case !position.Partial():
		if f.flush == nil {
			f.flush = f.newFlush()
			f.flush.Events = []stream.Event{{Type: stream.Bookmark, Watch: f.watch, Revision: position.AsOf}}
		}
		f.mark = &streamtest.Mark{Position: position, State: f.state.Clone()}
		f.flush.Mark, f.from = f.mark, nil
		f.put()
	}
}

func (s *switchStream) broke(format string, args ...any) {
	w := s.of.world
	if len(w.broken) < 5 {
		w.broken = append(w.broken, fmt.Errorf("%s at %s: %w", s.of.name, s.at.name, fmt.Errorf(format, args...)))
	}
	w.say("BROKEN: %s: %s", s.of.name, fmt.Sprintf(format, args...))
}
