package grpc

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// upstream is a server of WatchList that follows a test's scripts, call by call.
type upstream struct {
	pb.UnimplementedWatchServiceServer

	// Static after construction.
	scripts []script // one for each call; the last one for all that follow
	address string

	calls atomic.Int64
}

// script handles one call of the server.
type script func(c *call) error

// call is one call of WatchList. Owned by its goroutine.
type call struct {
	*pb.WatchListRequest
	metadata metadata.MD
	out      grpc.ServerStreamingServer[message]
}

// WatchList implements pb.WatchServiceServer.
func (u *upstream) WatchList(r *pb.WatchListRequest, out grpc.ServerStreamingServer[message]) error {
	n := int(u.calls.Add(1))
	md, _ := metadata.FromIncomingContext(out.Context())
	return u.scripts[min(n, len(u.scripts))-1](&call{WatchListRequest: r, metadata: md, out: out})
}

// send sends events; errors of a disconnected client do not matter.
func (c *call) send(events ...*message) {
	for _, m := range events {
		_ = c.out.Send(m)
	}
}

// hold keeps the stream open, and silent, until the client disconnects.
func (c *call) hold() error {
	<-c.out.Context().Done()
	return c.out.Context().Err()
}

// say is a script that sends events and then keeps the stream open.
func say(events ...*message) script {
	return func(c *call) error {
		c.send(events...)
		return c.hold()
	}
}

// sayAndEnd is a script that sends events and then ends the stream.
func sayAndEnd(err error, events ...*message) script {
	return func(c *call) error {
		c.send(events...)
		return err
	}
}

// serve starts a server on loopback.
func serve(t *testing.T, scripts ...script) *upstream {
	t.Helper()
	return serveWith(t, nil, scripts...)
}

func serveWith(t *testing.T, options []grpc.ServerOption, scripts ...script) *upstream {
	t.Helper()
	u := &upstream{scripts: scripts}
	server := grpc.NewServer(options...)
	pb.RegisterWatchServiceServer(server, u)
	u.address = listen(t, server)
	return u
}

// listen serves on a port of its own until the test ends.
func listen(t *testing.T, server *grpc.Server) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return listener.Addr().String()
}

// memory is a network in memory, for one server.
type memory chan net.Conn

// dial connects a client.
func (m memory) dial(ctx context.Context, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve starts a server on the network; end stops it.
func (m memory) serve(scripts ...script) (u *upstream, end func()) {
	u = &upstream{scripts: scripts, address: "passthrough:///memory"}
	server := grpc.NewServer()
	pb.RegisterWatchServiceServer(server, u)
	listener := &memoryListener{conns: m, closed: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	return u, func() {
		server.Stop()
		<-ended
	}
}

// memoryListener gives a server the connections of a network in memory.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	close(l.closed)
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
