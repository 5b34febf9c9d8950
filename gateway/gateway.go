package gateway

import (
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/rest"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/shard"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/headers"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/internal/web"
	"github.com/watchtide/watchtide/stream/watch"
)

// Gateway serves the watches of a registry over HTTP and gRPC.
//
// All methods may be called from any goroutine.
type Gateway struct {
	// Static after construction.
	registry *watch.Registry
	views    viewEngine
	started  time.Time
	log      *slog.Logger
	observers
	shares
	pumps
	rights

	// Atomic.
	leaving    atomic.Bool // the gateway drains, or is about to
	digestsOff atomic.Bool // see Config.Digest
	now        atomic.Pointer[settings]
	reload     atomic.Pointer[reload] // the last one; nil: there was none

	reloading sync.Mutex // held by Reload
}

// observers count and remember what the gateway does. Static after construction.
type observers struct {
	metrics     *metrics.Metrics
	series      *introspection.Recorder
	subscribers *introspection.List
	reports     *introspection.DeliveryRate
	moves       *limits.Quotas // of windows
}

// outputsBudget is how many bytes connections of HTTP/2 may hold that their clients have not taken, apart from the
// little that each may.
const outputsBudget = 64 << 20

// shares are what all requests share, and each client has a part of. Static after construction.
type shares struct {
	admission *limits.Controller
	snapshots *limits.SnapshotBudget
	bodies    *limits.Bodies
	answers   *limits.Answers
	quotas    *limits.Quotas
	doors     *netconn.Connections // that Serve accepts
	// handshakes are those of TLS.
	handshakes *netconn.Handshakes
	outputs    *limits.Budget // of connections of HTTP/2
}

// pumps carry streams. Static after construction.
type pumps struct {
	shards   *shard.Pump // nil: the goroutine pump carries all streams
	hijacked *session.Hijacked
	pieces   *wire.Cache
	lists    *wire.Cache // pieces of lists, which displace none of streams
}

// rights are what clients may do, and what they were refused. Static after construction.
type rights struct {
	authorizations *authz.Table
	audit          *access.AuditLog
	refusals       *authz.RefusalLog
}

// ownHosts are names that need no configuration. Only tests add some.
var ownHosts []string

// New makes a gateway. It fails if c has no Registry, or has an invalid value.
func New(c Config) (*Gateway, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	if c.engine == nil {
		c.engine = views.New(views.Config(c.Views))
	}
	g := &Gateway{
		views: c.engine, registry: c.Registry, started: time.Now(), log: c.Logger,
		observers: observers{metrics: metrics.New(c.Registry, c.Version, c.Commit), subscribers: introspection.New(c.Logger), reports: introspection.NewDeliveryRate(), moves: limits.NewQuotas(limits.QuotaLimits{RequestsPerSecond: movesPerClient})},
		pumps:     pumps{hijacked: session.NewHijacked(epoll.NewHangupWatcher), pieces: wire.NewCache(c.CompressionCache), lists: wire.NewCache(c.listCache())},
		rights:    rights{authorizations: authz.NewTable(), audit: access.NewAuditLog(), refusals: authz.NewRefusalLog(c.Logger)},
	}
	g.digestsOff.Store(c.Digest == DigestOff)
	g.shares = g.newShares(c)
	g.authorizations.Audit = g.audit
	g.series = introspection.NewRecorder(c.Registry, g.lags)
	g.watch()
	g.watchSpans(c.Tracing)
	g.metrics.WatchStores(c.Stores)
	g.metrics.WatchJournal(c.Journal)
	g.metrics.WatchCluster(c.Cluster)
	deps := g.newDeps(c)
	first, err := g.settings(c, deps, authz.New(g.access(c)), nil)
	if err != nil {
		return nil, err
	}
	g.audit.SetOutput(c.audit())
	g.metrics.WatchRules(c.policy().Failures)
	g.now.Store(first)
	g.authorizations.Reevaluate(first.evaluator())
	if s := c.sockets(g.doors); s != nil {
		g.shards = shard.New(deps, s, runtime.GOMAXPROCS(0), c.AfterRush)
	}
	return g, nil
}

