package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// policy returns the policy; nil: there is none.
func (c Config) policy() *access.Policy {
	if c.Access == nil {
		return nil
	}
	return c.Access.Policy
}

// rights returns what a cluster lets its users read; nil: no cluster decides.
func (c Config) rights() *cluster.Rights {
	if c.Access == nil {
		return nil
	}
	return c.Access.Rights
}

// audit returns the output of the audit log; nil: there is none.
func (c Config) audit() io.Writer {
	if c.Access == nil {
		return nil
	}
	return c.Access.Audit
}

// authenticate makes the authenticator, if the gateway asks for credentials. It takes over what
// the former one has learned.
func (g *settings) authenticate(before *settings) (err error) {
	if g.cfg.Access == nil {
		return nil
	}
	c := g.cfg.Access.Credentials
	c.Log = g.log
	c.Client = func(r *http.Request) netip.Addr { return g.proxies.OfRequest(r).Addr() }
	c.ClientOfCall = func(ctx context.Context) netip.Addr { return g.proxies.OfCall(ctx).Addr() }
	if g.cfg.Access.Revoked != "" {
		c.Revocations = g.revocations()
	}
	if before != nil {
		c.Previous = before.who
	}
	if g.who, err = credential.New(c); err != nil {
		return fmt.Errorf("gateway.Config: Access.Credentials: %w", err)
	}
	return nil
}

// learn refreshes the keys of issuers until the function that it returns is called.
func (g *Gateway) learn(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			g.now.Load().learn(ctx)
		}
	}()
	return func() { cancel(); <-done }
}

// learn returns once the settings are replaced, or the context ends.
func (g *settings) learn(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if g.who != nil {
		running.Go(func() { g.who.Run(ctx) })
		running.Go(func() { g.followRevocations(ctx) })
		running.Go(func() { g.forgetEndings(ctx) })
		if r := g.cfg.rights(); r != nil {
			running.Go(func() { r.Run(ctx, g.authorizations.Recheck) })
		}
		if tokens := g.cfg.Access.Credentials.Cluster; tokens != nil {
			running.Go(func() { tokens.Run(ctx, g.authorizations.Recheck) })
		}
	}
	select {
	case <-g.replaced:
	case <-ctx.Done():
	}
}

