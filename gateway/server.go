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

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
)

// Listeners is where a gateway serves. Serve closes them.
type Listeners struct {
	// HTTP serves HTTP/1.1 and HTTP/2; without TLS the latter by prior knowledge
	// (h2c). It serves Handler or, on a loopback address, OperationsHandler without
	// the profiles, unless Config.Hosts or Config.TrustedProxies indicate a proxy.
	HTTP net.Listener
	// HTTPTLS, if not nil, serves HTTP over TLS. Its NextProtos are set.
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
	if l.HTTP == nil {
		return errors.New("gateway.Listeners: HTTP is missing")
	}
	web, calls := g.httpServer(g.publicHandler(l.HTTP.Addr())), rpc.New(g.calls, l.GRPCTLS)
	operations := g.httpServer(http.NotFoundHandler())
	if l.Operations != nil {
		operations = g.httpServer(g.operationsHandler(l.Operations.Addr()))
	}
	defer g.learn(context.WithoutCancel(ctx))()
	timeout := g.now.Load().cfg.WriteTimeout
	failed := make(chan error, 3) // one for each server: none blocks
	go func() {
		failed <- serveHTTP(web, netconn.Listen(l.HTTP, timeout, g.log.With("listener", "http")).Counted(g.doors, true), l.HTTPTLS)
	}()
	running := 1
	if l.GRPC != nil {
		running++
		go func() {
			failed <- rpc.Serve(calls, netconn.Listen(l.GRPC, timeout, g.log.With("listener", "grpc")).Counted(g.doors, false))
		}()
	}

	if l.Operations != nil {
		running++
		go func() {
			failed <- serveHTTP(operations, netconn.Listen(l.Operations, timeout, g.log.With("listener", "operations")), l.OperationsTLS)
		}()
	}

	var err error
	hurried := false
	select {
	case <-ctx.Done():
		hurried = errors.Is(context.Cause(ctx), ErrNoDelay)
		if !hurried {
			g.awaitDrain()
		}
	case err = <-failed:
		running--
	}
	shut, callsDone := closeDoors(l.HTTP, web, calls, g.firstRequests(hurried))
	g.log.Info("listeners closed", "streams", g.admission.Count())
	g.dismiss()
	<-shut
	g.stop(calls, callsDone, web, operations)
	if g.ownViews != nil {
		g.ownViews.Close()
	}
	g.audit.Close(auditPatience)
	for range running {
		if one := <-failed; !errors.Is(one, net.ErrClosed) {
			err = errors.Join(err, one)
		}
	}
	return err
}

// auditPatience is how long Serve waits at its end until the audit log is written.
const auditPatience = 2 * time.Second

func (g *Gateway) httpServer(h http.Handler) *http.Server {
	timeout := g.now.Load().cfg.WriteTimeout
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
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
}

func serveHTTP(s *http.Server, l net.Listener, c *tls.Config) error {
	err := error(nil)
	if c != nil {
		s.TLSConfig = c.Clone()
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
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