func (g *Gateway) newShares(c Config) shares {
	doors := netconn.NewConnections(c.MaxConnections, c.Logger)
	return shares{
		admission: limits.New(c.limits(), c.spread()), quotas: limits.NewQuotas(c.quotas()), doors: doors,
		handshakes: netconn.NewHandshakes(c.MaxHandshakes, c.MaxHandshakesPerClient, g.trusts, doors),
		outputs:    limits.NewBudget(outputsBudget),
		snapshots:  limits.NewSnapshotBudget(c.SnapshotBudget, g.metrics),
		bodies:     limits.NewBodies(c.BodyBudget, g.metrics.BodyRefused, g.retryHint),
		answers:    limits.NewAnswers(c.AnswerBudget, g.metrics.AnswerRefused, g.retryHint),
	}
}

// trusts reports whether an address is that of a trusted proxy.
func (g *Gateway) trusts(a netip.Addr) bool { return g.now.Load().proxies.Trusts(a) }

// watch exports the metrics of the parts of the gateway.
func (g *Gateway) watch() {
	g.metrics.WatchAdmission(g.admission)
	g.metrics.WatchConnections(g.doors)
	g.metrics.WatchHandshakes(g.handshakes)
	g.metrics.WatchViews(g.views.Stats)
	g.metrics.WatchPieces(g.pieces, g.lists)
	g.metrics.WatchStretches(func() (made, sent uint64, bytes int64) { return g.shards.Stretches() })
	g.metrics.WatchAudit(g.audit)
	g.metrics.WatchCertificates(func() map[string]*x509.Certificate { return g.now.Load().cfg.Certificates })
	g.metrics.WatchBudgets(g.bodies.Bytes, g.answers.Bytes)
}

// retryHint returns when one client should come back.
func (g *Gateway) retryHint() time.Duration { return g.now.Load().deps.RetryHint() }

// newDeps returns the parts of the gateway that streams use.
func (g *Gateway) newDeps(c Config) *session.Deps {
	return &session.Deps{
		Settings: c.streams(), Instance: c.Instance,
		Log: g.log, Metrics: g.metrics, Series: g.series, Admission: g.admission, Snapshots: g.snapshots, Subscribers: g.subscribers, Pieces: g.pieces, Authorizations: g.authorizations, Quotas: g.quotas, Tracing: c.tracing(), DigestsOff: &g.digestsOff,
	}
}

// Handler returns the public routes: the streams, the API, the probes and the page.
// Those for operators are in OperationsHandler.
//
// It may be mounted in any http.Server that has no WriteTimeout and whose middleware,
// if it wraps the ResponseWriter, has an Unwrap method. Serve meets both conditions,
// and does more.
func (g *Gateway) Handler() http.Handler {
	return g.serving(func(s *settings) http.Handler { return s.public })
}

// serving serves each request with a handler of the settings that are current when the request
// begins.
func (g *Gateway) serving(by func(*settings) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		growStack(len(r.Method))
		by(g.now.Load()).ServeHTTP(w, r)
	})
}

// growStack gives the goroutine of a request room on its stack. It is called where there is little on the stack: Go copies
// all of it each time that it grows. Where it grew below the handlers, that was a tenth of the processor time of a resume.
// The argument, which may be any length, only keeps the compiler from leaving the room out.
//
//go:noinline
func growStack(at int) byte {
	var room [requestStack]byte
	return room[at%requestStack]
}

// requestStack is how many bytes there is room for. With so many, the growth of stacks is no longer seen in a profile of resumes.
const requestStack = 6 << 10

const (
	sessionPath = "/v1/session"
	loginPath   = "/v1/login"
)

