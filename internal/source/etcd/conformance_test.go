//go:build servers

package etcd

import (
	"context"
	"fmt"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestConformance(t *testing.T)    { conformance(t, newServer) }
func TestConformanceOld(t *testing.T) { conformance(t, startOldServer) }

// conformance runs the suite on one server; each test has a prefix of its own.
func conformance(t *testing.T, start func(testing.TB) *server) {
	t.Parallel()
	s, n := start(t), 0
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		n++
		return newHarness(t, s, fmt.Sprintf("/conformance/%d/", n))
	})
}

func newHarness(t *testing.T, s *server, prefix string) *sourcetest.Harness {
	proxy := realserver.NewProxy(t, s.Addr())
	source := newSource(t, Config{Endpoints: []string{proxy.Addr()}, Prefix: prefix})
	return &sourcetest.Harness{
		Source:      source,
		Put:         func(key, value string) error { return s.write(prefix, streamtest.Write{Key: key, Value: value}) },
		Delete:      func(key string) error { return s.write(prefix, streamtest.Write{Key: key, Delete: true}) },
		Transaction: func(writes []streamtest.Write) error { return s.write(prefix, writes...) },
		Disconnect:  proxy.Cut,
		Restart:     s.restart,
		Restore:     s.wipe,
		Resumes:     true,
	}
}

// write makes all the writes in one transaction.
func (s *server) write(prefix string, writes ...streamtest.Write) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ops []clientv3.Op
	for _, w := range writes {
		if w.Delete {
			ops = append(ops, clientv3.OpDelete(prefix+w.Key))
			continue
		}
		ops = append(ops, clientv3.OpPut(prefix+w.Key, w.Value))
	}
	_, err := s.client.Txn(ctx).Then(ops...).Commit()
	return err
}

func newSource(t testing.TB, c Config) *Source {
	t.Helper()
	if c.StallAfter == 0 {
		c.StallAfter = 2 * time.Second
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
