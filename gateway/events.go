package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream/watch"
)

// handleEvents streams the watches that the query names.
func (g *settings) handleEvents(w http.ResponseWriter, r *http.Request) {
	req, p := session.ParseRequest(r.URL.RawQuery, r.Header, "")
	g.serveEvents(w, r, req, p)
}

// handleWatchEvents streams the watch that the path names.
func (g *settings) handleWatchEvents(w http.ResponseWriter, r *http.Request) {
	req, p := session.ParseRequest(r.URL.RawQuery, r.Header, problem.PathParameter(r, "watch"))
	g.serveEvents(w, r, req, p)
}

// handleCountEvents streams the counts of the watch that the path names.
func (g *settings) handleCountEvents(w http.ResponseWriter, r *http.Request) {
	req, p := session.ParseCountsRequest(r.URL.RawQuery, r.Header, problem.PathParameter(r, "watch"))
	g.serveEvents(w, r, req, p)
}

// digests refuses a stream with digests if there are none. It names a parameter that was sent: the client repeats the
// request without it.
func (g *settings) digests(req session.Request) *problem.Problem {
	if !req.Digest || g.deps.HasDigests() {
		return nil
	}
	parameter := "digest"
	if req.Verify {
		parameter = "resume"
	}
	return problem.BadParameter(parameter, "stream.digest is off at this gateway: ask without digest and resume")
}

// serveEvents answers a stream request, unless there is already a problem. A refusal is a problem, and everything that
// can be refused is refused before the first byte.
func (g *settings) serveEvents(w http.ResponseWriter, r *http.Request, req session.Request, p *problem.Problem) {
	if p != nil {
		problem.WriteForPath(w, r, p)
		return
	}
	if p = g.digests(req); p != nil {
		problem.Write(w, p)
		return
	}
	from := g.proxies.OfRequest(r)
	client := limits.ClientOf(from.Addr())
	watches, p := g.chosen(r.Context(), req.Watches, client.String())
	if p != nil {
		g.notFound(w, r, req, p)
		return
	}
	req.Coding = g.coding(r, req.Coding, watches...)
	parts, p := req.Parts(r.Context(), watches, client)
	if p != nil {
		g.notFound(w, r, req, p)
		return
	}
	if p := canStream(w); p != nil {
		g.log.Error("cannot stream", "error", p)
		problem.Write(w, p)
		return
	}
	if r.Method == http.MethodHead {
		wire.SetStreamHeaders(w.Header(), req.Format, req.Coding)
		return
	}
	if p := g.doors.ReservedFor(r); p != nil {
		g.refuseStream(w, r, req, p)
		return
	}
	as, refused := g.deps.Admit(r.Context(), client, watches...)
	if refused != nil {
		g.refuseStream(w, r, req, refused)
		return
	}
	g.stream(w, r, req, parts, as, from)
}

// coding returns the coding of an answer about watches, for a client that prefers one.
func (g *settings) coding(r *http.Request, preferred wire.Coding, watches ...authz.Handle) wire.Coding {
	switch {
	case g.cfg.Compression == CompressionNone, slices.ContainsFunc(watches, func(w authz.Handle) bool { return !w.Compressible() }):
		return wire.Identity
	case g.cfg.Compression == CompressionGzip && preferred == wire.Zstd:
		return wire.PreferredCoding(r.Header.Values("Accept-Encoding"), wire.Gzip)
	}
	return preferred
}

