package streamtest

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// Subscriber is what a [Connection] reads from: a [watch.Watch] or a
// [log.Log].
type Subscriber interface {
	Subscribe(log.SubscribeOptions) *log.Subscription
	Snapshot() log.Snapshot
	Digested(digest.Digest) (*log.Digested, bool)
}

// reader is the live half of a Connection; nil in a handmade history.
type reader struct {
	history    *History
	source     Subscriber
	sub        *log.Subscription
	batch      log.Batch
	state      State
	lead       lead
	joined     bool // an event other than a status was received
	caughtUp   bool // it got an end_of_snapshot, or a reset
	sent       []sentValue
	switched   bool        // it took the place of another one
	switches   bool        // it has not been reset since
	moving     *windowMove // the subscriber still has another window; nil: it does not
	moved      uint64      // the number of the move with which it began, until the subscriber is told; 0: there is none
	gone       []left      // with that move
	difference bool        // it was sent the difference of two windows
	broken     []error     // impossible events, whatever the upstream did
	heads      []head      // of the replica, as far as Look has noted them
	forgets    bool        // of a remote subscriber: the replica may remember less than it seems
	repair     *repair     // nil: it does not resume by digest now, or has verified what it holds
	repaired   bool        // it was repaired, which took time
	behind     uint64      // of a remote subscriber: the revision of the replica when it connected; all that it receives may have been on its way since
}

// sentValue remembers bytes that must never change.
type sentValue struct {
	value []byte
	text  string
}

// Dial describes a connection to be made.
type Dial struct {
	Client, Replica string
	Slow            bool
	// From resumes after an id; nil: from nothing.
	From *Mark
	// Begin is the subscriber's state, if that differs from its state at From. Ahead
	// is the position of the replica that sent the difference.
	Begin State
	Ahead uint64
	// Mixed is that of the Connection.
	Mixed bool
	// OfView and MinRate are the fields of the Connection.
	OfView  bool
	MinRate int64
	// Verify means that the subscriber resumes by digest.
	Verify bool
	// Interval is the field of the Connection.
	Interval time.Duration
	// Forgets means that a remote replica may remember less than it seems.
	Forgets bool
}

// Connect subscribes, and records what happens from then on.
func (h *History) Connect(s Subscriber, d Dial) *Connection {
	c := h.newConnection(s, d)
	o := log.SubscribeOptions{MinRate: d.MinRate, Digest: true, Verify: d.Verify, Interval: d.Interval}
	if d.From != nil {
		o.Resume = c.overTheWire(d.From.Position)
	}
	c.sub = s.Subscribe(o)
	c.sub.Share()
	h.Add(c)
	return c
}

// newConnection returns a connection that has received nothing.
func (h *History) newConnection(s Subscriber, d Dial) *Connection {
	c := &Connection{
		Client: d.Client, Replica: d.Replica, Slow: d.Slow, MinRate: d.MinRate, Interval: d.Interval,
		From: d.From, Begin: d.Begin, Ahead: d.Ahead, Mixed: d.Mixed, OfView: d.OfView, Opened: time.Now(),
	}
	if d.From != nil {
		if c.Begin == nil {
			c.Begin = d.From.State
		}
		c.Mixed = c.Mixed || d.From.mixed || h.DeletesUnnumbered && d.From.Position.Partial()
	}
	c.history, c.source, c.window = h, s, h.Window
	c.state, c.lead = c.Begin.Clone(), c.firstLead()
	return c
}

// Switch ends the connection, and returns the one that its subscriber has from then on, to
// another part of the watch, whose history is h.
func (c *Connection) Switch(h *History, to Subscriber) *Connection {
	d := Dial{Client: c.Client, Replica: c.Replica, Slow: c.Slow, Interval: c.Interval}
	if _, placed := c.sub.Position(); !placed {
		c.Close()
		return h.Connect(to, d)
	}
	next := h.newConnection(to, d)
	next.switched, next.switches = true, true
	next.sub = to.Subscribe(log.SubscribeOptions{Former: c.sub})
	c.Close()
	h.Add(next)
	return next
}

// Switched reports whether the connection took the place of another one, from which something was
// received.
func (c *Connection) Switched() bool { return c.switched }

// checkSwitch checks one event between a switch and the reset: the subscriber still has the former
// part.
func (c *Connection) checkSwitch(e *stream.Event) {
	switch {
	case e.Type == stream.StatusChange:
	case e.Type != stream.Reset || e.Reason != string(stream.ResetEpochChanged):
		c.broke("%s after a switch, before a reset (epoch_changed)", describe(*e))
	default:
		c.switches = false
		e.Reason = string(stream.ResetInitial) // it is the first one of its history
	}
}

