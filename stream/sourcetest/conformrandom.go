package sourcetest

import (
	"github.com/watchtide/watchtide/internal/streamtest"
	"math/rand/v2"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// conformRandom runs the source as a gateway does, with ingest and a log, under
// random writes, cuts and restarts. A subscriber must end up with the upstream's
// state.
func conformRandom(f *fixture) {
	registry := watch.NewRegistry()
	defer registry.Close()
	watch, err := registry.Add(watch.Config{
		Name: "w", SourceName: "upstream", Source: f.Source,
		Backoff: watch.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	history := &streamtest.History{}
	c := history.Connect(watch, streamtest.Dial{Client: "c"})
	defer c.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		f.randomly(random, n)
		if n%10 == 9 {
			f.awaitClient(c)
		}
	}
	f.awaitClient(c)
	f.awaitInSync(watch)
	for _, err := range c.Broken() {
		f.t.Error(err)
	}
}

// randomly does one thing to the upstream.
func (f *fixture) randomly(random *rand.Rand, n int) {
	switch random.IntN(12) {
	case 0:
		if f.Disconnect != nil {
			f.Disconnect()
		}
	case 1:
		if f.Restart != nil && n%3 == 0 {
			f.Restart()
		}
	case 2, 3, 4:
		f.delete(random.IntN(6))
	default:
		f.put(random.IntN(6), n)
	}
}

// awaitInSync waits until the watch reports that it is in sync.
func (f *fixture) awaitInSync(w *watch.Watch) {
	f.t.Helper()
	timeout := time.NewTimer(Timeout)
	defer timeout.Stop()
	for {
		changed := w.Changed()
		if w.Status().State == stream.InSync {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			f.t.Fatalf("after %v the watch is still %v: %s", Timeout, w.Status().State, w.Status().Reason)
		}
	}
}

// awaitClient reads until the subscriber holds the upstream's state.
func (f *fixture) awaitClient(c *streamtest.Connection) {
	f.t.Helper()
	timeout := time.NewTimer(Timeout)
	defer timeout.Stop()
	for {
		c.Drain()
		changed := c.Changed()
		diff := valuesOf(c.State()).Diff(f.state())
		if diff == "" && c.Synced() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			f.t.Fatalf("after %v the subscriber still does not hold the upstream's state: %s", Timeout, diff)
		}
	}
}
