package grpc_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/streamtest/figures"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// BenchmarkUpstream measures the source beside the generated client alone: see
// package figures. The store that both follow runs in this process, and shares its
// processors and its memory.
func BenchmarkUpstream(b *testing.B) {
	writer, address := storeServed(b)
	source, err := grpcsource.New(grpcsource.Config{Address: address, Watch: watched})
	if err != nil {
		b.Fatal(err)
	}
	defer source.Close()
	figures.Run(b, figures.Rig{
		Source: source,
		Put: func(ctx context.Context, i int, value []byte) error {
			_, _, err := writer.Put(ctx, stream.PutRequest{Key: fmt.Sprintf("key-%06d", i), Value: value})
			return err
		},
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return followRaw(ctx, address, primed, changed)
		},
	})
}

// storeServed is a store behind a real gRPC server.
func storeServed(b *testing.B) (writer stream.Writer, address string) {
	b.Helper()
	s := store.New(store.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server, ended := grpc.NewServer(), make(chan struct{})
	pb.RegisterWatchServiceServer(server, s)
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	b.Cleanup(func() { server.Stop(); <-ended })
	return s.Writer(watched), l.Addr().String()
}

// followRaw is a program that uses only the library.
func followRaw(ctx context.Context, address string, primed func(), changed func(value []byte)) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	call, err := pb.NewWatchServiceClient(conn).WatchList(ctx, &pb.WatchListRequest{Watch: watched})
	if err != nil {
		return err
	}
	values := map[string][]byte{}
	for {
		e, err := call.Recv()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case e.GetEndOfSnapshot() != nil:
			primed()
		case e.GetUpsert() != nil:
			r := e.GetUpsert().GetResource()
			values[r.GetKey()] = r.GetValue()
			changed(r.GetValue())
		}
	}
}
