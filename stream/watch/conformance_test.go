package watch_test

import (
	"context"
	"fmt"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestScriptedUpstreamConforms puts the source of the property tests through the
// suite that every source passes, in each of its modes.
func TestScriptedUpstreamConforms(t *testing.T) {
	for name, deletes := range map[string]streamtest.DeleteRevisions{
		"own revision": streamtest.OwnRevision, "no revision": streamtest.NoRevision, "last seen": streamtest.LastSeen,
	} {
		t.Run("deletes with "+name, func(t *testing.T) {
			sourcetest.Run(t, func(*testing.T) *sourcetest.Harness { return upstreamHarness(deletes, true) })
		})
	}
	t.Run("without history", func(t *testing.T) {
		sourcetest.Run(t, func(*testing.T) *sourcetest.Harness { return upstreamHarness(streamtest.OwnRevision, false) })
	})
}

func upstreamHarness(deletes streamtest.DeleteRevisions, resumes bool) *sourcetest.Harness {
	u := streamtest.NewUpstream("e", deletes)
	r := u.Replica()
	if !resumes {
		r.Forget()
	}
	commit := func(writes ...streamtest.Write) error {
		u.Commit(1, writes...)
		r.Catch(-1)
		return nil
	}
	return &sourcetest.Harness{
		Source:      r,
		Put:         func(key, value string) error { return commit(streamtest.Write{Key: key, Value: value}) },
		Delete:      func(key string) error { return commit(streamtest.Write{Key: key, Delete: true}) },
		Transaction: func(writes []streamtest.Write) error { return commit(writes...) },
		Disconnect:  func() { r.Disconnect(streamtest.ErrCut) },
		Restore: func() {
			u.Restore("restored", 0)
			r.Move()
		},
		Resumes: resumes,
	}
}

// TestReadersAtOnce follows one watch from many goroutines, as fast and as slow as
// they happen to be, while another one writes. Run it with the race detector.
func TestReadersAtOnce(t *testing.T) {
	upstream := streamtest.NewUpstream("e", streamtest.OwnRevision)
	endpoint := upstream.Replica()
	registry := watch.NewRegistry()
	defer registry.Close()
	watch, err := registry.Add(watch.Config{Name: "w", Source: endpoint, History: log.Retention{MaxDeletes: 50}})
	if err != nil {
		t.Fatal(err)
	}
	history := &streamtest.History{Truth: upstream.Truth(), Heartbeat: time.Second}
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	for i := range 8 {
		readers.Go(func() {
			c := history.Connect(watch, streamtest.Dial{Client: fmt.Sprint(i), Replica: "A", Slow: true})
			c.Run(ctx)
		})
	}
	pad := strings.Repeat("x", 8<<10)
	for n := range 600 {
		key := keys[n%len(keys)]
		upstream.Commit(1, streamtest.Write{Key: key, Value: fmt.Sprintf(`{"n":%d,"pad":"%s"}`, n, pad), Delete: n%7 == 6})
		endpoint.Catch(-1)
	}
	last := history.Connect(watch, streamtest.Dial{Client: "last", Replica: "A", Slow: true})
	for last.Drain(); last.State().Diff(upstream.State()) != ""; last.Drain() {
		<-last.Changed()
	}
	stop()
	readers.Wait()
	for _, c := range history.Connections() {
		c.Drain()
		if err := c.CheckBytes(); err != nil {
			t.Error(err)
		}
		if diff := c.State().Diff(upstream.State()); diff != "" {
			t.Errorf("%v: at the end not what the upstream is: %s", c, diff)
		}
	}
	if err := streamtest.CheckAll(history); err != nil {
		t.Error(err)
	}
	last.Close()
}

// TestSlowReaderCostsNoMemory leaves a reader behind by an eighth of a gigabyte. The log
// may hold what it needs for itself, and no more.
func TestSlowReaderCostsNoMemory(t *testing.T) {
	l := log.NewWriter(log.Config{Watch: "w"})
	if _, err := l.Replace("e", nil, 1); err != nil {
		t.Fatal(err)
	}
	slow := l.Subscribe(log.SubscribeOptions{})
	defer slow.Close()
	var b log.Batch
	for slow.Next(&b) {
	}
	value := []byte(`"` + strings.Repeat("x", 16<<10) + `"`)
	const commits, keys = 8 << 10, 64
	before := heap()
	for n := range commits {
		r := stream.Resource{Key: fmt.Sprint(n % keys), Revision: uint64(n + 2), Value: value}
		if _, err := l.Commit([]log.Change{{Resource: r}}, r.Revision); err != nil {
			t.Fatal(err)
		}
	}
	if grown, most := heap()-before, int64(16<<20); grown > most {
		t.Errorf("the heap grew by %d MiB while a reader was %d MiB behind, want at most %d",
			grown>>20, commits*len(value)>>20, most>>20)
	}
	upserts := 0
	for slow.Next(&b) {
		upserts += b.Count(stream.Upsert)
	}
	if upserts != keys || slow.Skipped() != commits-keys {
		t.Errorf("it was given %d values and skipped %d, want %d and %d", upserts, slow.Skipped(), keys, commits-keys)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
