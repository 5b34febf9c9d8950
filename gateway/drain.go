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
// served as before for Config.DrainDelay, except that each answer over HTTP/1.1 closes its
// connection. Then new streams get a goodbye at once, and the open ones get theirs
// spread over Config.Drain, or over less if there are few. Drain returns when the clients of
// the last stream to end have come back elsewhere, or when the time for all of them has passed.
//
// Serve does the same, and more. A program that mounts Handler in its own server
// calls Drain before that server's Shutdown.
func (g *Gateway) Drain() {
	g.awaitDrain()
	<-time.After(time.Until(g.dismiss()))
}

// awaitDrain makes /readyz fail, and gives load balancers time to notice.
func (g *Gateway) awaitDrain() {
	g.leaving.Store(true)
	if delay := g.now.Load().cfg.DrainDelay; delay > 0 {
		<-time.After(delay)
	}
}

// dismiss refuses new streams, ends the open ones with a goodbye, and waits for
// them. By the returned time, their clients have come back elsewhere. One that came to
// a replica which was started here before that could not resume there: that replica begins with a
// newer state than the client has.
func (g *Gateway) dismiss() (returned time.Time) {
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
	if streams == 0 {
		return began
	}
	return time.Now().Add(c.comeBack())
}

// comeBack is the part of Drain, at most half, in which clients come back: the longest time
// that they are told to wait before that.
func (c *Config) comeBack() time.Duration { return max(0, min(c.Retry*3/2, c.Drain/2)) }

// spread is the part of Drain in which goodbyes are sent.
func (c *Config) spread() time.Duration { return c.Drain - c.comeBack() }

// firstRequests is how long a connection that was accepted just before the listener was
// closed may take until its request is here.
const firstRequests = time.Second

// closeDoors closes the listeners, and the connections that wait for another request, so
// that proxies and clients go elsewhere: a proxy without health checks tries its next
// server when a connection is refused. Requests in progress continue. Connections of
// gRPC get a GOAWAY at once, those of HTTP/2 with the answer to a request, and at the latest
// after the given time. Until then the first request of a connection is answered; after
// that net/http closes its connection without an answer, which some proxies turn into a
// 502. The first channel is closed then, and the second one when gRPC has nothing left.
func (s *servers) closeDoors(after time.Duration) (shut, callsDone <-chan struct{}) {
	if s.listeners.HTTP != nil {
		s.listeners.HTTP.Close()
	}
	s.web.SetKeepAlivesEnabled(false)
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(begun)
		<-time.After(after)
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.web.Shutdown(now) // begins the shutdown; stop waits for it
	}()
	go func() {
		defer close(done)
		s.calls.GracefulStop()
	}()
	return begun, done
}

// firstRequests returns how long the first request of a connection is answered after the
// listener was closed. A gateway that stops without a delay has no proxies that send one.
func (g *Gateway) firstRequests(delay bool) time.Duration {
	c := g.now.Load().cfg
	if !delay || c.DrainDelay < 0 {
		return 0
	}
	return min(firstRequests, max(c.Drain, 0))
}

// closing tells the clients of a gateway that drains to use another connection for their
// next request. Otherwise a proxy could send it over one at the moment when the gateway
// closes it. Over HTTP/2 this is a GOAWAY.
func (g *settings) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
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
