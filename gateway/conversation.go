package gateway

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/deflate"
	"github.com/watchtide/watchtide/gateway/internal/snapshots"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// conversation is everything that is said on one stream, regardless of what carries
// the bytes: hello, the events of its watches, bookmarks, heartbeats, goodbye. It
// never waits.
//
// Owned by one pump.
type conversation struct {
	// Static after construction.
	deps    *deps
	framing wire.Framing
	until   bool
	retry   time.Duration
	began   time.Time
	tooOld  time.Time // zero: never
	watches []watchChoice
	guest   admission.Ref        // under which the stream was admitted; unset for a group's own
	who     subscribers.Identity // identity of the stream; unset for a group's own
	gzip    bool                 // the stream is sent in gzip

	zipper  *zipper // nil: the bytes are sent as they are, or compressed by the outlet
	follows []follow
	lease   snapshots.Lease // permission to read much
	stands  int             // number of streams it speaks for
	turns   bool            // others share its goroutine: a turn also ends if it finds nothing

	// Reused from flush to flush.
	batch  log.Batch
	slices [][]byte
	id     []byte

	quietSince time.Time             // of the last flush
	drains     bool                  // it was noticed that the gateway drains
	leaveAt    time.Time             // zero: the gateway does not drain
	farewell   stream.GoodbyeReason  // "": not said
	committed  time.Time             // of the oldest change said but not yet flushed
	counted    int                   // bytes already reported to the metrics
	delivered  subscribers.Delivered // to one stream
}

func (d *deps) newConversation(req streamRequest, watches []*watch.Watch) conversation {
	now := time.Now()
	c := conversation{
		deps: d, framing: req.format.Framing(), until: req.until, watches: req.watches,
		gzip: req.gzip, retry: d.retryHint(), began: now, quietSince: now, stands: 1,
	}
	c.zipper = c.newZipper(deflate.Sum{})
	if age := d.drawMaxAge(); age > 0 {
		c.tooOld = now.Add(age)
	}
	for i, watch := range watches {
		c.follows = append(c.follows, d.follow(watch, req.watches[i]))
	}
	c.lease = snapshots.NewLease(d.snapshots)
	return c
}

func (c *conversation) transport() string { return c.framing.Transport() }

// hello says hello before anything that may wait. Then the watches that are not in
// sync say so, before the snapshot of another watch begins.
func (c *conversation) hello(out wire.Outlet) {
	hellos := make([]log.HelloWatch, 0, len(c.watches))
	for _, w := range c.watches {
		hellos = append(hellos, log.HelloWatch{Watch: w.name, Resume: w.resume != nil})
	}
	if c.gzip {
		out.Write([]byte(deflate.Head))
	}
	data := log.AppendHello(nil, c.deps.instance, c.deps.heartbeat, hellos)
	head := c.framing.AppendRetry(nil, c.retry)
	c.put(c.framing.AppendData(head, stream.Hello, data), out)
	c.deps.metrics.EventsOut(c.transport(), stream.Hello, 1)
	c.delivered.Events++
	for i := range c.follows {
		f := &c.follows[i]
		if f.watch.Status().State != stream.InSync && f.sub.Tell(&c.batch) {
			c.say(f, out)
		}
	}
}

// turn says one batch of each watch that has one.
func (c *conversation) turn(out wire.Outlet) bool {
	said := false
	for i := range c.follows {
		said = c.turnOf(i, out) || said
	}
	return said
}

func (c *conversation) turnOf(i int, out wire.Outlet) bool {
	f := &c.follows[i]
	if c.until && f.sub.Synced() {
		return false // its part of this response is complete
	}
	c.check(f)
	if !c.next(f) {
		return false
	}
	c.lease.Moved()
	c.share(i)
	c.say(f, out)
	return true
}

// next fills the batch with the next flush of a watch. It returns false if there is
// nothing now.
func (c *conversation) next(f *follow) bool {
	if !c.turns {
		return f.sub.Next(&c.batch)
	}
	if f.sub.NextTurn(&c.batch) {
		return true
	}
	if f.sub.Busy() {
		c.lease.Moved() // the client is not to blame
	}
	return false
}

