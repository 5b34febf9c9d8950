package watch

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// flaky is a Source whose upstream has several outages, each after a healthy time.
// It records how long it takes until the first attempt after each loss, and until
// the upstream is followed again once it is back.
type flaky struct {
	outage, healthy time.Duration

	// Owned by ingest's reader, read when it is idle.
	lost, back time.Time
	attempts   int             // since lost
	retried    []time.Duration // the first attempt, after each loss
	recovered  []time.Duration // after each return
}

func (f *flaky) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	now := time.Now()
	if f.attempts++; f.attempts == 1 && !f.lost.IsZero() {
		f.retried = append(f.retried, now.Sub(f.lost))
	}
	if now.Before(f.back) {
		return errBroken
	}
	if !f.back.IsZero() {
		f.recovered = append(f.recovered, now.Sub(f.back))
	}
	err := snapshotThen("e", 1, nil, stayFor(f.healthy, errBroken))(ctx, stream.Resume{}, sink)
	f.lost, f.attempts = time.Now(), 0
	f.back = f.lost.Add(f.outage)
	return err
}

func TestBackoffStartsAgainAfterTenHealthySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{outage: 6 * time.Second, healthy: 15 * time.Second}
		r := NewRegistry()
		if _, err := r.Add(Config{Name: "w", Source: f}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		r.Close()
		if len(f.recovered) < 10 {
			t.Errorf("%d outages in ten minutes, want at least 10", len(f.recovered))
		}
		for i, wait := range f.retried {
			if first := (Backoff{}).withDefaults().Min; wait > first {
				t.Errorf("outage %d: the first attempt came %v after the loss, want at most %v", i+1, wait, first)
			}
		}
		t.Logf("followed again after: %v", f.recovered)
	})
}

// An upstream that accepts connections and loses them soon is not hammered.
func TestBackoffGrowsWhileConnectionsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{healthy: 9 * time.Second}
		r := NewRegistry()
		if _, err := r.Add(Config{Name: "w", Source: f}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		r.Close()
		var later time.Duration
		for _, wait := range f.retried[10:] {
			later += wait
		}
		if mean := later / time.Duration(len(f.retried)-10); mean < 10*time.Second {
			t.Errorf("attempts come %v after the loss on average, want some 15s", mean)
		}
	})
}

func TestBackoffIsBounded(t *testing.T) {
	for _, b := range []Backoff{{}, {Max: 100 * time.Millisecond}, {Max: 2 * time.Minute}} {
		most := b.withDefaults().Max
		if b.Max > 0 && most != b.Max {
			t.Errorf("%+v is bounded by %v", b, most)
		}
		for failures := 1; failures < 100; failures++ {
			if wait := b.Wait(failures, rand.Float64()); wait > most || wait <= 0 {
				t.Errorf("%+v: a wait of %v after %d failures", b, wait, failures)
			}
		}
	}
}
