// Command grpcgatewayserver serves the events it reads from its standard input
// through grpc-gateway: a gRPC server whose WatchList streams every event to every
// caller, and in front of it a proxy that makes a stream of JSON objects of each
// call, with a call of its own for each client. Both run in this process,
// connected by TCP. It ends with its input.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/watchtide/watchtide/bench/internal/peers/feed"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "grpcgatewayserver:", err)
		os.Exit(1)
	}
}

func run() error {
	h := newHub()
	upstream, err := serveGRPC(h)
	if err != nil {
		return err
	}
	mux, err := newProxy(upstream)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(listener, mux)
	fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
	return publish(h, feed.NewReader(os.Stdin, os.Stdout))
}

// serveGRPC returns the address of the gRPC server.
func serveGRPC(h *hub) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := grpc.NewServer()
	api.RegisterWatchServiceServer(server, h)
	go server.Serve(listener)
	return listener.Addr().String(), nil
}

// newProxy is an unmodified grpc-gateway. The argument of HandlePath is the code
// that its generator writes for a method with a streamed answer; WatchList of
// this API has no path, so nothing was generated for it.
func newProxy(upstream string) (*runtime.ServeMux, error) {
	conn, err := grpc.NewClient(upstream, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	client, mux := api.NewWatchServiceClient(conn), runtime.NewServeMux()
	const pattern = "/v1/watches/{watch}/events"
	return mux, mux.HandlePath(http.MethodGet, pattern, func(w http.ResponseWriter, r *http.Request, parameters map[string]string) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		_, marshaler := runtime.MarshalerForRequest(mux, r)
		ctx, err := runtime.AnnotateContext(ctx, mux, r, api.WatchService_WatchList_FullMethodName, runtime.WithHTTPPathPattern(pattern))
		if err != nil {
			runtime.HTTPError(ctx, mux, marshaler, w, r, err)
			return
		}
		stream, metadata, err := watchList(ctx, client, parameters["watch"])
		ctx = runtime.NewServerMetadataContext(ctx, metadata)
		if err != nil {
			runtime.HTTPError(ctx, mux, marshaler, w, r, err)
			return
		}
		runtime.ForwardResponseStream(ctx, mux, marshaler, w, r, recv(stream), mux.GetForwardResponseOptions()...)
	})
}

func watchList(ctx context.Context, client api.WatchServiceClient, watch string) (grpc.ServerStreamingClient[api.WatchListResponse], runtime.ServerMetadata, error) {
	var metadata runtime.ServerMetadata
	stream, err := client.WatchList(ctx, &api.WatchListRequest{Watch: watch})
	if err != nil {
		return nil, metadata, err
	}
	metadata.HeaderMD, err = stream.Header()
	return stream, metadata, err
}

// publish passes on fed events, and answers once every caller's channel has
// them.
func publish(h *hub, in *feed.Reader) error {
	for {
		events, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			h.publish(e)
		}
		if err := in.Answer(); err != nil {
			return err
		}
	}
}

// recv is the proxy's source of messages.
func recv(stream grpc.ServerStreamingClient[api.WatchListResponse]) func() (proto.Message, error) {
	return func() (proto.Message, error) { return stream.Recv() }
}
