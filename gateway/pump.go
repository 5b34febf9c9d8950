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
	conversation
	gone     <-chan struct{} // static after construction
	draining <-chan struct{} // nil once noticed
	out      *writer
	waiter   *waiter
}

func (g *Gateway) newPump(w http.ResponseWriter, r *http.Request, c conversation) *pump {
	p := &pump{
		conversation: c,
		gone:         r.Context().Done(), draining: g.admission.draining,
		out: newWriter(w, r, g.cfg.WriteTimeout),
	}
	p.waiter = newWaiter(p.gone, p.until, p.follows)
	return p
}

// run serves the stream until its client leaves, does not read, or is sent away.
func (p *pump) run() {
	p.g.metrics.streamOpened(p.transport())
	defer p.end()

	p.hello(p.out)
	p.flush()
	for p.out.err == nil {
		p.drain()
		now := time.Now()
		if reason := p.reasonToEnd(now); reason != "" {
			p.leave(reason)
			return
		}
		if p.out.err != nil || !p.wait(now) {
			return
		}
	}
}

func (p *pump) end() {
	p.waiter.close()
	p.close(p.out.bytes, p.out.timedOut(), p.out.err)
}

// drain writes everything there is, in turns of one batch for each watch, then
// flushes. It stops early when the stream must end.
func (p *pump) drain() {
	wrote := false
	for p.turn(p.out) {
		wrote = true
		if p.out.err != nil || closed(p.gone) || p.reasonToEnd(time.Now()) != "" {
			break
		}
	}
	if p.bookmarks(time.Now(), p.out) || wrote {
		p.flush()
	}
}

// flush sends what was written, and begins a new silence.
func (p *pump) flush() {
	p.out.flush()
	p.flushed(time.Now(), p.out.bytes, p.out.err)
}

// leave ends the stream on purpose.
func (p *pump) leave(reason stream.GoodbyeReason) {
	p.goodbye(reason, p.out)
	p.out.end()
	if p.out.err == nil {
		p.saidGoodbye()
	}
}

// wait returns when there may be something to do; false: the client left.
func (p *pump) wait(now time.Time) bool {
	if !now.Before(p.heartbeatAt()) {
		p.out.write(p.framing.heartbeat())
		p.flush()
	}
	if p.drains {
		p.draining = nil
	}
	return p.waiter.wait(p.draining, p.wakeAt())
}
