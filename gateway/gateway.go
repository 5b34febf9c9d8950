package gateway

import (
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/budget"
	"github.com/watchtide/watchtide/gateway/internal/conversation"
	"github.com/watchtide/watchtide/gateway/internal/deflate"
	"github.com/watchtide/watchtide/gateway/internal/direct"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/poll"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/rest"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
	"github.com/watchtide/watchtide/gateway/internal/shard"
	"github.com/watchtide/watchtide/gateway/internal/snapshots"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/internal/hosts"
	"github.com/watchtide/watchtide/stream/views"
	"github.com/watchtide/watchtide/stream/watch"
	"github.com/watchtide/watchtide/web"
)

// Gateway serves the watches of a registry over HTTP and gRPC.
//
// All methods may be called from any goroutine.
type Gateway struct {
	// Static after construction.
	cfg       Config // with every default filled in
	registry  *watch.Registry
	lookup    problem.Lookup
	log       *slog.Logger
	metrics   *metrics.Metrics
	admission *admission.Controller // safe for use by several goroutines
	snapshots *snapshots.Budget
	proxies   admission.Proxies
	hosts     hosts.List
	doors     *netconn.Connections // that Serve accepts
	shards    *shard.Pump          // nil: the goroutine pump carries all streams
	hijacked  *direct.Hijacked
	ownViews  *views.Views   // nil: they are Config's
	pieces    *deflate.Cache // nil: streams are not compressed

	subscribers *subscribers.List
	deps        *conversation.Deps
	unary       *rest.API
	calls       rpc.Deps

	// Atomic.
	leaving atomic.Bool // the gateway drains, or is about to
}

// ownHosts are names that need no configuration. Only tests add some.
var ownHosts []string

// New makes a gateway. It fails if c has no Registry, or has an invalid value.
func New(c Config) (*Gateway, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	var own *views.Views
	if c.Views == nil {
		own = views.New(views.Config{})
		c.Views = own
	}
	g := &Gateway{
		cfg:       c,
		ownViews:  own,
		registry:  c.Registry,
		lookup:    problem.Lookup{Registry: c.Registry, Views: c.Views, Definitions: problem.NewDefinitions(), PrimeWait: c.PrimeWait, Retry: c.Retry},
		log:       c.Logger,
		metrics:   metrics.New(c.Registry),
		admission: admission.New(c.limits(), c.Drain),
		proxies:   admission.Proxies{Trusted: c.TrustedProxies, Header: c.ForwardedHeader},
		hosts:     hosts.New(slices.Concat(c.Hosts, ownHosts)),
		hijacked:  direct.NewHijacked(poll.NewHangupWatcher),

		subscribers: subscribers.New(),
	}
	g.doors = netconn.NewConnections(c.MaxConnections, c.Logger)
	g.metrics.WatchAdmission(g.admission)
	g.metrics.WatchConnections(g.doors)
	g.snapshots = snapshots.New(c.SnapshotBudget, g.metrics)
	if c.Compression == CompressionGzip {
		g.pieces = deflate.NewCache(c.CompressionCache)
		g.metrics.WatchPieces(g.pieces)
	}
	g.deps = g.newDeps()
	g.serveUnary()
	if s := c.sockets(g.doors); s != nil {
		g.shards = shard.New(g.deps, s, runtime.GOMAXPROCS(0), c.AfterRush)
	}
	return g, nil
}

// serveUnary makes the handlers of unary requests over HTTP and gRPC, and the budgets
// that both share.
func (g *Gateway) serveUnary() {
	bodies := budget.NewBodies(g.cfg.BodyBudget, g.metrics.BodyRefused, g.deps.RetryHint)
	answers := budget.NewAnswers(g.cfg.AnswerBudget, g.metrics.AnswerRefused, g.deps.RetryHint)
	g.metrics.WatchBudgets(bodies.Bytes, answers.Bytes)
	s := &unary.Service{Instance: g.cfg.Instance, Lookup: g.lookup, Refused: g.refuseList}
	g.unary = rest.New(rest.Deps{Streams: g.deps, Service: s, Proxies: g.proxies, Answers: answers, Bodies: bodies})
	g.calls = rpc.Deps{Streams: g.deps, Service: s, Proxies: g.proxies, Answers: answers, Bodies: bodies, Hosts: g.hosts}
}

