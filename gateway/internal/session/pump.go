package session

import (
	"context"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// Output is a connection to a client, and the encoder of what it is sent. After a failure it does
// nothing.
type Output interface {
	Encoder
	Flush()         // sends the buffered bytes
	End()           // the last flush, which ends the body
	Sent() int      // bytes, without the framing
	Failure() error // the first one
	TimedOut() bool // the failure is that the client did not read
}

// Pump is the goroutine pump: it carries what one session has to say from the logs to one client, in
// its own goroutine. It writes everything there is, then flushes, then waits; nothing waits for it.
//
// Owned by that goroutine: that of a hijacked stream, of a call of gRPC, or the one in which
// net/http runs the handler.
type Pump struct {
	Session
	// Static after construction.
	gone <-chan struct{} // closed when the client disconnected; nil: see far
	far  *epoll.FarSide  // nil: see gone
	out  Output

	draining  <-chan struct{} // nil once noticed
	waiter    *waiter
	published *introspection.PublishedProgress
	hungUp    bool // the client ended its side, while nothing was written
}

// NewPump returns the pump of a session, which releases the session. gone is closed when the client
// disconnected.
func NewPump(c Session, out Output, gone <-chan struct{}) *Pump {
	return &Pump{
		Session: c, gone: gone, draining: c.Deps.Admission.Draining, out: out,
		waiter:    newWaiter(gone, c.Authorization, c.Until, c.Follows),
		published: introspection.NewPublishedProgress(c.Identity, c.Transport(), c.Coding.String(), c.Followed()...),
	}
}

// textOutput is the output of a stream over HTTP.
type textOutput struct {
	Text
	wire.Sender
}

// newTextPump returns a pump that writes text.
func newTextPump(c Session, out wire.Sender, gone <-chan struct{}) *Pump {
	return NewPump(c, &textOutput{NewText(&c, out, wire.Sum{}), out}, gone)
}

// Run carries a stream whose connection still belongs to net/http to its end. It
// returns false if the body must not end cleanly, since the client did not get all of
// it.
func Run(w http.ResponseWriter, r *http.Request, c Session) (complete bool) {
	out := wire.NewWriter(w, r, c.Deps.WriteTimeout)
	p := newTextPump(c, out, r.Context().Done())
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
	p.OnInputEnded(r.Context(), p.ForceHeartbeat)
	p.Run()
	return p.GoodbyeSaid != "" && out.Failure() == nil
}

// OnInputEnded calls f once the client of a request sends nothing more: it may have disconnected.
func (p *Pump) OnInputEnded(ctx context.Context, f func()) {
	p.waiter.input = netconn.InputEnded(ctx)
	p.waiter.listen = func() bool {
		p.waiter.input = nil // it stays closed forever
		f()
		return true
	}
}

// Run serves the session until its client disconnects, stops reading, or gets its
// goodbye.
func (p *Pump) Run() {
	p.Deps.Metrics.StreamOpened(p.Transport())
	defer p.end()
	p.show()
	p.Deps.Subscribers.Add(p.published)

	if p.Format != 0 {
		p.Hello(p.out)
		p.flush()
	}
	for p.out.Failure() == nil {
		p.drain()
		now := time.Now()
		if reason := p.ReasonToEnd(now); reason != "" {
			p.sayGoodbye(reason)
			return
		}
		if p.Answer != nil && !now.Before(p.Answer.EndsAt()) {
			p.sayGoodbye(stream.GoodbyeComplete)
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

func (p *Pump) end() {
	p.waiter.close()
	p.show()
	why := p.reasonEnded()
	p.Deps.Subscribers.Remove(p.published, why)
	p.Close(p.out.Sent(), why == introspection.LeftUnread)
}

// reasonEnded returns why the stream ended.
func (p *Pump) reasonEnded() introspection.DepartureReason {
	late := p.Overdue(time.Now())
	switch {
	case late != "" && p.out.Failure() != nil:
		return introspection.DepartureReason(late)
	case p.out.TimedOut():
		return introspection.LeftUnread
	case p.out.Failure() != nil || p.hungUp:
		return introspection.LeftByItself
	case p.Answer != nil && p.GoodbyeSaid != "":
		return "" // its normal end
	case p.GoodbyeSaid != "":
		return introspection.DepartureReason(p.GoodbyeSaid)
	}
	return introspection.LeftByAccident
}

// left reports whether the client has disconnected.
func (p *Pump) left() bool {
	return Closed(p.gone) || p.far != nil && p.far.Gone.Load()
}

// isOverdue reports whether the stream must be cut off, see
// Session.Overdue.
func (p *Pump) isOverdue() bool { return p.Overdue(time.Now()) != "" }

// drain writes everything there is, in turns of one batch for each watch, then
// flushes. It stops early if the stream must end.
func (p *Pump) drain() {
	wrote := false
	for p.ReasonToEnd(time.Now()) == "" && p.turn() {
		wrote = true
		p.show() // the next turn may take long with a slow client
		if p.out.Failure() != nil || p.left() {
			break
		}
	}
	if p.Bookmarks(time.Now(), p.out) || wrote {
		p.flush()
	}
}

// turn writes one batch of each watch that has one, of the parts that the authorization says now.
func (p *Pump) turn() bool {
	if p.Switch(nil) {
		p.published.Follow(p.Followed()...)
	}
	return p.Turn(p.out)
}

// flush sends what was written, and restarts the heartbeat timer.
func (p *Pump) flush() {
	p.out.Flush()
	p.Flushed(time.Now(), p.out.Sent(), p.out.Failure())
	p.show()
}

// show publishes how far the stream is.
func (p *Pump) show() {
	d := p.Delivered
	d.Bytes += uint64(p.out.Sent() - p.Counted)
	p.published.Show(d, func(i int) log.Progress { return p.Follows[i].Sub.Progress() })
}

// sayGoodbye ends the stream with a goodbye.
func (p *Pump) sayGoodbye(reason stream.GoodbyeReason) {
	p.Goodbye(reason, p.out)
	p.out.End()
	if p.out.Failure() == nil && p.Answer == nil {
		p.SaidGoodbye()
	}
}

// wait returns when there may be something to do. It returns false if the client
// disconnected.
func (p *Pump) wait(now time.Time) bool {
	if p.Answer == nil && !now.Before(p.HeartbeatAt()) {
		p.out.WriteHeartbeat()
		p.flush()
	}
	if p.Drains {
		p.draining = nil
	}
	return p.waiter.wait(p.draining, p.WakeAt())
}
