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
//	peak-MB, raw-peak-MB     memory that this took at its peak, resident, with
//	                         what the collector had not freed yet
//	changes/s, raw-changes/s from the first acknowledgement to the last delivery
//	added-p50-µs, -p99-µs    later than the library alone, for each change, at
//	                         500 changes/s
func Run(b *testing.B, rig Rig) {
	rig.Resources = cmp.Or(rig.Resources, 100_000)
	rig.Writes = cmp.Or(rig.Writes, 20_000)
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	if err := rig.load(ctx); err != nil {
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

// measurement holds the results, one figure for each iteration.
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
	b.ReportMetric(0, "ns/op") // of all phases together: meaningless
	b.ReportMetric(float64(m.rig.Resources), "resources")
	for unit, figures := range m.seen {
		b.ReportMetric(median(figures), unit)
	}
}

// prime reads the collection three times in each way and keeps the medians.
func (m *measurement) prime() error {
	const times = 3
	var ours, raws []float64
	for range times {
		took, err := m.timed("prime-s", "peak-MB", m.primeOnce)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		if took, err = m.timed("raw-prime-s", "raw-peak-MB", m.rawPrime); err != nil {
			return err
		}
		raws = append(raws, took)
	}
	m.note("prime/raw", median(ours)/median(raws))
	return nil
}

// timed records the time that a way to read the collection takes, in seconds, and
// its peak memory.
func (m *measurement) timed(time, memory string, read func() (seconds float64, done func() error, err error)) (float64, error) {
	before := resetPeak()
	took, done, err := read()
	if err != nil {
		return 0, err
	}
	if before > 0 {
		m.note(memory, float64(peakMemory()-before)/1e6)
	}
	m.note(time, took)
	return took, done()
}

func (m *measurement) primeOnce() (seconds float64, done func() error, err error) {
	begin := time.Now()
	f, err := m.follow()
	if err != nil {
		return 0, nil, err
	}
	seconds = time.Since(begin).Seconds()
	if n := f.watch.Snapshot().Count(); n < m.rig.Resources {
		err = fmt.Errorf("primed with %d resources of %d", n, m.rig.Resources)
	}
	return seconds, func() error { f.close(); return err }, nil
}

func (m *measurement) rawPrime() (seconds float64, done func() error, err error) {
	begin := time.Now()
	r, err := m.startRaw(nil)
	if err != nil {
		return 0, nil, err
	}
	return time.Since(begin).Seconds(), r.close, nil
}

// median sorts the figures.
func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}
