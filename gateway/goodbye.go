package gateway

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// retryHint returns when one client should come back: from half to one and a half of
// the configured time, so that clients that were sent away together do not return
// together.
func (g *Gateway) retryHint() time.Duration {
	return (g.cfg.Retry/2 + rand.N(g.cfg.Retry)).Round(time.Millisecond)
}

// maxAge returns the age at which one stream ends: the configured one, plus or minus
// 10 %; 0: never.
func (g *Gateway) maxAge() time.Duration {
	if g.cfg.MaxAge < 0 {
		return 0
	}
	tenth := g.cfg.MaxAge / 10
	return g.cfg.MaxAge - tenth + rand.N(2*tenth+1)
}

// admit counts a stream in, or returns why it must be refused.
func (g *Gateway) admit(c client, watches ...*watch.Watch) (guest, *refusal) {
	names := make([]string, len(watches))
	for i, w := range watches {
		names[i] = w.Name()
		if w.Full() != nil {
			return guest{}, &refusal{reason: refusedMemory, watch: names[i]}
		}
	}
	return g.admission.enter(c, names)
}

// refuseStream refuses a stream. A browser's EventSource never reconnects after a
// status other than 200, so it gets a stream of one goodbye, with the reason in a
// comment for a human reader. All other clients get a problem.
func (g *Gateway) refuseStream(w http.ResponseWriter, r *http.Request, req streamRequest, why *refusal) {
	if why.reason == refusedDraining {
		w.Header().Set("Connection", "close") // so that it comes back elsewhere
	}
	f := req.format.framing()
	p := g.refused(f.transport(), why)
	if !req.eventSource {
		writeProblem(w, p)
		return
	}
	req.gzip = false // so few bytes are not worth it
	setStreamHeaders(w.Header(), req)
	out := newWriter(w, r, g.cfg.WriteTimeout)
	out.write(appendComment(f.appendRetry(nil, p.retryAfter), p.Detail))
	out.write(appendGoodbye(nil, f, stream.GoodbyeOverloaded, p.retryAfter))
	out.end()
}

// refused counts a refusal, and returns it as a problem.
func (g *Gateway) refused(transport string, why *refusal) *problem {
	g.metrics.refused(transport, why.reason)
	return why.problem(2 * g.retryHint())
}

// appendComment appends a line that every reader of event streams skips.
func appendComment(dst []byte, text string) []byte {
	oneLine := strings.NewReplacer("\r", " ", "\n", " ")
	return append(append(append(dst, ": "...), oneLine.Replace(text)...), "\n\n"...)
}

// appendGoodbye appends the last event of a stream.
func appendGoodbye(dst []byte, f framing, reason stream.GoodbyeReason, retry time.Duration) []byte {
	return f.appendData(dst, stream.Goodbye, log.AppendGoodbye(nil, reason, retry))
}
