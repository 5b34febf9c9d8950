package gateway

import (
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
)

// pump is the goroutine pump: it moves the bytes of one stream from the logs to one
// client, in its own goroutine. It writes everything there is, then flushes, then
// waits; nothing waits for it.
//
// Owned by that goroutine: the one of a solo, or the one in which net/http runs the
// handler.
type pump struct {
	conversation
	// Static after construction.
	gone <-chan struct{} // closed when the client left; nil: see far
	far  *farSide        // nil: see gone

	draining  <-chan struct{} // nil once noticed
	out       wire.Sender
	waiter    *waiter
	published *subscribers.PublishedProgress
	hungUp    bool // the client did, while nothing was written
}

func newPump(c conversation, out wire.Sender, gone <-chan struct{}) *pump {
	return &pump{
		conversation: c, gone: gone, draining: c.deps.admission.Draining, out: out,
		waiter:    newWaiter(gone, c.until, c.follows),
		published: subscribers.NewPublishedProgress(c.who, c.transport(), c.gzip, c.names()...),
	}
}

// stayWithNetHTTP runs a stream whose connection still belongs to net/http.
func (p *pump) stayWithNetHTTP(r *http.Request, out *wire.Writer) {
	out.EndBy(func() time.Time {
		p.mustLeave(time.Now())
		return p.overdueAt()
	})
	if conn, accepted := netconn.ConnOfRequest(r); accepted && r.ProtoMajor == 1 {
		if c := netconn.Of(conn); c != nil {
			c.Overdue = p.isOverdue
			defer func() { c.Overdue = nil }()
		}
	}
	p.waiter.input = netconn.InputEnded(r.Context())
	p.waiter.listen = func() bool {
		p.waiter.input = nil // it stays closed forever
		p.breakSilence()
		return true
	}
	p.run()
}

// run serves the stream until its client leaves, does not read, or is sent away.
func (p *pump) run() {
	p.deps.metrics.StreamOpened(p.transport())
	defer p.end()
	p.show()
	p.deps.subscribers.Add(p.published)

	p.hello(p.out)
	p.flush()
	for p.out.Failure() == nil {
		p.drain()
		now := time.Now()
		if reason := p.reasonToEnd(now); reason != "" {
			p.leave(reason)
			return
		}
		if p.out.Failure() != nil {
			return
		}
		if !p.wait(now) {
			p.hungUp = true
			return
		}
	}
}

func (p *pump) end() {
	p.waiter.close()
	p.show()
	why := p.reasonEnded()
	p.deps.subscribers.Remove(p.published, why)
	p.close(p.out.Sent(), why == subscribers.LeftUnread, p.out.Failure())
}

// reasonEnded returns why the stream ended.
func (p *pump) reasonEnded() subscribers.DepartureReason {
	late := p.overdue(time.Now())
	switch {
	case late != "" && p.out.Failure() != nil:
		return subscribers.DepartureReason(late)
	case p.out.TimedOut():
		return subscribers.LeftUnread
	case p.out.Failure() != nil || p.hungUp:
		return subscribers.LeftByItself
	case p.farewell != "":
		return subscribers.DepartureReason(p.farewell)
	}
	return subscribers.LeftByAccident
}

// left reports whether the client is no longer there.
func (p *pump) left() bool {
	return closed(p.gone) || p.far != nil && p.far.gone.Load()
}

// isOverdue reports whether the stream must be cut off, see overdue.
func (p *pump) isOverdue() bool { return p.overdue(time.Now()) != "" }

// drain writes everything there is, in turns of one batch for each watch, then
// flushes. It stops early if the stream must end.
func (p *pump) drain() {
	wrote := false
	for p.turn(p.out) {
		wrote = true
		p.show() // the next turn may take long with a slow client
		if p.out.Failure() != nil || p.left() || p.reasonToEnd(time.Now()) != "" {
			break
		}
	}
	if p.bookmarks(time.Now(), p.out) || wrote {
		p.flush()
	}
}

// flush sends what was written, and begins a new silence.
func (p *pump) flush() {
	p.out.Flush()
	p.flushed(time.Now(), p.out.Sent(), p.out.Failure())
	p.show()
}

// show publishes how far the stream is.
func (p *pump) show() {
	d := p.delivered
	d.Bytes += uint64(p.out.Sent() - p.counted)
	p.published.Show(d, func(i int) log.Progress { return p.follows[i].sub.Progress() })
}

// leave ends the stream deliberately.
func (p *pump) leave(reason stream.GoodbyeReason) {
	p.goodbye(reason, p.out)
	p.out.End()
	if p.out.Failure() == nil {
		p.saidGoodbye()
	}
}

// wait returns when there may be something to do. It returns false if the client
// left.
func (p *pump) wait(now time.Time) bool {
	if !now.Before(p.heartbeatAt()) {
		p.put(p.framing.Heartbeat(), p.out)
		p.flush()
	}
	if p.drains {
		p.draining = nil
	}
	return p.waiter.wait(p.draining, p.wakeAt())
}
