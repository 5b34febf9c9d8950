//go:build servers

package consul

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/streamtest/figures"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

// BenchmarkUpstream measures the source beside Consul's gRPC client alone: see
// package figures.
func BenchmarkUpstream(b *testing.B) {
	server := realserver.Start(b, realserver.Build(b, "consulresource"))
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	typ, err := ParseType(artistType)
	if err != nil {
		b.Fatal(err)
	}
	m := measured{client: pbresource.NewResourceServiceClient(conn), typ: typ}
	source, err := New(Config{Address: server.Addr(), Resources: Resources{Type: artistType}})
	if err != nil {
		b.Fatal(err)
	}
	figures.Run(b, figures.Rig{
		Source: source, Put: m.put,
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return m.follow(ctx, server.Addr(), primed, changed)
		},
	})
}

// measured is the collection that is measured.
type measured struct {
	client pbresource.ResourceServiceClient
	typ    *pbresource.Type
}

// headKey is where a resource repeats the beginning of its value: the
// source delivers the data of a non-public type in base64.
const headKey = "head"

func (m measured) put(ctx context.Context, i int, value []byte) error {
	r := &pbresource.Resource{
		Id:       &pbresource.ID{Name: fmt.Sprintf("key-%06d", i), Type: m.typ, Tenancy: &pbresource.Tenancy{}},
		Data:     &anypb.Any{TypeUrl: artistURL, Value: artistBytes(string(value))},
		Metadata: map[string]string{headKey: string(value[:bytes.IndexByte(value, ',')+1])},
	}
	for {
		_, err := m.client.Write(ctx, &pbresource.WriteRequest{Resource: r})
		if status.Code(err) != codes.Aborted { // a concurrent write came first
			return err
		}
	}
}

// follow is a program that uses only the library.
func (m measured) follow(ctx context.Context, address string, primed func(), changed func(value []byte)) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	watch, err := pbresource.NewResourceServiceClient(conn).WatchList(ctx, &pbresource.WatchListRequest{
		Type: m.typ, Tenancy: &pbresource.Tenancy{},
	})
	if err != nil {
		return err
	}
	values := map[string]*pbresource.Resource{}
	for {
		e, err := watch.Recv()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		if e.GetEndOfSnapshot() != nil {
			primed()
		}
		if r := e.GetUpsert().GetResource(); r != nil {
			values[r.GetId().GetName()] = r
			changed([]byte(r.GetMetadata()[headKey]))
		}
	}
}
