//go:build servers

package soak

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

const etcdPrefix = "/soak/"

// etcdUpstream is a real etcd, a process of its own.
type etcdUpstream struct {
	server *realserver.Server
	client *clientv3.Client
	dir    string
}

func serveEtcd(t *testing.T) *etcdUpstream {
	t.Helper()
	e := &etcdUpstream{dir: t.TempDir()}
	e.server = realserver.Start(t, realserver.Build(t, "etcd"), "-listen", realserver.FreeAddress(t), "-data", e.dir)
	quick := backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.2, MaxDelay: 100 * time.Millisecond}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{e.server.Addr()}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: time.Second})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	e.client = client
	if err := e.serving(); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *etcdUpstream) address() string { return e.server.Addr() }

func (e *etcdUpstream) commit(ctx context.Context, writes []write) (uint64, error) {
	var ops []clientv3.Op
	for _, w := range writes {
		if w.value == nil {
			ops = append(ops, clientv3.OpDelete(etcdPrefix+w.key))
			continue
		}
		ops = append(ops, clientv3.OpPut(etcdPrefix+w.key, string(w.value)))
	}
	answer, err := e.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return 0, err
	}
	return uint64(answer.Header.Revision), nil
}

func (e *etcdUpstream) list(ctx context.Context) (all []stream.Resource, revision uint64, err error) {
	answer, err := e.client.Get(ctx, etcdPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, 0, err
	}
	for _, kv := range answer.Kvs {
		key := strings.TrimPrefix(string(kv.Key), etcdPrefix)
		all = append(all, stream.Resource{Key: key, Revision: uint64(kv.ModRevision), Value: kv.Value})
	}
	return all, uint64(answer.Header.Revision), nil
}

func (e *etcdUpstream) restart() error {
	if err := e.server.Restart(); err != nil {
		return err
	}
	return e.serving()
}

func (e *etcdUpstream) wipe() error {
	e.server.Kill()
	if err := os.RemoveAll(filepath.Join(e.dir, "member.etcd")); err != nil {
		return err
	}
	return e.restart()
}

// serving waits until there is a leader.
func (e *etcdUpstream) serving() error {
	for deadline := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, _, err := e.list(ctx)
		cancel()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// compact discards everything before the present revision.
func (e *etcdUpstream) compact() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, revision, err := e.list(ctx)
	if err != nil {
		return err
	}
	_, err = e.client.Compact(ctx, int64(revision))
	return err
}
