//go:build peers

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a plan of a few connections and tenths of seconds.
func small() plan {
	return plan{
		runs: 1, subscribers: 20, sizes: []int{200, 1024}, rate: 100, seconds: 200 * time.Millisecond, window: 50,
		settle: 10 * time.Millisecond, idle: 10 * time.Millisecond, alone: 5,
		resources: 300, bytes: 300, storms: []int{1, 100}, resumes: 5, changes: 7,
		crowd: []int{2, 30}, hold: 100 * time.Millisecond,
	}
}

func newTestBench(t *testing.T, only string) *bench {
	t.Helper()
	b, err := newBench(t.Context(), small(), only, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// TestEveryPart runs all parts on the bare loop and the gateway: nothing is
// missed, and every figure is in the tables.
func TestEveryPart(t *testing.T) {
	b := newTestBench(t, "a write per event|gateway, shards")
	if err := b.runAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for e, seen := range b.sheet {
		if strings.Contains(e.figure, "lost") && seen[0] != 0 {
			t.Errorf("%s: %s is %v, want 0", e.server, e.figure, seen)
		}
		if strings.HasSuffix(e.figure, "k/s") && seen[0] <= 0 {
			t.Errorf("%s: %s is %v, want more than 0", e.server, e.figure, seen)
		}
	}
	if got, ok := b.sheet.median(measured, "upstream streams"); !ok || got != 1 {
		t.Errorf("%v upstream streams, want 1", got)
	}
	var out strings.Builder
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	for _, target := range targets(b.plan) {
		if _, ok := target.got(b); !ok && !strings.Contains(target.want, file) && strings.Contains(out.String(), target.what) {
			t.Errorf("%s was not measured", target.what)
		}
	}
	for _, title := range []string{"Idle", "100 events of 200", "100 events of 1024", "fast as possible, 10", "Snapshots", "come back", "stalls", "heartbeats", "Targets"} {
		if !strings.Contains(out.String(), title) {
			t.Errorf("the output has no table %q", title)
		}
	}
}

// TestEachEventCountsOnce: every connection has counted each published event
// once, however many there are to a publish.
func TestEachEventCountsOnce(t *testing.T) {
	b := newTestBench(t, "^bare|hub|^gateway")
	for _, p := range b.peers {
		t.Run(p.Name, func(t *testing.T) {
			err := b.start(t.Context(), p, peers.Options{Subscribers: 10}, func(b *pairing) error { return countEach(t, b) })
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func countEach(t *testing.T, b *pairing) error {
	if err := b.subscribe(8, load.Request{Bytes: b.server.Request}); err != nil {
		return err
	}
	if err := b.warmUp(t.Context()); err != nil {
		return err
	}
	earlier, err := b.loader.Events()
	if err != nil {
		return err
	}
	f, err := b.phase(t.Context(), func(*progress) (published int, err error) {
		for _, n := range []int{1, 10, 1, 3, 30} {
			if err := b.publish(n, 200+n*100); err != nil {
				return 0, err
			}
			published += n
		}
		return published, nil
	})
	if err != nil {
		return err
	}
	events, err := b.loader.Events()
	if err != nil {
		return err
	}
	for i := range events {
		events[i] -= earlier[i]
	}
	if want := slices.Repeat([]uint64{45}, 8); !slices.Equal(events, want) || f.events != 8*45 || f.latency.Count != 45 {
		t.Errorf("%v events, in all %d, %d latencies: want %v", events, f.events, f.latency.Count, want)
	}
	return nil
}

// TestMissed: events that do not arrive are reported.
func TestMissed(t *testing.T) {
	b := newTestBench(t, "^bare loop, a write per event")
	err := b.start(t.Context(), b.peers[0], peers.Options{Subscribers: 1}, func(b *pairing) error {
		if err := b.subscribe(1, load.Request{Bytes: b.server.Request}); err != nil {
			return err
		}
		f, err := b.phase(t.Context(), func(*progress) (int, error) { return 4, b.publish(3, 200) })
		if f.lost != 0.25 || f.events != 3 {
			t.Errorf("%+v: want a quarter lost", f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestIncompleteSnapshot: a server that sends less does not win.
func TestIncompleteSnapshot(t *testing.T) {
	b := &pairing{bench: &bench{plan: plan{resources: 2}}}
	for body, ok := range map[string]bool{"resource-1 resource-2": true, "resource-1": false} {
		response := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if err := b.complete([]byte(response)); (err == nil) != ok {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestSleepIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sleep(ctx, time.Hour); err == nil {
		t.Error("no error")
	}
}
