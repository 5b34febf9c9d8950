package session

import (
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// pump is the goroutine pump: it copies the bytes of one stream from the logs to one
// client, in its own goroutine. It writes everything there is, then flushes, then
// waits; nothing waits for it.
//
// Owned by that goroutine: the one of a hijacked stream, or the one in which net/http
// runs the handler.
type pump struct {
	Session
	// Static after construction.
	gone <-chan struct{} // closed when the client disconnected; nil: see far
	far  *epoll.FarSide  // nil: see gone

	draining  <-chan struct{} // nil once noticed
	out       wire.Sender
	text      Text
	waiter    *waiter
	published *introspection.PublishedProgress
	hungUp    bool // the client ended its side, while nothing was written
}

func newPump(c Session, out wire.Sender, gone <-chan struct{}) *pump {
	return &pump{
		text:    NewText(&c, out, wire.Sum{}),
		Session: c, gone: gone, draining: c.Deps.Admission.Draining, out: out,
		waiter:    newWaiter(gone, c.Pass, c.Until, c.Follows),
		published: introspection.NewPublishedProgress(c.Identity, c.Transport(), c.Gzip, c.Followed()...),
	}
}

// Run carries a stream whose connection still belongs to net/http to its end. It
// returns false if the body must not end cleanly, since the client did not get all of
// it.
func Run(w http.ResponseWriter, r *http.Request, c Session) (complete bool) {
	out := wire.NewWriter(w, r, c.Deps.WriteTimeout)
	p := newPump(c, out, r.Context().Done())
	p.stayWithNetHTTP(r, out)
	return p.GoodbyeSaid != "" && out.Failure() == nil
}

func (p *pump) stayWithNetHTTP(r *http.Request, out *wire.Writer) {
	out.EndBy(func() time.Time {
		p.MustLeave(time.Now())
		return p.OverdueAt()
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
		p.ForceHeartbeat()
		return true
	}
	p.run()
}

// run serves the stream until its client disconnects, stops reading, or gets its
// goodbye.
func (p *pump) run() {
	p.Deps.Metrics.StreamOpened(p.Transport())
	defer p.end()
	p.show()
	p.Deps.Subscribers.Add(p.published)

	p.Hello(&p.text)
	p.flush()
	for p.out.Failure() == nil {
		p.drain()
		now := time.Now()
		if reason := p.ReasonToEnd(now); reason != "" {
			p.sayGoodbye(reason)
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
	p.Deps.Subscribers.Remove(p.published, why)
	p.Close(p.out.Sent(), why == introspection.LeftUnread)
}

// reasonEnded returns why the stream ended.
func (p *pump) reasonEnded() introspection.DepartureReason {
	late := p.Overdue(time.Now())
	switch {
	case late != "" && p.out.Failure() != nil:
		return introspection.DepartureReason(late)
	case p.out.TimedOut():
		return introspection.LeftUnread
	case p.out.Failure() != nil || p.hungUp:
		return introspection.LeftByItself
	case p.GoodbyeSaid != "":
		return introspection.DepartureReason(p.GoodbyeSaid)
	}
	return introspection.LeftByAccident
}

// left reports whether the client has disconnected.
func (p *pump) left() bool {
	return Closed(p.gone) || p.far != nil && p.far.Gone.Load()
}

// isOverdue reports whether the stream must be cut off, see
// Session.Overdue.
func (p *pump) isOverdue() bool { return p.Overdue(time.Now()) != "" }

// drain writes everything there is, in turns of one batch for each watch, then
// flushes. It stops early if the stream must end.
func (p *pump) drain() {
	wrote := false
	for p.change(); p.Turn(&p.text); p.change() {
		wrote = true
		p.show() // the next turn may take long with a slow client
		if p.out.Failure() != nil || p.left() || p.ReasonToEnd(time.Now()) != "" {
			break
		}
	}
	if p.Bookmarks(time.Now(), &p.text) || wrote {
		p.flush()
	}
}

// change makes the stream follow the parts that its pass says now.
func (p *pump) change() {
	if p.Switch(nil) {
		p.published.Follow(p.Followed()...)
	}
}

// flush sends what was written, and restarts the heartbeat timer.
func (p *pump) flush() {
	p.out.Flush()
	p.Flushed(time.Now(), p.out.Sent(), p.out.Failure())
	p.show()
}

// show publishes how far the stream is.
func (p *pump) show() {
	d := p.Delivered
	d.Bytes += uint64(p.out.Sent() - p.Counted)
	p.published.Show(d, func(i int) log.Progress { return p.Follows[i].Sub.Progress() })
}

// sayGoodbye ends the stream with a goodbye.
func (p *pump) sayGoodbye(reason stream.GoodbyeReason) {
	p.Goodbye(reason, &p.text)
	p.out.End()
	if p.out.Failure() == nil {
		p.SaidGoodbye()
	}
}

// wait returns when there may be something to do. It returns false if the client
// disconnected.
func (p *pump) wait(now time.Time) bool {
	if !now.Before(p.HeartbeatAt()) {
		p.text.WriteHeartbeat()
		p.flush()
	}
	if p.Drains {
		p.draining = nil
	}
	return p.waiter.wait(p.draining, p.WakeAt())
}