// Look notes the state of the replica: from then on there is something newer than older states
// of it. A revision that changes nothing is nothing newer: a view has many.
func (c *Connection) Look() {
	s := c.source.Snapshot()
	if n := len(c.heads); n == 0 || c.heads[n-1].tag != s.Tag() {
		c.heads = append(c.heads, head{s.Revision(), s.Tag(), time.Now()})
	}
}

// head is a state of a replica, and since when it had that.
type head struct {
	revision uint64
	tag      string
	at       time.Time
}

// Fork returns a connection that has received the same so far and goes on by itself, as that of
// a stream that a pump takes out of its group.
func (c *Connection) Fork(client string) *Connection {
	f := *c
	f.Client, f.state, f.batch = client, c.state.Clone(), log.Batch{}
	f.lead, f.Flushes, f.sent = maps.Clone(c.lead), slices.Clone(c.Flushes), slices.Clone(c.sent)
	f.broken, f.repair = nil, c.repair.fork()
	f.sub = log.CohortOf(c.sub).Fork()
	f.history.Add(&f)
	return &f
}

// overTheWire returns the position as a client sends it back.
func (c *Connection) overTheWire(p stream.Position) *stream.Position {
	back, err := stream.ParsePosition(p.String())
	if err != nil || back != p {
		c.broke("position %v is read back as %v (%v)", p, back, err)
	}
	return &back
}

// Step reads one flush. False: there was nothing to read, or the subscriber is repairing.
func (c *Connection) Step() bool { return c.step(c.sub.Next, -1) }

// Drain reads everything available, and returns the number of flushes.
func (c *Connection) Drain() int {
	n := 0
	for c.Step() || c.Repairing() && c.Repair(c.source) {
		n++
	}
	return n
}

// Beat acts as a pump at a heartbeat: it requests progress without data.
func (c *Connection) Beat() bool { return c.step(c.sub.Bookmark, -1) }

// CutAfter reads one flush, of which only n events and no id arrive, and closes the
// connection.
func (c *Connection) CutAfter(n int) bool {
	ok := c.step(c.sub.Next, n)
	c.Close()
	return ok
}

// Changed is closed when there may be more to read, after Step returned false.
func (c *Connection) Changed() <-chan struct{} { return c.sub.Changed() }

// Close ends the connection.
func (c *Connection) Close() {
	if c.Closed.IsZero() {
		c.Closed = time.Now()
		if c.repair != nil {
			c.abandon()
		}
		if c.sub != nil {
			c.sub.Close()
		}
	}
}

// Run reads as a pump does, at once and with a heartbeat, until ctx ends.
func (c *Connection) Run(ctx context.Context) {
	defer c.Close()
	for {
		c.Drain()
		wait := c.history.Heartbeat
		if d := c.sub.Deadline(); !d.IsZero() {
			wait = min(wait, time.Until(d))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.sub.Changed():
		case <-timer.C:
			if !c.Step() {
				c.Beat()
			}
		}
		timer.Stop()
	}
}

// State returns the subscriber's state. It must not be modified.
func (c *Connection) State() State { return c.state }

// Live reports whether the connection has not been closed.
func (c *Connection) Live() bool { return c.Closed.IsZero() }

// Synced reports whether the first end_of_snapshot has been received.
func (c *Connection) Synced() bool { return c.sub.Synced() }

// Outcome returns how the connection began. It is not known of a remote one.
func (c *Connection) Outcome() log.ResumeOutcome {
	if c.sub == nil {
		return log.OutcomePending
	}
	return c.sub.Outcome()
}

// Marks returns the ids received so far.
func (c *Connection) Marks() []*Mark {
	var out []*Mark
	for _, f := range c.Flushes {
		if f.Mark != nil {
			out = append(out, f.Mark)
		}
	}
	return out
}

// step reads one flush, of which only limit events arrive if limit is not
// negative.
func (c *Connection) step(next func(*log.Batch) bool, limit int) bool {
	if c.repair != nil {
		return false
	}
	if c.MinRate > 0 {
		c.Look() // the state that a flush may begin with
	}
	head := c.source.Snapshot().Revision()
	c.Read = time.Now()
	if !next(&c.batch) {
		return false
	}
	state := c.source.Snapshot()
	horizon, _ := state.Horizon()
	f := Flush{Order: c.history.nextOrder(), At: time.Now(), Horizon: horizon, Head: head, after: state.Revision(), bytes: c.batch.Bytes(), boundary: c.batch.Boundary()}
	if c.history.Hides {
		f.markers = c.searched()
	}
	for e := range c.batch.Events() {
		if len(f.Events) == limit {
			f.Cut = true
			break
		}
		f.Events = append(f.Events, e)
	}
	c.record(&f)
	return true
}

