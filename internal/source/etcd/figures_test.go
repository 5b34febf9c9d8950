//go:build servers

package etcd

import (
	"context"
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/figures"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const measured = "/figures/"

// BenchmarkUpstream measures the source beside the client library alone: see
// package figures.
func BenchmarkUpstream(b *testing.B) {
	s := startServer(b)
	figures.Run(b, figures.Rig{
		Source: newSource(b, Config{Endpoints: []string{s.Addr()}, Prefix: measured}),
		Load: func(ctx context.Context, n int, value []byte) error {
			return load(ctx, s.client, n, string(value))
		},
		Put: func(ctx context.Context, i int, value []byte) error {
			_, err := s.client.Put(ctx, measuredKey(i), string(value))
			return err
		},
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return followRaw(ctx, s.Addr(), primed, changed)
		},
	})
}

func measuredKey(i int) string { return fmt.Sprintf("%skey-%06d", measured, i) }

// load writes in large transactions, several at a time.
func load(ctx context.Context, client *clientv3.Client, n int, value string) error {
	const together = 100
	return figures.Parallel(ctx, (n+together-1)/together, func(ctx context.Context, part int) error {
		var ops []clientv3.Op
		for i := part * together; i < min((part+1)*together, n); i++ {
			ops = append(ops, clientv3.OpPut(measuredKey(i), value))
		}
		_, err := client.Txn(ctx).Then(ops...).Commit()
		return err
	})
}

// followRaw is a program that uses only the library.
func followRaw(ctx context.Context, address string, primed func(), changed func(value []byte)) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
	if err != nil {
		return err
	}
	defer client.Close()
	all, err := client.Get(ctx, measured, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	values := map[string][]byte{}
	for _, kv := range all.Kvs {
		values[string(kv.Key)] = kv.Value
	}
	changes := client.Watch(ctx, measured, clientv3.WithPrefix(), clientv3.WithRev(all.Header.Revision+1))
	primed()
	for answer := range changes {
		for _, e := range answer.Events {
			values[string(e.Kv.Key)] = e.Kv.Value
			changed(e.Kv.Value)
		}
		if err := answer.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
