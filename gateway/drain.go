package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"
)

// ErrNoDelay skips Config.DrainDelay if it is the cause that ends Serve's context:
// no load balancer has to notice that this process stops.
var ErrNoDelay = errors.New("drain without delay")

// Drain takes the gateway out of service. /readyz fails at once; everything else is
// served as before for Config.DrainDelay. Then new streams are refused as overload,
// and the open ones get their goodbye, spread over Config.Drain. Drain returns when
// the last stream has ended, or when the time for all of them to end has passed.
//
// Serve does the same, and more. A program that mounts Handler in its own server
// calls Drain before that server's Shutdown.
func (g *Gateway) Drain() {
	g.awaitDrain()
	g.dismiss()
}

// awaitDrain makes /readyz fail, and gives load balancers time to notice.
func (g *Gateway) awaitDrain() {
	g.leaving.Store(true)
	if delay := g.now.Load().cfg.DrainDelay; delay > 0 {
		<-time.After(delay)
	}
}

// dismiss refuses new streams, ends the open ones with a goodbye, and waits for
// them.
func (g *Gateway) dismiss() {
	began, streams := time.Now(), g.admission.Count()
	g.admission.Drain()
	g.shards.Ring()
	c := g.now.Load().cfg
	patience := time.NewTimer(max(c.Drain, 0) + c.WriteTimeout)
	defer patience.Stop()
	level := slog.LevelInfo
	select {
	case <-g.admission.Idle:
	case <-patience.C:
		level = slog.LevelWarn
	}
	left := g.admission.Count()
	g.log.Log(context.Background(), level, "drained", "streams", streams, "ended", streams-left, "left", left, "took", time.Since(began))
}

// closeDoors closes the listeners, and the connections that wait for a request, so
// that proxies and clients go elsewhere: a proxy without health checks tries its next
// server when a connection is refused. Connections of HTTP/2 and gRPC get a GOAWAY.
// Requests in progress continue. The channel is closed when gRPC has nothing left.
func closeDoors(web *http.Server, calls *grpc.Server) <-chan struct{} {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = web.Shutdown(now) // begins the shutdown; stop waits for it
	done := make(chan struct{})
	go func() {
		defer close(done)
		calls.GracefulStop()
	}()
	return done
}

// stop lets the requests in progress finish for as long as one write may take, then
// closes the remaining connections. It follows closeDoors; until then operators are
// served.
func (g *Gateway) stop(calls *grpc.Server, callsDone <-chan struct{}, servers ...*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), g.now.Load().cfg.WriteTimeout)
	defer cancel()
	abort := context.AfterFunc(ctx, calls.Stop)
	for _, s := range servers {
		if s.Shutdown(ctx) != nil {
			s.Close()
		}
	}
	g.shards.Abort()
	g.hijacked.Abort()
	<-callsDone
	abort()
}
