package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/watchtide/watchtide/gateway/internal/h2"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
)

// Listeners is where a gateway serves. Serve closes them.
type Listeners struct {
	// HTTP serves HTTP/1.1 and HTTP/2; without TLS the latter by prior knowledge
	// (h2c). It serves Handler or, on a loopback address, OperationsHandler without
	// the profiles, unless Config.Hosts or Config.TrustedProxies indicate a proxy.
	HTTP net.Listener
	// Open, if not nil, opens the listeners HTTP and GRPC, which may be nil, when each watch
	// that is primed at start is primed, and after Config.PrimeWait at the latest. A
	// proxy without health checks then tries another replica until this one has data.
	Open func(context.Context) (http, grpc net.Listener, err error)
	// HTTPTLS, if not nil, serves HTTP over TLS. Its NextProtos are set, and its DynamicRecordSizingDisabled, so that
	// an event is one record. A configuration that its GetConfigForClient returns is used as it is.
	HTTPTLS *tls.Config
	// GRPC serves gRPC; nil: no gRPC.
	GRPC net.Listener
	// GRPCTLS, if not nil, serves gRPC over TLS.
	GRPCTLS *tls.Config
	// Operations serves OperationsHandler; nil: nothing does. It asks for no
	// credentials: leave it on loopback, or make sure that only operators and their
	// Prometheus can reach it.
	Operations net.Listener
	// OperationsTLS, if not nil, serves Operations over TLS.
	OperationsTLS *tls.Config
}

// Serve serves until ctx ends, then drains and returns nil: /readyz fails at once,
// the listeners are closed after Config.DrainDelay, and the open streams get their
// goodbye over Config.Drain. If the cause of ctx is ErrNoDelay, the listeners are
// closed at once. Serve returns earlier, with an error, if a listener fails. It must
// be called only once.
func (g *Gateway) Serve(ctx context.Context, l Listeners) error {
	if l.HTTP == nil && l.Open == nil {
		return errors.New("gateway.Listeners: HTTP is missing")
	}
	defer g.learn(context.WithoutCancel(ctx))()
	defer g.record(context.WithoutCancel(ctx))()
	s := g.newServers(l)
	s.serveOperations()
	err := s.open(ctx)
	if err == nil && s.listeners.HTTP != nil {
		s.servePublic()
		err = s.wait(ctx)
	}
	if err == nil && ctx.Err() != nil {
		g.log.Info("draining", "reason", context.Cause(ctx).Error())
	}
	delay := err == nil && s.listeners.HTTP != nil && !errors.Is(context.Cause(ctx), ErrNoDelay)
	if delay {
		g.awaitDrain()
	}
	shut, callsDone := s.closeDoors(g.firstRequests(delay))
	g.log.Info("listeners closed", "streams", g.admission.Count())
	if returned := g.dismiss(); delay {
		<-time.After(time.Until(returned))
	}
	<-shut
	g.stop(s.calls, callsDone, s.web, s.operations)
	g.views.Close()
	g.audit.Close(auditPatience)
	return errors.Join(err, s.end())
}

// servers are what a call of Serve runs.
//
// Owned by that call.
type servers struct {
	gateway   *Gateway
	listeners Listeners
	web       *http.Server
	calls     *grpc.Server
	// operations serves nobody if there is no listener for it.
	operations *http.Server

	failed  chan error // one for each server that runs: none blocks
	running int
}

func (g *Gateway) newServers(l Listeners) *servers {
	return &servers{
		gateway: g, listeners: l, failed: make(chan error, 3),
		web: g.httpServer(http.NotFoundHandler()), calls: rpc.New(g.calls, l.GRPCTLS, g.handshakes), operations: g.httpServer(http.NotFoundHandler()),
	}
}

// run runs a server.
func (s *servers) run(serve func() error) {
	s.running++
	go func() { s.failed <- serve() }()
}

// serveOperations serves operators, before there are listeners for anybody else.
func (s *servers) serveOperations() {
	l := s.listeners.Operations
	if l == nil {
		return
	}
	s.operations.Handler = s.gateway.operationsHandler(l.Addr())
	s.run(func() error {
		return s.serveHTTP(s.operations, s.gateway.accepting(l, "operations"), s.listeners.OperationsTLS)
	})
}

