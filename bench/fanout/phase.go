package main

import (
	"context"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// progress is the state at the start of a phase.
type progress struct {
	before load.Stats
	began  time.Time
}

// figures are the results of a phase under load.
type figures struct {
	events  uint64 // delivered
	lost    float64
	took    time.Duration // until the last delivery
	used    process.Usage
	latency child.Latency
}

// phase publishes, waits for the deliveries, and measures both. publish
// returns how many events were published.
func (b *pairing) phase(ctx context.Context, publish func(*progress) (int, error)) (f figures, err error) {
	if _, err := b.loader.Latency(); err != nil {
		return f, err
	}
	p := &progress{began: time.Now()}
	if p.before, err = b.loader.Stats(); err != nil {
		return f, err
	}
	f.used, err = b.cost(func() error {
		n, err := publish(p)
		if err != nil {
			return err
		}
		want := n * b.open
		f.events, err = b.delivered(ctx, p.before, want)
		f.took = time.Since(p.began)
		if f.events < uint64(want) {
			f.took -= standstill
			f.lost = 1 - float64(f.events)/float64(want)
		}
		return err
	})
	if err != nil {
		return f, err
	}
	f.latency, err = b.loader.Latency()
	return f, err
}

// note records the figures.
func (f figures) note(b *pairing, phase string) {
	events := max(float64(f.events), 1)
	b.add(phase+": user µs", microseconds(f.used.User)/events)
	b.add(phase+": system µs", microseconds(f.used.System)/events)
	b.add(phase+": µs", microseconds(f.used.Total())/events)
	b.add(phase+": k/s", float64(f.events)/f.took.Seconds()/1000)
	b.add(phase+": lost %", f.lost*100)
	b.add(phase+": p50 ms", microseconds(f.latency.P50)/1000)
	b.add(phase+": p99 ms", microseconds(f.latency.P99)/1000)
}