// stream answers an admitted request, and releases its admission exactly once,
// however it ends.
func (g *settings) stream(w http.ResponseWriter, r *http.Request, req session.Request, parts []authz.Part, as limits.Ref, from netip.AddrPort) {
	carried := false
	with := g.enter(r.Context(), req, parts)
	defer func() {
		if !carried {
			g.deps.Leave(as, with)
		}
	}()
	watches, err := g.deps.Open(&req, parts, limits.ClientOf(from.Addr()))
	if err != nil {
		g.notOpened(w, r, req, err)
		return
	}
	if p := g.awaitPrimed(r, req, watches); p != nil {
		problem.Write(w, p)
		return
	}
	wire.SetStreamHeaders(w.Header(), req.Format, req.Coding)
	c := session.New(g.deps, req, with, watches)
	defer func() {
		if !carried {
			c.Release()
		}
	}()
	c.AdmissionRef, c.Identity, c.Request = as, g.subscribers.Enter(from, r.UserAgent(), authz.IdentityOf(r.Context())), g.deps.Tracing.ParentOf(r.Context())
	tracing.StreamBegins(r.Context())
	if g.shards.Carry(w, r, c) || g.hijacked.Carry(w, r, c) {
		carried = true // the pump releases it
		return
	}
	if !session.Run(w, r, c) {
		panic(http.ErrAbortHandler) // without the end of the body
	}
}

// enter makes the authorization of a stream.
func (g *settings) enter(ctx context.Context, req session.Request, parts []authz.Part) *authz.Authorization {
	who := authz.IdentityOf(ctx)
	if who == nil && req.Until {
		return nil
	}
	return g.authorizations.EnterSwitching(who, parts...)
}

// notFound answers a stream whose watches, or the parts of them that it asks for, were not found.
func (g *settings) notFound(w http.ResponseWriter, r *http.Request, req session.Request, p *problem.Problem) {
	if refused := limits.RefusalOf(p); refused != nil {
		g.refuseStream(w, r, req, refused)
		return
	}
	problem.Write(w, p)
}

// notOpened answers a stream whose views were not opened.
func (g *settings) notOpened(w http.ResponseWriter, r *http.Request, req session.Request, err error) {
	var refused *limits.Refusal
	if errors.As(err, &refused) {
		g.refuseStream(w, r, req, refused)
		return
	}
	problem.Write(w, g.deps.NotOpened(req.Format.String(), err))
}

// refuseStream refuses a stream. A browser's EventSource never reconnects after a
// status other than 200, so it gets a stream of one goodbye, with the reason in a
// comment for a human reader. All other clients get a problem.
func (g *settings) refuseStream(w http.ResponseWriter, r *http.Request, req session.Request, why *limits.Refusal) {
	f := req.Format
	p := g.deps.Refused(f.String(), why)
	if !req.EventSource {
		problem.Write(w, p)
		return
	}
	req.Coding = wire.Identity // not worth it for so few bytes
	wire.SetStreamHeaders(w.Header(), req.Format, req.Coding)
	out := wire.NewWriter(w, r, g.cfg.WriteTimeout)
	out.Write(frame.AppendComment(f.AppendRetry(nil, p.RetryAfter), p.Detail))
	out.Write(f.AppendGoodbye(nil, why.Goodbye(), p.RetryAfter))
	out.End()
}

// canStream refuses a ResponseWriter without write deadlines: a client that does not
// read would hold its stream forever. Serve's has them; a middleware that wraps it
// must have an Unwrap method (see http.ResponseController).
func canStream(w http.ResponseWriter) *problem.Problem {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
		return problem.New(http.StatusInternalServerError, "this server cannot stream: its responses have no write deadline")
	}
	return nil
}

// chosen returns the watches that a request of a client names.
func (g *settings) chosen(ctx context.Context, choices []session.Choice, client string) ([]authz.Handle, *problem.Problem) {
	watches := make([]authz.Handle, 0, len(choices))
	for _, choice := range choices {
		w, p := g.lookup.Find(ctx, choice.Name, client)
		if p != nil {
			return nil, p
		}
		watches = append(watches, w)
	}
	return watches, nil
}

// awaitPrimed makes a stream that ends with the snapshot wait until there is one: its
// client wants the state now, or an error.
func (g *settings) awaitPrimed(r *http.Request, req session.Request, watches []*watch.Watch) *problem.Problem {
	if !req.Until {
		return nil
	}
	for _, w := range watches {
		if p := g.lookup.Prime(r.Context(), w); p != nil {
			return p
		}
	}
	return nil
}
