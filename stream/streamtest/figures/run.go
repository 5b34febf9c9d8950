package figures

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Run loads the upstream and measures each phase; the figures are metrics of the
// benchmark:
//
//	prime-s, raw-prime-s     from connecting to the whole collection
//	prime/raw                the first by the second
//	peak-MB                  memory that priming took at its peak, resident
//	changes/s, raw-changes/s from the first acknowledgement to the last delivery
//	added-p50-µs, -p99-µs    later than the library alone, for each change, at
//	                         500 changes/s
func Run(b *testing.B, rig Rig) {
	rig.Resources = cmp.Or(rig.Resources, 100_000)
	rig.Writes = cmp.Or(rig.Writes, 20_000)
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	if err := rig.Load(ctx, func(int) []byte { return stamped(0) }); err != nil {
		b.Fatalf("loading %d resources: %v", rig.Resources, err)
	}
	m := measurement{rig: rig, ctx: ctx}
	b.ResetTimer()
	for b.Loop() {
		if err := m.run(); err != nil {
			b.Fatal(err)
		}
	}
	m.report(b)
}

// measurement holds what was seen, one figure for each iteration.
type measurement struct {
	rig   Rig
	ctx   context.Context
	stamp int64
	seen  map[string][]float64
}

func (m *measurement) run() error {
	if m.seen == nil {
		m.seen = map[string][]float64{}
	}
	for _, phase := range []func() error{m.prime, m.latency, m.throughput} {
		if err := phase(); err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) note(unit string, figure float64) {
	m.seen[unit] = append(m.seen[unit], figure)
}

// report shows the medians.
func (m *measurement) report(b *testing.B) {
	b.ReportMetric(0, "ns/op") // of all phases together: says nothing
	for unit, figures := range m.seen {
		slices.Sort(figures)
		b.ReportMetric(figures[len(figures)/2], unit)
	}
}

// prime reads the collection three times in each way and keeps the medians.
func (m *measurement) prime() error {
	const times = 3
	var ours, raws []float64
	for range times {
		took, peak, err := m.primeOnce()
		if err != nil {
			return err
		}
		ours = append(ours, took.Seconds())
		if peak > 0 {
			m.note("peak-MB", float64(peak)/1e6)
		}
		if took, err = m.rawPrime(); err != nil {
			return err
		}
		raws = append(raws, took.Seconds())
	}
	slices.Sort(ours)
	slices.Sort(raws)
	m.note("prime-s", ours[times/2])
	m.note("raw-prime-s", raws[times/2])
	m.note("prime/raw", ours[times/2]/raws[times/2])
	return nil
}

func (m *measurement) primeOnce() (took time.Duration, peak int64, err error) {
	before := resetPeak()
	begin := time.Now()
	f, err := m.follow()
	if err != nil {
		return 0, 0, err
	}
	defer f.close()
	took = time.Since(begin)
	if n := f.watch.View().Count(); n < m.rig.Resources {
		return 0, 0, fmt.Errorf("primed with %d resources of %d", n, m.rig.Resources)
	}
	if before > 0 {
		peak = peakMemory() - before
	}
	return took, peak, nil
}

func (m *measurement) rawPrime() (time.Duration, error) {
	begin := time.Now()
	r, err := m.startRaw(nil)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, r.close()
}
