//go:build servers

package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// subscriber runs a source as a gateway does, and holds the state of a client.
type subscriber struct {
	t     *testing.T
	watch *streamwatch.Watch
	sub   *log.Subscription
	batch log.Batch

	held   map[string]uint64 // revision by key
	resets []string          // reasons
}

// subscribe follows a source from nothing.
func subscribe(t *testing.T, source stream.Source) *subscriber {
	t.Helper()
	r := streamwatch.NewRegistry()
	t.Cleanup(r.Close)
	w, err := r.Add(streamwatch.Config{
		Name: "w", SourceName: "etcd", Source: source, StaleAfter: 50 * time.Millisecond,
		Backoff: streamwatch.Backoff{Min: 5 * time.Millisecond, Max: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &subscriber{t: t, watch: w, sub: w.Subscribe(log.SubscribeOptions{}), held: map[string]uint64{}}
	t.Cleanup(s.sub.Close)
	return s
}

// read consumes everything available.
func (s *subscriber) read() {
	for s.sub.Next(&s.batch) {
		for e := range s.batch.Events() {
			s.apply(e)
		}
	}
}

func (s *subscriber) apply(e stream.Event) {
	switch e.Type {
	case stream.Reset:
		clear(s.held)
		s.resets = append(s.resets, e.Reason)
	case stream.Upsert:
		s.held[e.Resource.Key] = e.Resource.Revision
	case stream.Delete:
		delete(s.held, e.Resource.Key)
	}
}

// await reads until missing returns "".
func (s *subscriber) await(missing func() string) {
	s.t.Helper()
	s.awaitFor(patience, missing)
}

func (s *subscriber) awaitFor(limit time.Duration, missing func() string) {
	s.t.Helper()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	look := time.NewTicker(5 * time.Millisecond) // the awaited state may be another component's
	defer look.Stop()
	for {
		s.read()
		changed := s.sub.Changed()
		what := missing()
		if what == "" {
			return
		}
		select {
		case <-changed:
		case <-look.C:
		case <-timeout.C:
			s.t.Fatalf("after %v still: %s; the watch is %v (%s), its upstream %+v", limit, what,
				s.watch.Status().State, s.watch.Status().Full(), s.watch.Upstream())
		}
	}
}

// awaitState waits until the subscriber holds the server's state. It lists the
// server again after a while: an abandoned write may have arrived late.
func (s *subscriber) awaitState(from *server, prefix string) {
	s.t.Helper()
	want, asked := from.list(prefix), time.Now()
	s.await(func() string {
		if time.Since(asked) > time.Second {
			want, asked = from.list(prefix), time.Now()
		}
		return difference(s.held, want)
	})
}

// awaitSync waits until the watch reports that it is fresh.
func (s *subscriber) awaitSync() {
	s.t.Helper()
	s.await(func() string {
		if s.watch.Status().State != stream.InSync {
			return "not in sync"
		}
		return ""
	})
}

// awaitReason waits until the status contains a reason.
func (s *subscriber) awaitReason(want ...string) {
	s.t.Helper()
	s.await(func() string {
		for _, part := range want {
			if reason := s.watch.Status().Full(); !strings.Contains(reason, part) {
				return fmt.Sprintf("the reason is %q, want %q in it", reason, part)
			}
		}
		return ""
	})
}

// wantResets fails unless exactly these resets were seen.
func (s *subscriber) wantResets(reasons ...string) {
	s.t.Helper()
	s.read()
	if got := fmt.Sprint(s.resets); got != fmt.Sprint(reasons) {
		s.t.Errorf("resets %v, want %v", got, reasons)
	}
}

// list reads the server's contents, by key without the prefix.
func (s *server) list(prefix string) map[string]uint64 {
	s.t.Helper()
	held := map[string]uint64{}
	s.do("list", func(ctx context.Context) error {
		answer, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		for _, kv := range answer.Kvs {
			held[strings.TrimPrefix(string(kv.Key), prefix)] = uint64(kv.ModRevision)
		}
		return nil
	})
	return held
}

// difference describes how two states differ; "" if they do not.
func difference(got, want map[string]uint64) string {
	for key, revision := range want {
		if got[key] != revision {
			return fmt.Sprintf("%q is at %d, want %d (of %d keys, want %d)", key, got[key], revision, len(got), len(want))
		}
	}
	for key := range got {
		if want[key] == 0 {
			return fmt.Sprintf("%q is there, and must not be (of %d keys, want %d)", key, len(got), len(want))
		}
	}
	return ""
}
