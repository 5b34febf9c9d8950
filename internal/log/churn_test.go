package log

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// TestSlowReadersOfAWatchThatChanges: where everything changes several times while a reader takes the state once,
// each reader still gets whole states, one after the other, and so it does beside readers that
// take nothing. What older versions hold is bounded.
func TestSlowReadersOfAWatchThatChanges(t *testing.T) {
	for _, test := range []struct {
		name          string
		slow, blocked int
		interval      time.Duration
		within        time.Duration // each reader has a newer state
	}{
		{name: "one", slow: 1, within: 15 * time.Second},
		{name: "one with an interval", slow: 1, interval: 5 * time.Second, within: 20 * time.Second},
		{name: "ten", slow: 10, within: 25 * time.Second},
		{name: "ten, and others that take nothing", slow: 10, blocked: 10, within: 85 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && test.blocked > 0 {
				t.Skip("gigabytes are written")
			}
			synctest.Test(t, func(t *testing.T) {
				const resources, size = 1300, 12_000
				l := NewWriter(Config{Watch: "w"})
				mustReplace(t, l, "e", resources, larges(resources, size)...)
				inSync(l)
				var readers []*churned
				for i := range test.slow + test.blocked {
					s := l.Subscribe(SubscribeOptions{Interval: test.interval, MinRate: 4 << 10})
					defer s.Close()
					readers = append(readers, &churned{s: s, blocked: i >= test.slow, at: time.Now(), within: test.within})
				}
				revision, value := uint64(resources), large("", 0, size).Value
				const step, changed = 50 * time.Millisecond, 130 // 2.6 MB and 31 MB a second
				for n := range int(2 * test.within / step) {
					time.Sleep(step)
					revision++
					var changes []Change
					for i := range changed {
						key := fmt.Sprint("k", (n*changed+i)%resources)
						changes = append(changes, Change{Resource: stream.Resource{Key: key, Revision: revision, Value: value}})
					}
					if _, err := l.Commit(changes, revision); err != nil {
						t.Fatal(err)
					}
					for _, r := range readers {
						r.take(t)
					}
					if held, all := l.pins.Held(), l.Snapshot().Bytes(); held > 2*all {
						t.Fatalf("after %v older versions hold %d bytes, and the log %d", time.Duration(n)*step, held, all)
					}
				}
			})
		})
	}
}

// churned is a reader that takes two flushes now and then.
type churned struct {
	s       *Subscription
	b       Batch
	blocked bool // after its first flushes
	taken   int
	at      time.Time // of its newest state
	within  time.Duration
}

func (r *churned) take(t *testing.T) {
	for range 2 {
		if r.taken++; r.blocked && r.taken > 10 {
			return
		}
		r.s.Next(&r.b)
		r.b.Release()
		if r.s.CaughtUp() {
			r.at = time.Now()
		}
	}
	if late := time.Since(r.at); late > r.within {
		t.Fatalf("a reader has had no state for %v", late)
	}
}