// handler has every route, on one screen. profiles may be nil.
func (g *settings) handler(operators bool, profiles http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(skipCancelled, g.counted(r))
	if operators {
		r.Use(limits.ForOperators)
	}
	r.Use(g.traced, noSniff, g.named, g.closing, g.healthFirst, netconn.HalfClose, g.checkHost, g.cors, rest.BoundBodies, g.identify)
	r.NotFound(problem.NotFound)
	r.MethodNotAllowed(problem.MethodNotAllowed(r))
	get := func(path string, h http.HandlerFunc) {
		r.Get(path, h)
		r.Head(path, h)
	}

	// Streams: shard pump where it can, else goroutine pump.
	get("/v1/events", g.handleEvents)
	get("/v1/watches/{watch}/events", g.handleWatchEvents)
	get("/v1/watches/{watch}/counts/events", g.handleCountEvents)

	// Renewals of open streams with another credential, and moves of their windows.
	r.Put("/v1/streams/{stream}", rest.WithoutBody(g.handleRenew))
	r.Post("/v1/streams/{stream}/window", rest.WithoutBody(g.handleMove))

	// Long poll, for clients and proxies that cannot stream.
	get("/v1/watches/{watch}/changes", g.unary.Changes)
	get("/v1/watches/{watch}/counts/changes", g.unary.CountChanges)

	// What has changed lately.
	get("/v1/watches/{watch}/history", g.unary.History)

	// Everything unary.
	g.unary.Route(r)

	// Sessions and tickets, if the gateway asks for credentials.
	if g.who != nil {
		get(sessionPath, g.unary.Session)
		r.Post(sessionPath, g.unary.NewSession)
		r.Delete(sessionPath, g.unary.EndSession)
		r.Post("/v1/tickets", g.unary.NewTicket)
	}
	if g.signsIn() {
		r.Get(loginPath, g.unary.BeginLogin)
		r.Get(credential.CallbackPath, g.unary.FinishLogin)
	}

	get("/v1/client", g.handleClient)
	if g.cfg.DeliveryReports {
		r.Post(deliveryPath, g.handleDelivery)
	}
	get("/openapi.json", g.handleOpenAPI)
	get("/healthz", g.handleHealthz)
	get("/readyz", g.handleReadyz)
	if (operators || g.servesOperators()) && g.cfg.Metrics {
		get("/metrics", g.onlyOperators(introspection.Shared(g.metricsHandler().ServeHTTP)))
		get("/v1/subscribers", g.paced(introspection.Shared(g.introspection.Subscribers)))
		get("/v1/series", g.paced(introspection.Shared(g.introspection.Series)))
		get("/v1/topology", g.paced(introspection.Shared(g.introspection.Topology)))
		get(introspection.SiblingPath, g.paced(g.introspection.Replica))
		get("/v1/replicas", g.paced(g.introspection.Replicas))
	}

	if profiles != nil {
		get("/debug/pprof/*", g.onlyOperators(profiles.ServeHTTP))
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
	if !headers.IsLoopback(address.String()) {
		return g.Handler()
	}
	return g.serving(func(s *settings) http.Handler {
		if len(s.cfg.Hosts) > 0 || len(s.cfg.TrustedProxies) > 0 || s.cfg.Access != nil {
			return s.public
		}
		return s.local
	})
}

// operationsHandler returns the handler of the operations listener. If other machines can
// reach it and there is a policy, it serves only principals with Access.OperationsRole as
// operators.
func (g *Gateway) operationsHandler(address net.Addr) http.Handler {
	if headers.IsLoopback(address.String()) {
		return g.OperationsHandler()
	}
	return g.serving(func(s *settings) http.Handler { return s.guarded })
}

// OperationsHandler returns the handler for operators: everything that Handler
// serves, with the reasons in full, and also /metrics, /v1/subscribers, /v1/series,
// /v1/topology and /debug/pprof/. Anyone who can reach it may see addresses of clients and
// upstreams.
func (g *Gateway) OperationsHandler() http.Handler {
	return g.serving(func(s *settings) http.Handler { return s.operators })
}
