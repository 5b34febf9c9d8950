//go:build servers

package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// many is the number of keys where a test needs many pages.
const many = 50_000

// fill writes n keys of some 300 bytes, in large transactions.
func (s *server) fill(prefix string, n int) {
	s.t.Helper()
	const together = 100
	value := fmt.Sprintf(`{"fill":"%0288d"}`, 0)
	var writing sync.WaitGroup
	for worker := range 4 {
		writing.Go(func() {
			for i := worker * together; i < n; i += 4 * together {
				var ops []clientv3.Op
				for j := i; j < min(i+together, n); j++ {
					ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s%06d", prefix, j), value))
				}
				s.do("fill", func(ctx context.Context) error {
					_, err := s.client.Txn(ctx).Then(ops...).Commit()
					return err
				})
			}
		})
	}
	writing.Wait()
}

// churn changes random keys and compacts, again and again, until the test calls
// stop. Writes in progress are finished.
func (s *server) churn(prefix string, n int) (stop func()) {
	stopped, cancel := context.WithCancel(s.t.Context())
	ctx := s.t.Context()
	var working sync.WaitGroup
	working.Go(func() {
		for i := 0; stopped.Err() == nil; i++ {
			key := fmt.Sprintf("%s%06d", prefix, rand.IntN(n))
			if i%3 == 0 {
				s.client.Delete(ctx, key)
			} else {
				s.client.Put(ctx, key, fmt.Sprint(i))
			}
		}
	})
	working.Go(func() {
		for stopped.Err() == nil {
			if answer, err := s.client.Get(ctx, "x"); err == nil {
				s.client.Compact(ctx, answer.Header.Revision)
			}
		}
	})
	return func() { cancel(); working.Wait() }
}

// TestCompactionInALoop: no revision stays readable for longer than a page takes.
// The snapshot is still complete, at the first attempt.
func TestCompactionInALoop(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		s.fill("/a/", many)
		// A list that takes long enough for thousands of compactions.
		proxy := realserver.NewProxy(t, s.Addr())
		proxy.Delay(10 * time.Millisecond)
		stop := s.churn("/a/", many)
		defer stop()
		c := subscribe(t, newSource(t, Config{Endpoints: []string{proxy.Addr()}, Prefix: "/a/"}))
		c.awaitFor(2*patience, func() string {
			if len(c.held) < many/2 {
				return fmt.Sprintf("it holds %d keys", len(c.held))
			}
			return ""
		})
		stop()
		c.awaitState(s, "/a/")
		c.wantResets("initial")
		c.wantNoReconnects()
	})
}

// wantNoReconnects fails if a connection to the upstream was lost.
func (s *subscriber) wantNoReconnects() {
	s.t.Helper()
	for reason, n := range s.watch.Stats().Reconnects {
		if n != 0 {
			s.t.Errorf("%d connections were lost (%s), want none", n, reason)
		}
	}
}

// TestKilledWhileTheListIsRead kills the server again and again, and restarts it.
func TestKilledWhileTheListIsRead(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.fill("/a/", many/5)
	proxy := realserver.NewProxy(t, s.Addr())
	proxy.Delay(5 * time.Millisecond)
	source := newSource(t, Config{Endpoints: []string{proxy.Addr()}, Prefix: "/a/"})
	c := subscribe(t, source)
	for round := range 4 {
		before := proxy.Bytes(realserver.Client)
		c.await(func() string {
			if proxy.Bytes(realserver.Client) < before+500_000 {
				return "half a megabyte of the list"
			}
			return ""
		})
		s.restart()
		s.put("/a/round", fmt.Sprint(round))
	}
	proxy.Heal()
	c.awaitState(s, "/a/")
	c.wantResets("initial")
}

// TestLargeTransactions are delivered whole, also where etcd sends them in
// fragments.
func TestLargeTransactions(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		source := newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"})
		before := record(t, source, stream.Resume{}, nil)
		c := subscribe(t, newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"}))
		c.awaitSync()
		value := fmt.Sprintf("%0100000d", 0)
		for n := range 5 {
			var ops []clientv3.Op
			for i := range 14 { // 1.4 MB; a server takes 1.5
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("/a/%02d", i), value[:len(value)-n]))
			}
			s.do("transaction", func(ctx context.Context) error {
				_, err := s.client.Txn(ctx).Then(ops...).Commit()
				return err
			})
		}
		c.awaitState(s, "/a/")
		state := c.watch.Snapshot()
		one, _ := state.Get("00")
		for r := range state.Resources() {
			if r.Revision != one.Revision {
				t.Errorf("%q is at %d and %q at %d: want one transaction", r.Key, r.Revision, one.Key, one.Revision)
			}
		}
		c.wantNoReconnects()
		// All of them at once are more than etcd puts into one message.
		after := record(t, source, before.Resume(), before.State())
		if got, want := len(after.State()), 14; got != want && s.modern {
			t.Errorf("%d keys after catching up, want %d", got, want)
		}
	})
}

// TestCatchingUpIsOneTransaction: changes during an outage are delivered at
// once, so that in sync is not reported before.
func TestCatchingUpIsOneTransaction(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		source := newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"})
		s.put("/a/first", "1")
		first := record(t, source, stream.Resume{}, nil)
		s.fill("/a/", 2000)
		second := record(t, source, first.Resume(), first.State())
		if second.Resets() != 0 {
			t.Error("it started over, although nothing was compacted")
		}
		// A server with unreliable progress reports is assumed to have sent
		// everything after a moment.
		if n := len(second.Commits()[0].State); n != 2001 && s.modern {
			t.Errorf("the first commit has %d keys, want 2001", n)
		}
	})
}

// record calls Watch, and ends it after the first commit.
func record(t *testing.T, source stream.Source, resume stream.Resume, state streamtest.State) *streamtest.SinkRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := streamtest.NewSinkRecorder(resume, state)
	ended := make(chan error, 1)
	go func() { ended <- source.Watch(ctx, resume, r) }()
	for changed := r.Changed(); len(r.Commits()) == 0; changed = r.Changed() {
		select {
		case <-changed:
		case err := <-ended:
			t.Fatalf("Watch returned before its first commit: %v", err)
		}
	}
	cancel()
	<-ended
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}