// identify identifies the client of a request, or refuses the request. Probes and the page with
// its assets are for everybody. Answers are for one principal only, so no cache may store them.
func (g *settings) identify(next http.Handler) http.Handler {
	if g.cfg.Access == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") && r.URL.Path != "/metrics" && !strings.HasPrefix(r.URL.Path, "/debug/") {
			next.ServeHTTP(w, r)
			return
		}
		wire.MarkPrivate(w.Header())
		id, err := g.identityOf(r)
		r = credential.WithoutTicket(r)
		if err != nil {
			g.refuseCredential(w, r, err)
			return
		}
		g.metrics.Identified(id.Mechanism)
		if wait := g.quotas.Request(id); wait > 0 {
			g.refuseRequest(w, r, g.deps.TooManyRequests(id.Mechanism, wait))
			return
		}
		ctx := authz.WithAction(authz.WithIdentity(r.Context(), id), actionOf(r))
		if g.isOperator(id) {
			ctx = limits.WithOperator(ctx)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identityOf returns the identity of a request. A request of a sign-in has none yet.
func (g *settings) identityOf(r *http.Request) (*credential.Identity, error) {
	if g.signsIn() && (r.URL.Path == loginPath || r.URL.Path == credential.CallbackPath) {
		return g.who.Stranger(r), nil
	}
	return g.who.Identify(r)
}

// signsIn reports whether users can sign in with a provider.
func (g *settings) signsIn() bool { return g.who != nil && g.who.SignsIn() != "" }

// isOperator reports whether the public handler treats an identity as an operator. A ticket is
// for watches only, even if it is an operator's.
func (g *settings) isOperator(id *credential.Identity) bool {
	return g.servesOperators() && id.Via != credential.ViaTicket && g.cfg.Access.Policy.Holds(id.Principal, g.cfg.Access.OperationsRole)
}

// servesOperators reports whether some principals are operators for the public handler.
func (g *settings) servesOperators() bool {
	return g.cfg.Access != nil && g.cfg.Access.OperationsRole != ""
}

// onlyOperators refuses the requests of everybody else, and those of pages of other sites: a
// browser beside a listener on loopback sends them for any page that its user visits.
func (g *settings) onlyOperators(next http.HandlerFunc) http.HandlerFunc {
	pages := credential.Config{AllowedOrigins: g.cfg.AllowedOrigins}
	if g.cfg.Access != nil {
		pages = g.cfg.Access.Credentials
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if !pages.IsOfOurPage(r) {
			problem.Write(w, problem.New(http.StatusForbidden, "%s is not for pages of other sites: want one of this gateway, or of an origin in http.allowed_origins, or open the address by itself", r.URL.Path))
			return
		}
		if !limits.IsOperator(r.Context()) {
			problem.Write(w, problem.New(http.StatusForbidden, "%s is for operators", r.URL.Path))
			return
		}
		next(w, r)
	}
}

// paced is next for operators, with an answer that may be large: it is cut off if they do not read
// it, as the answers for clients are.
func (g *settings) paced(next http.HandlerFunc) http.HandlerFunc {
	return g.onlyOperators(func(w http.ResponseWriter, r *http.Request) {
		out := wire.NewAnswerWriter(w, r, g.cfg.WriteTimeout, g.cfg.MinRate, g.cfg.Logger)
		defer out.Close()
		next(out, r)
	})
}

// refuseCredential answers a request whose credential is not accepted.
func (g *settings) refuseCredential(w http.ResponseWriter, r *http.Request, err error) {
	p := authz.Refused(err)
	var why *access.Refusal
	if errors.As(err, &why) {
		g.metrics.CredentialRefused(why.Reason)
		g.lookup.RecordRefusal(r.Context(), why, g.proxies.OfRequest(r).Addr())
	}
	if forgets(r, why) {
		g.unary.EndSession(w, r)
		return
	}
	if reason, survives := g.survives(r, why); survives {
		g.turnAway(w, r, reason, p)
		return
	}
	problem.Write(w, p)
}

// refuseRequest answers a request whose principal, or address, has made too many.
func (g *settings) refuseRequest(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if asksForStream(r) && wire.NamesEventStream(r.Header.Values("Accept")) {
		g.turnAway(w, r, stream.GoodbyeOverloaded, p)
		return
	}
	problem.Write(w, p)
}

// forgets reports whether a request only removes a cookie that is not accepted, which its page
// cannot do by itself.
func forgets(r *http.Request, why *access.Refusal) bool {
	return r.Method == http.MethodDelete && r.URL.Path == sessionPath && len(r.Header.Values("Authorization")) == 0 &&
		why != nil && (why.Status == http.StatusUnauthorized || why.Status == http.StatusTooManyRequests)
}

// survives reports whether a request comes from an EventSource whose credential may be accepted
// later: once its page has renewed it, or once it can be checked. An EventSource never
// reconnects after a status other than 200.
func (g *settings) survives(r *http.Request, why *access.Refusal) (stream.GoodbyeReason, bool) {
	switch {
	case why == nil || !asksForStream(r) || !wire.NamesEventStream(r.Header.Values("Accept")):
		return "", false
	case why.Expired != nil:
		return stream.GoodbyeTokenExpired, true
	case why.Status == http.StatusServiceUnavailable:
		return stream.GoodbyeOverloaded, true
	}
	return "", false
}

// asksForStream reports whether a request is for a route that streams.
func asksForStream(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	watch, ofOne := strings.CutPrefix(r.URL.EscapedPath(), "/v1/watches/")
	_, rest, _ := strings.Cut(watch, "/")
	return r.URL.Path == "/v1/events" || ofOne && (rest == "events" || rest == "counts/events")
}

// renewWait is how long an EventSource with an expired credential should wait, while its page
// renews the credential.
const renewWait = 30 * time.Second

// turnAway answers with a stream without data, after which the client reconnects.
func (g *settings) turnAway(w http.ResponseWriter, r *http.Request, reason stream.GoodbyeReason, p *problem.Problem) {
	wire.SetStreamHeaders(w.Header(), frame.SSE, wire.Identity)
	f := frame.SSE
	retry := max(p.RetryAfter, renewWait)
	out := wire.NewWriter(w, r, g.cfg.WriteTimeout)
	out.Write(frame.AppendComment(f.AppendRetry(nil, retry), p.Detail))
	out.Write(f.AppendGoodbye(nil, reason, retry))
	out.End()
}
