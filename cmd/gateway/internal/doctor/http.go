package doctor

import (
	"context"
	"net"

	"github.com/watchtide/watchtide/internal/headers"
)

// checkHTTP examines the version of HTTP that a browser would use.
func (e *Examination) checkHTTP(ctx context.Context) {
	a, err := e.read(ctx, request{path: listPath}, new(list))
	if err != nil {
		e.unknown(ctx, HTTP, "the second request failed: %s", because(err))
		return
	}
	e.clock.take(a)
	const six = "browsers open at most six connections to one origin over it, so that the seventh open page waits"
	switch {
	case a.ProtoMajor >= 2:
		e.ok(ctx, HTTP, "%s: a browser has all its streams on one connection", a.Proto)
	case !a.ProtoAtLeast(1, 1):
		e.problem(ctx, HTTP, "let the proxy speak HTTP/2, or HTTP/1.1 at least", "the answer is %s, which cannot stream", a.Proto)
	case e.base.Scheme == "https":
		e.problem(ctx, HTTP, "turn on HTTP/2 where TLS ends", "the answer is HTTP/1.1: %s", six)
	case headers.IsLoopback(net.JoinHostPort(e.base.Hostname(), "80")):
		e.ok(ctx, HTTP, "HTTP/1.1, as always without TLS; on this machine that will do")
	default:
		e.problem(ctx, HTTP, "end TLS with HTTP/2 in front of the gateway, or in it (http.tls)", "HTTP/1.1, as always without TLS, which everybody on the way can read: %s", six)
	}
}
