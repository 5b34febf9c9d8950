package gateway

import (
	"net/http"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// pump is the goroutine pump: it moves the bytes of one stream from the logs to
// one client, in the goroutine that net/http runs the handler in. It writes
// everything there is, then flushes, then waits; nobody waits for it.
//
// Owned by that goroutine.
type pump struct {
	// Static after construction.
	g        *Gateway
	framing  framing
	until    bool
	retry    time.Duration
	began    time.Time
	tooOld   time.Time // zero: never
	gone     <-chan struct{}
	draining <-chan struct{} // nil once noticed
	watches  []watchChoice

	out     *writer
	follows []follow
	waiter  *waiter

	// Reused from flush to flush.
	batch  stream.Batch
	slices [][]byte
	id     []byte

	quietSince time.Time            // of the last flush
	leaveAt    time.Time            // zero: the gateway does not drain
	farewell   stream.GoodbyeReason // "": none was said
	committed  time.Time            // of the oldest change written and not yet flushed
	counted    int                  // bytes given to the metrics so far
}

func (g *Gateway) newPump(w http.ResponseWriter, r *http.Request, req streamRequest, watches []*stream.Watch) *pump {
	now := time.Now()
	p := &pump{
		g: g, framing: req.format.framing(), until: req.until, watches: req.watches,
		retry: g.retryHint(), began: now, quietSince: now,
		gone: r.Context().Done(), draining: g.admission.draining,
		out: newWriter(w, r, g.cfg.WriteTimeout),
	}
	if age := g.maxAge(); age > 0 {
		p.tooOld = now.Add(age)
	}
	setStreamHeaders(w.Header(), p.framing)
	for i, watch := range watches {
		p.follows = append(p.follows, g.follow(watch, req.watches[i]))
	}
	p.waiter = newWaiter(p.gone, p.until, p.follows)
	return p
}

// run serves the stream until its client leaves, does not read, or is sent away.
func (p *pump) run() {
	transport := p.framing.transport()
	p.g.metrics.streamOpened(transport)
	defer p.close()

	p.hello()
	for p.out.err == nil {
		p.drain()
		now := time.Now()
		if reason := p.reasonToEnd(now); reason != "" {
			p.goodbye(reason)
			return
		}
		if p.out.err != nil || !p.wait(now) {
			return
		}
	}
}

// close gives back what the stream held, and counts what can only be counted at
// its end.
func (p *pump) close() {
	transport := p.framing.transport()
	p.waiter.close()
	for i := range p.follows {
		p.follows[i].sub.Close()
	}
	p.countBytes()
	p.g.metrics.streamClosed(transport)
	if p.out.timedOut() {
		p.g.metrics.writeTimeout(transport)
	}
	p.g.log.Debug("stream ended", "transport", transport, "watches", len(p.follows),
		"age", time.Since(p.began), "bytes", p.out.bytes, "goodbye", p.farewell, "error", p.out.err)
}

// hello leaves before anything is waited for.
func (p *pump) hello() {
	hellos := make([]stream.HelloWatch, 0, len(p.watches))
	for _, w := range p.watches {
		hellos = append(hellos, stream.HelloWatch{Watch: w.name, Resume: w.resume != nil})
	}
	data := stream.AppendHello(nil, p.g.cfg.Heartbeat, hellos)
	head := p.framing.appendRetry(nil, p.retry)
	p.out.write(p.framing.appendData(head, stream.Hello, data))
	p.g.metrics.eventsOut(p.framing.transport(), stream.Hello, 1)
	p.warn()
	p.flush()
}

// warn lets the watches that are not in sync say so, before the snapshot of
// another one begins.
func (p *pump) warn() {
	for i := range p.follows {
		f := &p.follows[i]
		if f.watch.Status().State != stream.InSync && f.sub.Next(&p.batch) {
			p.writeBatch(f)
		}
	}
}

// drain writes everything there is, in turns of one batch for each watch, then
// flushes. It stops early when the stream must end.
func (p *pump) drain() {
	wrote := false
	for p.turn() {
		wrote = true
		if p.out.err != nil || closed(p.gone) || p.reasonToEnd(time.Now()) != "" {
			break
		}
	}
	if p.bookmarks(time.Now()) || wrote {
		p.flush()
	}
}

// turn writes one batch of each watch that has one.
func (p *pump) turn() bool {
	wrote := false
	for i := range p.follows {
		f := &p.follows[i]
		if p.until && f.sub.Synced() {
			continue // its part of this response is complete
		}
		if f.sub.Next(&p.batch) {
			p.writeBatch(f)
			wrote = true
		}
	}
	return wrote
}

// bookmarks tells clients of watches that were quiet for a heartbeat, or whose
// changes all lie outside of the prefix, how far they are.
func (p *pump) bookmarks(now time.Time) bool {
	wrote := false
	for i := range p.follows {
		f := &p.follows[i]
		if now.Sub(f.quietSince) >= p.g.cfg.Heartbeat && f.sub.Bookmark(&p.batch) {
			p.writeBatch(f)
			wrote = true
		}
	}
	return wrote
}

// writeBatch writes the batch of one watch, with the id of the whole stream if
// the batch ends where the client may resume.
func (p *pump) writeBatch(f *follow) {
	f.quietSince = time.Now()
	p.id = p.id[:0]
	if p.batch.Boundary() {
		p.id = appendPositions(p.id, p.follows)
	}
	p.slices = p.framing.appendBatch(p.slices[:0], &p.batch, p.id)
	for _, s := range p.slices {
		p.out.write(s)
	}
	clear(p.slices) // they alias the log: a waiting stream must not hold it
	p.countBatch(f)
}

// flush sends what was written, and begins a new silence.
func (p *pump) flush() {
	p.out.flush()
	p.quietSince = time.Now()
	p.countBytes()
	if !p.committed.IsZero() && p.out.err == nil {
		p.g.metrics.commitToWrite(p.quietSince.Sub(p.committed))
	}
	p.committed = time.Time{}
}

// reasonToEnd says why the server must end the stream now; "" not at all.
func (p *pump) reasonToEnd(now time.Time) stream.GoodbyeReason {
	switch {
	case p.until && p.synced():
		return stream.GoodbyeComplete
	case p.removed():
		return stream.GoodbyeWatchRemoved
	case p.mustLeave(now):
		return stream.GoodbyeDraining
	case !p.tooOld.IsZero() && !now.Before(p.tooOld):
		return stream.GoodbyeMaxAge
	}
	return ""
}

func (p *pump) synced() bool {
	for i := range p.follows {
		if !p.follows[i].sub.Synced() {
			return false
		}
	}
	return true
}

func (p *pump) removed() bool {
	for i := range p.follows {
		if closed(p.follows[i].watch.Done()) {
			return true
		}
	}
	return false
}

// mustLeave says whether it is this stream's turn to leave a gateway that
// drains. The turn is drawn when the drain is noticed.
func (p *pump) mustLeave(now time.Time) bool {
	if p.draining != nil && closed(p.draining) {
		p.draining = nil
		p.leaveAt = now.Add(p.g.admission.goodbyeDelay())
	}
	return !p.leaveAt.IsZero() && !now.Before(p.leaveAt)
}

// goodbye ends the stream on purpose.
func (p *pump) goodbye(reason stream.GoodbyeReason) {
	p.farewell = reason
	p.out.write(appendGoodbye(nil, p.framing, reason, p.retry))
	p.out.end()
	if p.out.err == nil {
		p.g.metrics.eventsOut(p.framing.transport(), stream.Goodbye, 1)
		p.g.metrics.goodbye(p.framing.transport(), reason)
	}
}

// wait returns when there may be something to do; false: the client left.
func (p *pump) wait(now time.Time) bool {
	silent := p.quietSince.Add(p.g.cfg.Heartbeat)
	if !now.Before(silent) {
		p.out.write(p.framing.heartbeat())
		p.flush()
		silent = p.quietSince.Add(p.g.cfg.Heartbeat)
	}
	return p.waiter.wait(p.draining, p.wakeAt(silent))
}

// wakeAt returns the earliest time at which something is due.
func (p *pump) wakeAt(silent time.Time) time.Time {
	at := earlier(earlier(silent, p.tooOld), p.leaveAt)
	for i := range p.follows {
		at = earlier(at, p.follows[i].sub.Deadline())
	}
	return at
}

// earlier returns the earlier of two times; the zero time is never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// closed says whether a channel that nothing is sent on is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
