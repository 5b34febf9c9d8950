package gateway

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
)

// Drain makes /readyz fail, refuses new streams as overload, and sends the open
// ones away with goodbye, spread over Config.Drain. It returns when the last of
// them has left, or when one that does not leave has had all the time to do so.
// Serve calls it; a program that mounts Handler in a server of its own calls it
// before that server's Shutdown.
func (g *Gateway) Drain() {
	g.admission.drain()
	g.shards.ring()
	patience := time.NewTimer(max(g.cfg.Drain, 0) + g.cfg.WriteTimeout)
	defer patience.Stop()
	select {
	case <-g.admission.idle:
	case <-patience.C:
		g.log.Warn("streams did not leave in time", "streams", g.admission.count())
	}
}

// stop closes the listeners, lets the requests that are under way end for as
// long as one write may take, then closes what is left.
func (g *Gateway) stop(web *http.Server, rpc *grpc.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), g.cfg.WriteTimeout)
	defer cancel()
	abort := context.AfterFunc(ctx, rpc.Stop)
	if web.Shutdown(ctx) != nil {
		web.Close()
	}
	g.shards.abort()
	g.solos.abort()
	rpc.GracefulStop()
	abort()
}
