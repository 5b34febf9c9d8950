package histories

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	goclient "github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// wire is a client beyond a network. It follows one or two watches with a stream, or one with
// long polls. It applies events when an id arrives, and drops those without one when its
// connection ends.
type wire struct {
	world   *world
	name    string
	polls   bool
	link    *link
	follows []*follow

	at     *node
	answer *answer // nil: there is no request
	slides         // of its window
}

// follow is what a wire client has of one watch.
type follow struct {
	part    *part
	last    *streamtest.Mark       // its last id
	conn    *streamtest.Connection // nil: there was none yet
	pending []stream.Event         // since the last id
	at      time.Time              // when the last of them came
	replica *goclient.Replica[goclient.Resource]
	held    []goclient.Event // by the client, like pending
}

// watchName is the name of the watch of the part.
func (p *part) watchName() string {
	if p.beside {
		return "x"
	}
	return "w"
}

// query adds what narrows the watch. In a stream of several watches the names of parameters end with that of the watch.
func (p *part) query(q url.Values, several bool) {
	suffix := ""
	if several {
		suffix = "." + p.watchName()
	}
	for name, text := range map[string]string{
		"prefix": p.params.Prefix, "filter": p.params.Filter, "fields": strings.Join(p.params.Fields, ","),
		"order": p.params.Order, "limit": p.params.Limit, "offset": p.params.Offset, "after": p.params.After,
	} {
		if text != "" {
			q.Set(name+suffix, text)
		}
	}
}

func (c *wire) up() bool { return c.answer != nil }

// dial sends a request to a node, which continues from the last ids.
func (c *wire) dial(n *node) error {
	if err := n.reachable(); err != nil {
		return err
	}
	c.at = n
	c.comeBack()
	c.link.set(func() { c.link.targets = []*node{n} })
	q := url.Values{}
	var ids []string
	for _, f := range c.follows {
		q.Add("watch", f.part.watchName())
		if f.last != nil {
			ids = append(ids, f.last.Position.String())
		}
		if f.part.definition != nil && !n.narrow || f.part.within != nil {
			f.part.query(q, len(c.follows) > 1)
		}
	}
	path, from := "/v1/events", strings.Join(ids, ",")
	if c.polls {
		path = "/v1/watches/" + q.Get("watch") + "/changes"
		q.Del("watch")
		q.Set("wait", "20s")
		if from != "" {
			q.Set("after", from)
		}
	}
	for _, f := range c.follows {
		f.begin(c, n)
	}
	header := map[string]string{"Accept": "application/x-ndjson"}
	if from != "" && !c.polls {
		header["Last-Event-ID"] = from
	}
	c.answer = ask("http://"+c.link.host+path+"?"+q.Encode(), header)
	return nil
}

// begin begins another connection.
func (f *follow) begin(c *wire, n *node) {
	f.end()
	f.conn = f.part.history.Remote(n.serving(f.part), streamtest.Dial{
		Client: c.name, Replica: n.replica(), Slow: true, From: f.last, Mixed: n.mixed(), OfView: n.narrow,
		Forgets: f.part.definition != nil,
	})
}

// end ends the connection, without what came after the last id.
func (f *follow) end() {
	f.pending = nil
	f.held = nil
	if f.conn != nil {
		f.conn.Close()
	}
}

// hangUp ends the connection, of which everything is read that has arrived.
func (c *wire) hangUp() {
	if !c.up() {
		return
	}
	c.answer.cancel()
	c.answer = nil
	c.link.cut()
	c.endSlide()
	for _, f := range c.follows {
		if len(c.to) == 0 || f.part.sorting == nil { // what is of a move is of no use
			f.cutOff()
		}
		f.end()
	}
}

// cutOff adds what came after the last id.
func (f *follow) cutOff() {
	if len(f.pending) > 0 {
		f.conn.Receive(streamtest.Received{At: f.at, Events: f.pending})
	}
}

// collect reads what has arrived.
func (c *wire) collect() error {
	if !c.up() {
		return nil
	}
	if c.polls {
		return c.collectPoll()
	}
	if waits, err := c.slid(); waits || err != nil {
		return err
	}
	lines, status, ended := c.answer.take()
	for _, l := range lines {
		if status != 200 {
			break
		}
		if err := c.receive(l); err != nil {
			return fmt.Errorf("%s at %s: %q: %w", c.name, c.at.name, l.text, err)
		}
	}
	if ended != nil {
		c.hangUp()
	}
	return nil
}

// wireEvent is a line of a stream, or an event of the answer to a long poll.
type wireEvent struct {
	goclient.Event
	ID      string `json:"id"` // of a position
	Skipped uint64 `json:"skipped"`
	Total   *int   `json:"total"`
}

func (c *wire) receive(l line) error {
	var e wireEvent
	if err := json.Unmarshal(l.text, &e); err != nil {
		return err
	}
	switch e.Type {
	case "hello":
		c.stream = e.Stream
		for _, f := range c.follows {
			_ = f.replica.Apply(e.Event)
		}
	case "position":
		return c.position(e.ID)
	case "goodbye", "heartbeat":
	default:
		for _, f := range c.follows {
			if f.part.watchName() == e.Watch {
				return f.take(e, l.at)
			}
		}
		return fmt.Errorf("an event of another watch")
	}
	return nil
}