// share tells the other watches that the connection also carries the batch of one.
func (c *conversation) share(of int) {
	for i := range c.follows {
		if i != of {
			c.follows[i].sub.Moved(c.batch.Bytes())
		}
	}
}

// busy reports whether a watch has more to look at, although it had nothing to say.
func (c *conversation) busy() bool {
	for i := range c.follows {
		if c.follows[i].sub.Busy() {
			return true
		}
	}
	return false
}

// check makes a watch with much to read wait for the stream's turn.
func (c *conversation) check(f *follow) {
	if !c.lease.Check(f.sub) && c.lease.Asks() && !c.hasMuch() {
		c.lease.Release()
	}
	f.granted = c.lease.Granted
}

// hasMuch reports whether a lease is still needed.
func (c *conversation) hasMuch() bool {
	for i := range c.follows {
		if snapshots.IsMuch(c.follows[i].sub) {
			return true
		}
	}
	return false
}

// bookmarks tells clients their position in watches that were quiet for a heartbeat,
// or whose changes all lie outside the prefix.
func (c *conversation) bookmarks(now time.Time, out wire.Outlet) bool {
	said := false
	for i := range c.follows {
		f := &c.follows[i]
		if now.Sub(f.quietSince) >= c.deps.heartbeat && f.sub.Bookmark(&c.batch) {
			c.say(f, out)
			said = true
		}
	}
	return said
}

// say writes the batch of one watch, with the id of the whole stream if the batch
// ends where the client may resume.
func (c *conversation) say(f *follow, out wire.Outlet) {
	f.quietSince = time.Now()
	c.id = c.id[:0]
	if c.batch.Boundary() {
		c.id = appendPositions(c.id, c.follows)
	}
	c.slices = c.framing.AppendBatch(c.slices[:0], &c.batch, c.id)
	if c.zipper != nil {
		c.zipper.batch(&c.batch, c.slices, out)
	} else {
		for _, s := range c.slices {
			out.Write(s)
		}
	}
	clear(c.slices) // they alias the log: a waiting stream must not hold it
	c.batch.Release()
	c.countBatch(f)
}

// put writes bytes that are in no log.
func (c *conversation) put(p []byte, out wire.Outlet) {
	if c.zipper != nil {
		c.zipper.own(p, out)
		return
	}
	out.Write(p)
}

// flushed is called after a flush of everything said so far, bytes in total, and
// begins a new silence.
func (c *conversation) flushed(now time.Time, bytes int, err error) {
	c.quietSince = now
	c.countBytes(bytes)
	if !c.committed.IsZero() && err == nil {
		c.deps.metrics.CommitToWrite(now.Sub(c.committed))
	}
	c.committed = time.Time{}
}

// reasonToEnd returns why the server must end the stream now, or "".
func (c *conversation) reasonToEnd(now time.Time) stream.GoodbyeReason {
	switch {
	case c.until && c.synced():
		return stream.GoodbyeComplete
	case c.removed():
		return stream.GoodbyeWatchRemoved
	case c.mustLeave(now):
		return stream.GoodbyeDraining
	case !c.tooOld.IsZero() && !now.Before(c.tooOld):
		return stream.GoodbyeMaxAge
	}
	return ""
}

func (c *conversation) synced() bool {
	for i := range c.follows {
		if !c.follows[i].sub.Synced() {
			return false
		}
	}
	return true
}

func (c *conversation) removed() bool {
	for i := range c.follows {
		if closed(c.follows[i].watch.Done()) {
			return true
		}
	}
	return false
}

// mustLeave reports whether it is this stream's turn to leave a draining gateway. The
// turn is drawn when the drain is noticed.
func (c *conversation) mustLeave(now time.Time) bool {
	if !c.drains && c.deps.admission.IsDraining() {
		c.drains = true
		c.leaveAt = now.Add(c.deps.admission.GoodbyeDelay())
	}
	return !c.leaveAt.IsZero() && !now.Before(c.leaveAt)
}

// farewellPatience is how long a stream that must end may take to say goodbye. After
// that it is cut off: a client that does not read must not stay for that.
const farewellPatience = 2 * time.Second

