package gateway

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// retryHint returns when one client should come back: from half to one and a
// half of the configured time, so that clients that were sent away together do
// not come back together.
func (g *Gateway) retryHint() time.Duration {
	return (g.cfg.Retry/2 + rand.N(g.cfg.Retry)).Round(time.Millisecond)
}

// maxAge returns the age at which one stream ends: the configured one, give or
// take 10 %; 0: never.
func (g *Gateway) maxAge() time.Duration {
	if g.cfg.MaxAge < 0 {
		return 0
	}
	tenth := g.cfg.MaxAge / 10
	return g.cfg.MaxAge - tenth + rand.N(2*tenth+1)
}

// refuseOverload refuses a stream since there are too many, or since the
// gateway drains. A browser's EventSource never comes back after a status other
// than 200, so it gets a stream of one goodbye; everybody else a 503.
func (g *Gateway) refuseOverload(w http.ResponseWriter, r *http.Request, req streamRequest) {
	retry := 2 * g.retryHint()
	draining := g.admission.isDraining()
	if draining {
		w.Header().Set("Connection", "close") // to come back elsewhere
	}
	f := req.format.framing()
	g.metrics.goodbye(f.transport(), stream.GoodbyeOverloaded)
	if !req.eventSource {
		writeProblem(w, overloaded(draining, retry))
		return
	}
	setStreamHeaders(w.Header(), f)
	out := newWriter(w, r, g.cfg.WriteTimeout)
	out.write(appendGoodbye(f.appendRetry(nil, retry), f, stream.GoodbyeOverloaded, retry))
	out.end()
}

// overloaded is the 503 for a stream, or a request as long as one, too many.
func overloaded(draining bool, retry time.Duration) *problem {
	p := newProblem(http.StatusServiceUnavailable, "too many streams are open: come back later")
	if draining {
		p = newProblem(http.StatusServiceUnavailable, "the gateway is shutting down: come back, to another replica if there is one")
	}
	p.retryAfter = retry
	return p
}

// appendGoodbye appends the last event of a stream.
func appendGoodbye(dst []byte, f framing, reason stream.GoodbyeReason, retry time.Duration) []byte {
	return f.appendData(dst, stream.Goodbye, stream.AppendGoodbye(nil, reason, retry))
}
