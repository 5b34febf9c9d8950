// Command consulresource is Consul's own resource service, without the rest of
// Consul: its code, its store, its snapshot cache, and its demo types, on a gRPC
// port. It starts immediately and compiles in a minute. It lacks the parts that
// only a whole server has (Raft, restores, ACLs).
//
// It prints "ready <address>", and ends at SIGTERM or when its standard input
// ends. Its data is then gone.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	svctest "github.com/hashicorp/consul/agent/grpc-external/services/resource/testing"
	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/grpc"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	if err := serve(ctx, *listen); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	b := svctest.NewResourceServiceBuilder()
	for _, t := range demoTypes {
		register(b.Registry(), t)
	}
	tb := &process{}
	defer tb.end()
	b.Run(tb)
	server := grpc.NewServer(grpc.UnaryInterceptor(oneWriteAtATime()))
	pbresource.RegisterResourceServiceServer(server, b.ServiceImpl())
	context.AfterFunc(ctx, server.Stop)
	fmt.Println("ready", listener.Addr())
	return server.Serve(listener)
}

// oneWriteAtATime serialises writes, as Raft does in a whole server. This
// server's store assigns a write its version before it accepts the write, so of
// two concurrent ones the older version could come second.
func oneWriteAtATime() grpc.UnaryServerInterceptor {
	var writing sync.Mutex
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		switch req.(type) {
		case *pbresource.WriteRequest, *pbresource.WriteStatusRequest, *pbresource.DeleteRequest:
			writing.Lock()
			defer writing.Unlock()
		}
		return handler(ctx, req)
	}
}
