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
		name             string
		readers, blocked int
		flushes          int // that a reader takes 20 times a second, of 64 KiB
		interval         time.Duration
		within           time.Duration // each reader has a newer state
	}{
		{name: "one", readers: 1, flushes: 2, within: 15 * time.Second},
		{name: "one with an interval", readers: 1, flushes: 2, interval: 5 * time.Second, within: 20 * time.Second},
		{name: "ten", readers: 10, flushes: 2, within: 25 * time.Second},
		{name: "ten, and others that take nothing", readers: 10, blocked: 10, flushes: 2, within: 30 * time.Second},
		{name: "faster ones, and one that takes nothing", readers: 3, blocked: 1, flushes: 20, within: 8 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const resources, size = 650, 24_000
				l := NewWriter(Config{Watch: "w"})
				mustReplace(t, l, "e", resources, larges(resources, size)...)
				inSync(l)
				var readers []*churned
				for i := range test.readers + test.blocked {
					s := l.Subscribe(SubscribeOptions{Interval: test.interval, MinRate: 4 << 10})
					defer s.Close()
					readers = append(readers, &churned{s: s, blocked: i >= test.readers, flushes: test.flushes, at: time.Now(), within: test.within})
				}
				revision, value := uint64(resources), large("", 0, size).Value
				const step, changed = 50 * time.Millisecond, 65 // 1,300 resources and 31 MB a second
				for n := range int(max(2*test.within, 15*time.Second) / step) {
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

// churned is a reader that takes some flushes now and then.
type churned struct {
	s       *Subscription
	b       Batch
	flushes int
	blocked bool // after its first flushes
	taken   int
	at      time.Time // of its newest state
	within  time.Duration
}

func (r *churned) take(t *testing.T) {
	for range r.flushes {
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