// open opens the public listeners as Listeners.Open says. If ctx ends before, it opens none.
func (s *servers) open(ctx context.Context) (err error) {
	if s.listeners.Open == nil {
		return nil
	}
	s.gateway.awaitPrimed(ctx)
	if ctx.Err() == nil {
		s.listeners.HTTP, s.listeners.GRPC, err = s.listeners.Open(ctx)
	}
	return err
}

// awaitPrimed waits until each watch that is primed at start is primed, for
// Config.PrimeWait at most.
func (g *Gateway) awaitPrimed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, g.now.Load().cfg.PrimeWait)
	defer cancel()
	for _, w := range g.registry.Watches() {
		if !w.OnDemand() {
			_ = w.Prime(ctx) // /readyz says why it is not
		}
	}
}

func (s *servers) servePublic() {
	l, doors := s.listeners, s.gateway.doors
	s.web.Handler = s.gateway.publicHandler(l.HTTP.Addr())
	s.run(func() error {
		return s.serveHTTP(s.web, s.gateway.accepting(l.HTTP, "http").Counted(doors, true), l.HTTPTLS)
	})
	if l.GRPC != nil {
		s.run(func() error {
			return rpc.Serve(s.calls, s.gateway.accepting(l.GRPC, "grpc").Counted(doors, false))
		})
	}
}

// wait returns nil when ctx ends, and earlier the error of a listener that fails.
func (s *servers) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		s.running--
		return err
	}
}

// end waits for the servers, and returns their errors.
func (s *servers) end() (err error) {
	for range s.running {
		if one := <-s.failed; !errors.Is(one, net.ErrClosed) {
			err = errors.Join(err, one)
		}
	}
	return err
}

// accepting returns a listener, of that name in the log, whose connections are closed once
// they take no byte for too long.
func (g *Gateway) accepting(l net.Listener, name string) netconn.Listener {
	return netconn.Listen(l, g.now.Load().cfg.WriteTimeout, g.log.With("listener", name))
}

// auditPatience is how long Serve waits at its end until the audit log is written.
const auditPatience = 2 * time.Second

func (g *Gateway) httpServer(h http.Handler) *http.Server {
	cfg := g.now.Load().cfg
	timeout := cfg.WriteTimeout
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler:           h,
		Protocols:         &protocols,
		ReadHeaderTimeout: netconn.ReadHeaderTimeout,
		IdleTimeout:       netconn.IdleTimeout,
		MaxHeaderBytes:    netconn.MaxHeaderBytes,
		ConnContext:       netconn.WithConn,
		ConnState:         g.doors.State,
		// No WriteTimeout: it would end every stream. Each write has its own
		// deadline, see wire.Writer and netconn.StallTimeoutConn.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: netconn.MaxStreams,

			SendPingTimeout:  netconn.PingAfter,
			PingTimeout:      timeout,
			WriteByteTimeout: timeout,
		},
		ErrorLog: log.New(serverLog{g.log}, "", 0),
	}
	if g.shards != nil { // they carry streams of HTTP/2 that a handler detaches, which net/http does not allow
		h2.Configure(s, h2.Settings{
			MaxStreams: netconn.MaxStreams, MaxHeaderBytes: netconn.MaxHeaderBytes, HelloTimeout: netconn.ReadHeaderTimeout,
			IdleTimeout: netconn.IdleTimeout, PingAfter: netconn.PingAfter, PingTimeout: timeout,
			Outputs: g.outputs, MinRate: cfg.MinRate,
		})
	}
	return s
}

// serveHTTP serves a listener, over TLS if c is not nil.
func (s *servers) serveHTTP(server *http.Server, l netconn.Listener, c *tls.Config) error {
	accepting := net.Listener(l)
	if c != nil {
		accepting = l.Secure(c, s.gateway.handshakes)
	}
	err := server.Serve(accepting)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serverLog receives the log of net/http: errors caused by clients, which are
// frequent, and panics of handlers, which are bugs.
type serverLog struct{ log *slog.Logger }

// Write implements io.Writer, for one line.
func (l serverLog) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.Contains(line, []byte("panic")) {
		level = slog.LevelError
	}
	l.log.Log(context.Background(), level, "http server", "message", string(bytes.TrimSpace(line)))
	return len(line), nil
}
