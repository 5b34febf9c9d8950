//go:build servers

package etcd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestFaults(t *testing.T) {
	s := startServer(t)
	proxy := realserver.NewProxy(t, s.Addr())
	withstand(t, "etcd", s, proxy.Addr(), proxy, faults.Fault{
		Name: "cut, and compacted meanwhile", Gone: true,
		Inject: func() error { proxy.Refuse(); proxy.Cut(); return nil },
		Heal:   func() error { s.compact(); proxy.Heal(); return nil },
	})
}

// TestFaultsOld leaves out the network faults, which are the same for every server.
func TestFaultsOld(t *testing.T) {
	s := startOldServer(t)
	withstand(t, "etcd 3.4", s, s.Addr(), nil)
}

// withstand subjects the source to all faults, and to a restored backup.
func withstand(t *testing.T, name string, s *server, address string, proxy *realserver.Proxy, more ...faults.Fault) {
	const prefix = "/faults/"
	source := newSource(t, Config{Endpoints: []string{address}, Prefix: prefix, StallAfter: 700 * time.Millisecond})
	empty, kept := s.backup(), ""
	k := &keyspace{s, prefix}
	faults.Run(t, &faults.Rig{
		Name: name, Source: source, Proxy: proxy,
		Put: k.put, Delete: k.delete, List: k.list,
		Kill: s.Kill, Restart: func() error { s.restart(); return nil },
		Pause: s.Pause, Resume: s.Resume,
		Wipe: func() error { s.wipe(); return nil },
		More: append(more,
			faults.Fault{Name: "restore of an empty backup", Wipes: true, Broken: true, Inject: func() error { s.restore(empty); return nil }},
			faults.Fault{Name: "compaction", Inject: func() error { s.compact(); return nil }},
			faults.Fault{Name: "orderly stop and start", Broken: true, Inject: func() error { kept = s.backup(); return nil }},
			faults.Fault{Name: "restore of a backup", Wipes: true, Broken: true, Inject: func() error { s.restore(kept); return nil }},
		),
		Close: func() { s.client.Close(); s.Kill() },
	})
}

// keyspace writes and reads the followed keys, independently of the source.
type keyspace struct {
	server *server
	prefix string
}

func (k *keyspace) put(ctx context.Context, key, value string) (stream.Resource, error) {
	answer, err := k.server.client.Put(ctx, k.prefix+key, value)
	if err != nil {
		return stream.Resource{}, err
	}
	return stream.Resource{Key: key, Revision: uint64(answer.Header.Revision), Value: []byte(value)}, nil
}

func (k *keyspace) delete(ctx context.Context, key string) (uint64, error) {
	answer, err := k.server.client.Delete(ctx, k.prefix+key)
	if err != nil {
		return 0, err
	}
	return uint64(answer.Header.Revision), nil
}

func (k *keyspace) list(ctx context.Context) (all []stream.Resource, revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := k.server.client.Get(ctx, k.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, 0, err
	}
	for _, kv := range answer.Kvs {
		all = append(all, stream.Resource{Key: strings.TrimPrefix(string(kv.Key), k.prefix), Revision: uint64(kv.ModRevision), Value: kv.Value})
	}
	return all, uint64(answer.Header.Revision), nil
}
