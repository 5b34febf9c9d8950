package log

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestReadersAndOneWriter runs readers of every kind, without a lock, while the
// writer commits, compacts, forgets and grows the index. Run it with -race.
func TestReadersAndOneWriter(t *testing.T) {
	const keys, rounds = 300, 60
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 20}})
	mustReplace(t, l, "e", 1, upsert("k0", 1))
	inSync(l)
	var done atomic.Bool
	var readers sync.WaitGroup
	states := make([]map[string]string, 4)
	for i := range states {
		readers.Go(func() {
			c, s := &client{state: map[string]string{}}, l.Subscribe(SubscribeOptions{})
			for c.state["last"] == "" {
				<-s.Changed()
				c.drain(s)
				c.take()
			}
			states[i] = c.state
		})
	}
	readers.Go(func() {
		for !done.Load() {
			v := l.Snapshot()
			for r := range v.Resources() {
				if got, ok := v.Get(r.Key); !ok || got.Revision != r.Revision {
					t.Errorf("Get(%s) = %d %v in a snapshot where it is at %d", r.Key, got.Revision, ok, r.Revision)
					return
				}
			}
		}
	})
	revision := uint64(1)
	pad := string(make([]byte, 0))
	for range 500 {
		pad += "xxxxxxxx"
	}
	for round := range rounds {
		for i := range keys {
			revision++
			k := fmt.Sprint("k", i)
			if (i+round)%7 == 0 {
				mustCommit(t, l, revision, remove(k, revision))
				continue
			}
			mustCommit(t, l, revision, Change{Resource: stream.Resource{Key: k, Revision: revision, Value: value(pad)}})
		}
	}
	revision++
	mustCommit(t, l, revision, upsert("last", revision))
	done.Store(true)
	readers.Wait()
	want := stateOf(l.Snapshot())
	for i, got := range states {
		if !maps.Equal(got, want) {
			t.Errorf("reader %d has %d resources, not the log's %d, or others", i, len(got), len(want))
		}
	}
}