// overdue returns why the stream must be cut off now although its client takes no
// bytes, or "" if it need not be.
func (c *conversation) overdue(now time.Time) stream.GoodbyeReason {
	before := now.Add(-farewellPatience)
	switch {
	case c.mustLeave(now) && !before.Before(c.leaveAt):
		return stream.GoodbyeDraining
	case !c.tooOld.IsZero() && !before.Before(c.tooOld):
		return stream.GoodbyeMaxAge
	}
	return ""
}

// overdueAt returns when the stream must be cut off; zero: never.
func (c *conversation) overdueAt() time.Time {
	at := earlier(c.tooOld, c.leaveAt)
	if at.IsZero() {
		return at
	}
	return at.Add(farewellPatience)
}

// breakSilence makes the stream say something now.
func (c *conversation) breakSilence() { c.quietSince = time.Time{} }

// goodbye ends the stream deliberately.
func (c *conversation) goodbye(reason stream.GoodbyeReason, out wire.Outlet) {
	c.farewell = reason
	c.put(wire.AppendGoodbye(nil, c.framing, reason, c.retry), out)
	if c.zipper != nil {
		c.zipper.end(out)
	}
}

// saidGoodbye counts a goodbye that was sent.
func (c *conversation) saidGoodbye() {
	c.deps.metrics.EventsOut(c.transport(), stream.Goodbye, 1)
	c.delivered.Events++
	c.deps.metrics.Goodbye(c.transport(), c.farewell)
}

// heartbeatAt returns when the silence must be broken.
func (c *conversation) heartbeatAt() time.Time { return c.quietSince.Add(c.deps.heartbeat) }

// wakeAt returns the earliest time at which something is due.
func (c *conversation) wakeAt() time.Time {
	at := earlier(earlier(c.heartbeatAt(), c.tooOld), c.leaveAt)
	for i := range c.follows {
		at = earlier(at, c.follows[i].sub.Deadline())
	}
	return at
}

// names returns the names of its watches.
func (c *conversation) names() []string {
	names := make([]string, len(c.watches))
	for i := range c.watches {
		names[i] = c.watches[i].name
	}
	return names
}

// describe returns the stream's entry in the list, without its identity.
func (c *conversation) describe(d subscribers.Delivered) subscribers.Subscriber {
	out := subscribers.Subscriber{Transport: c.transport(), Encoding: subscribers.EncodingName(c.gzip)}
	out.Count(d)
	for i := range c.follows {
		out.Follow(c.follows[i].watch.Name(), c.follows[i].sub.Progress())
	}
	return out
}

// lag returns how many changes of its watches the stream has not been told yet.
func (c *conversation) lag() (lag uint64) {
	for i := range c.follows {
		lag += c.follows[i].sub.Progress().Lag()
	}
	return lag
}

// fork returns a conversation at the same position; c must be at rest. The fork has
// no zipper.
func (c *conversation) fork() conversation {
	f := *c
	f.follows = slices.Clone(c.follows)
	for i := range f.follows {
		f.follows[i].sub = c.follows[i].sub.Fork()
	}
	f.batch, f.slices, f.id, f.zipper = log.Batch{}, nil, nil, nil
	f.lease = snapshots.NewLease(c.deps.snapshots)
	f.stands, f.counted, f.committed = 1, 0, time.Time{}
	f.tooOld, f.leaveAt, f.drains = time.Time{}, time.Time{}, false
	return f
}

// release frees what the conversation held; another one continues.
func (c *conversation) release() {
	c.lease.Release()
	for i := range c.follows {
		c.follows[i].sub.Close()
	}
}

// close frees what the conversation held, and counts what can only be counted at its
// end.
func (c *conversation) close(bytes int, timedOut bool, err error) {
	c.release()
	c.countBytes(bytes)
	c.deps.metrics.StreamClosed(c.transport())
	if timedOut {
		c.deps.metrics.WriteTimeout(c.transport())
	}
	c.deps.log.Debug("stream ended", "transport", c.transport(), "watches", len(c.follows),
		"age", time.Since(c.began), "bytes", bytes, "goodbye", c.farewell, "error", err)
}

// earlier returns the earlier of two times; the zero time means never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// closed reports whether a channel on which nothing is sent is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