// record adds a flush.
func (c *Connection) record(f *Flush) {
	if c.history.Groups {
		f.withoutRevisions()
	}
	if c.moving != nil {
		c.arrive(f)
	}
	c.recordFrom(f, 0)
}

// recordFrom adds a flush of which only the events from the i-th on are to be applied.
func (c *Connection) recordFrom(f *Flush, i int) {
	for ; i < len(f.Events); i++ {
		if c.switches {
			c.checkSwitch(&f.Events[i])
		}
		if f.Events[i].Verify && !c.verify(f, i) {
			return // until it is repaired
		}
		c.receive(f, i)
	}
	switch {
	case !f.boundary || f.Cut:
	case c.moving != nil:
		c.broke("an id in the middle of move %d", c.moved)
	default:
		f.Mark = c.mark()
	}
	c.Flushes = append(c.Flushes, *f)
}

// searched returns the markers in the bytes of the flush, as they are sent in each format.
func (c *Connection) searched() []string {
	var id []byte
	if p, ok := c.sub.Position(); ok && c.batch.Boundary() {
		id = []byte(p.String())
	}
	sent := markersIn(slices.Concat(c.batch.Append(nil, frame.SSE, id)...))
	for e := range c.batch.Events() {
		if next, err := base64.RawURLEncoding.DecodeString(e.Next); err == nil {
			sent = append(sent, markersIn(next)...)
		}
	}
	return append(sent, markersIn(slices.Concat(c.batch.Append(nil, frame.NDJSON, id)...))...)
}

func (c *Connection) receive(f *Flush, i int) {
	f.apply(c.state, i)
	e := &f.Events[i]
	c.checkMoved(e)
	if got, known := c.state.digest(); e.Digest != "" && e.Digest != got && known && !c.Mixed && len(c.lead) == 0 { // it holds what its id says
		c.broke("%s: the digest is %s, that of what it holds %s", describe(*e), e.Digest, got)
	}
	c.lead = c.lead.told(e, !c.joined).after(e, !c.joined)
	c.joined = c.joined || e.Type != stream.StatusChange
	c.caughtUp = c.caughtUp || e.Type == stream.Reset || e.Type == stream.EndOfSnapshot
	c.remember(f, i)
}

// remember remembers the bytes of the i-th event, which must never change.
func (c *Connection) remember(f *Flush, i int) {
	if e := &f.Events[i]; e.Type == stream.Upsert && e.Resource.Value != nil { // what it has moved with was sent before
		c.sent = append(c.sent, sentValue{value: e.Resource.Value, text: f.version(i).Value})
	}
}

func (c *Connection) mark() *Mark {
	p, ok := c.sub.Position()
	if !ok {
		c.broke("a flush ends at a boundary, and there is no position")
		return nil
	}
	return c.markAt(p)
}

func (c *Connection) markAt(p stream.Position) *Mark {
	if !p.Partial() && (c.caughtUp || !c.repeats(p)) {
		c.lead = c.lead.passed(p.AsOf)
	}
	return &Mark{Position: p, State: c.state.Clone(), lead: c.lead, mixed: c.Mixed}
}

// repeats reports whether a position is the one that the connection resumed from, of
// any run.
func (c *Connection) repeats(p stream.Position) bool {
	if c.From == nil {
		return false
	}
	from := c.From.Position
	from.Run, p.Run = 0, 0
	return p == from
}

func (c *Connection) broke(format string, args ...any) {
	c.broken = append(c.broken, fmt.Errorf("%v: %w", c, fmt.Errorf(format, args...)))
}

// CheckBytes fails if bytes that were passed to the subscriber have changed since:
// the log must never overwrite what a reader may still hold.
func (c *Connection) CheckBytes() error {
	for _, s := range c.sent {
		if now := ValueText(s.value); now != s.text {
			return fmt.Errorf("%v: a value changed after it was sent: %q became %q", c, s.text, now)
		}
	}
	return nil
}

// Broken returns the events that it was sent and that are impossible, whatever the upstream did.
func (c *Connection) Broken() []error { return c.broken }