// take keeps an event until there is an id.
func (f *follow) take(e wireEvent, at time.Time) error {
	of, err := e.event()
	if err != nil {
		return err
	}
	f.pending, f.at = append(f.pending, of), at
	f.held = append(f.held, e.Event)
	return nil
}

// position applies what came before an id of the stream.
func (c *wire) position(id string) error {
	positions, err := stream.ParsePositions(id)
	if err != nil {
		return err
	}
	for _, f := range c.follows {
		for i, e := range f.held {
			if i == len(f.held)-1 {
				e.ID = id
			}
			_ = f.replica.Apply(e)
		}
		f.held = nil
		i := slices.IndexFunc(positions, func(p stream.Position) bool { return p.Watch == f.part.watchName() })
		if i >= 0 && (len(f.pending) > 0 || f.last == nil || f.last.Position != positions[i]) {
			f.receive(c, positions[i], true)
		}
	}
	return nil
}

// receive adds what came up to an id.
func (f *follow) receive(c *wire, p stream.Position, says bool) {
	if says {
		c.arrive(f, p)
	}
	r := streamtest.Received{At: f.at, Events: f.pending, Position: &p}
	if says {
		r.Consistent = !f.replica.Progress().Pending
	}
	if r.Consistent {
		r.Revision, _ = strconv.ParseUint(f.replica.Revision(), 10, 64)
	}
	if len(f.pending) == 0 {
		r.At = time.Now()
	}
	f.pending = nil
	// What comes before a reset may be of another order than the id.
	for i, e := range r.Events {
		if e.Type == stream.Reset && i > 0 && !f.conn.Moving() {
			f.conn.Receive(streamtest.Received{At: f.at, Events: r.Events[:i:i], More: true})
			r.Events = r.Events[i:]
			break
		}
	}
	f.conn.Mixed = f.conn.Mixed || c.at.mixed()
	f.conn.Receive(r)
	marks := f.conn.Marks()
	f.last = marks[len(marks)-1]
	f.part.give(f.last)
}

// collectPoll reads the answer to a long poll, and sends the next one.
func (c *wire) collectPoll() error {
	if !c.answer.over() {
		return nil
	}
	lines, status, ended := c.answer.take()
	f := c.follows[0]
	c.answer = nil
	if status == 200 && ended == io.EOF {
		if err := c.answered(f, lines); err != nil {
			return fmt.Errorf("%s at %s: an answer: %w", c.name, c.at.name, err)
		}
	}
	if c.at.listener.Load() == nil {
		f.end()
		return nil
	}
	return c.dial(c.at)
}

// answered adds the answer to a long poll.
func (c *wire) answered(f *follow, lines []line) error {
	var of struct {
		Events   []wireEvent `json:"events"`
		Position string      `json:"position"`
	}
	text := []byte(nil)
	for _, l := range lines {
		text = append(text, l.text...)
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	p, err := stream.ParsePosition(of.Position)
	if err != nil {
		return err
	}
	for _, e := range of.Events {
		if err := f.take(e, time.Now()); err != nil {
			return err
		}
	}
	f.held = nil
	f.receive(c, p, false)
	return nil
}

// eventTypes are the types of events by their names.
var eventTypes = func() map[string]stream.EventType {
	out := map[string]stream.EventType{}
	for t := stream.Hello; t <= stream.Goodbye; t++ {
		out[t.String()] = t
	}
	return out
}()

// event is the event as the log has it.
func (e *wireEvent) event() (stream.Event, error) {
	out := stream.Event{
		Type: eventTypes[string(e.Type)], Watch: e.Watch, Reason: string(e.Reason), Since: e.Since,
		Count: e.Count, Resumed: e.Resumed, Skipped: e.Skipped,
		Move: e.Move, Digest: e.Digest, Window: e.Total != nil, Before: e.Before, Next: e.Next, Left: e.Left,
	}
	if e.Total != nil {
		out.Total = *e.Total
	}
	var err error
	number := func(text string) (n uint64) {
		if text != "" && err == nil {
			n, err = strconv.ParseUint(text, 10, 64)
		}
		return n
	}
	out.Horizon, out.Conflated = number(e.Horizon), number(e.Conflated)
	revision := number(e.Revision)
	switch out.Type {
	case stream.Upsert, stream.Delete:
		out.Resource = stream.Resource{Key: e.Key, Revision: revision, Value: []byte(e.Value)}
	default:
		out.Revision = revision
	}
	if e.Type == "status" {
		i := slices.IndexFunc(states, func(s stream.State) bool { return s.String() == string(e.State) })
		if i < 0 {
			return out, fmt.Errorf("no state is called %q", e.State)
		}
		out.State = states[i]
	}
	return out, err
}

var states = []stream.State{stream.InSync, stream.Stale, stream.Resyncing, stream.CatchingUp, stream.Priming}