// refuseList counts a list whose view was not opened, and returns the answer.
func (g *Gateway) refuseList(why *admission.Refusal) *problem.Problem {
	g.metrics.ListRefused(why.Reason)
	return why.Problem(2 * g.deps.RetryHint())
}

// newDeps returns the parts of the gateway that streams use.
func (g *Gateway) newDeps() *conversation.Deps {
	return &conversation.Deps{
		Instance: g.cfg.Instance, Heartbeat: g.cfg.Heartbeat, WriteTimeout: g.cfg.WriteTimeout, AheadWait: g.cfg.AheadWait,
		Retry: g.cfg.Retry, MaxAge: g.cfg.MaxAge, MinRate: g.cfg.MinRate,
		Log: g.log, Metrics: g.metrics, Admission: g.admission, Snapshots: g.snapshots, Subscribers: g.subscribers, Pieces: g.pieces,
	}
}

// Handler returns the public routes: the streams, the API, the probes and the page.
// Those for operators are in OperationsHandler.
//
// It may be mounted in any http.Server that has no WriteTimeout and whose middleware,
// if it wraps the ResponseWriter, has an Unwrap method. Serve meets both conditions,
// and does more.
func (g *Gateway) Handler() http.Handler { return g.handler(false, nil) }

// handler has every route, on one screen. profiles may be nil.
func (g *Gateway) handler(operators bool, profiles http.Handler) http.Handler {
	api := g.unary.Handler()

	r := chi.NewRouter()
	r.Use(skipCancelled)
	if operators {
		r.Use(admission.ForOperators)
	}
	r.Use(noSniff, g.healthFirst, netconn.HalfClose, g.checkHost, g.cors, rest.BoundBodies)
	r.NotFound(problem.NotFound)
	r.MethodNotAllowed(problem.MethodNotAllowed(r))
	get := func(path string, h http.HandlerFunc) {
		r.Get(path, h)
		r.Head(path, h)
	}

	// Streams: shard pump where it can, else goroutine pump.
	get("/v1/events", g.handleEvents)
	get("/v1/watches/{watch}/events", g.handleWatchEvents)

	// Long poll, for clients and proxies that cannot stream.
	get("/v1/watches/{watch}/changes", g.unary.Changes)

	// Everything unary.
	r.Handle("/v1/watches", api)
	r.Handle("/v1/watches/*", api)

	get("/openapi.json", g.handleOpenAPI)
	get("/healthz", g.handleHealthz)
	get("/readyz", g.handleReadyz)
	if operators && g.cfg.Metrics {
		get("/metrics", g.metricsHandler().ServeHTTP)
		get("/v1/subscribers", g.handleSubscribers)
	}

	if profiles != nil {
		get("/debug/pprof/*", profiles.ServeHTTP)
	}

	// The page, embedded: "/" and its assets.
	for _, path := range web.Paths() {
		get(path, web.Handler().ServeHTTP)
	}
	return r
}

// skipCancelled ignores an HTTP/2 request that was reset before its turn came: a
// client can send very many of them.
func skipCancelled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 || r.Context().Err() == nil {
			next.ServeHTTP(w, r)
		}
	})
}

// noSniff keeps browsers from guessing a content type other than the declared one:
// writers choose values and keys freely.
func noSniff(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// publicHandler returns the handler of the public listener. A listener that only
// this machine can reach serves everything, unless the configuration names a proxy
// in front of it: then its clients are those of the proxy.
func (g *Gateway) publicHandler(address net.Addr) http.Handler {
	proxied := len(g.cfg.Hosts) > 0 || len(g.cfg.TrustedProxies) > 0
	if hosts.IsLoopback(address.String()) && !proxied {
		return g.handler(true, nil)
	}
	return g.Handler()
}

// OperationsHandler returns the handler for operators: everything that Handler
// serves, with the reasons in full, and also /metrics, /v1/subscribers and
// /debug/pprof/. Anyone who can reach it may see addresses of clients and
// upstreams.
func (g *Gateway) OperationsHandler() http.Handler {
	return g.handler(true, g.cfg.Profiles)
}
