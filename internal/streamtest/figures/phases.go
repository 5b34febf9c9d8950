package figures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// arrivals are the times at which stamps first+0 … arrived, in one reader.
type arrivals struct {
	first int64
	at    []atomic.Int64 // nanoseconds since begin; 0: not yet
	begin time.Time
	left  atomic.Int64
	all   chan struct{} // closed when none is left
}

func newArrivals(first int64, n int) *arrivals {
	a := &arrivals{first: first, at: make([]atomic.Int64, n), begin: time.Now(), all: make(chan struct{})}
	a.left.Store(int64(n))
	return a
}

// note takes a value, and reports whether it was the last one.
func (a *arrivals) note(value []byte) bool {
	stamp, err := stampOf(value)
	i := stamp - a.first
	if err != nil || i < 0 || i >= int64(len(a.at)) || !a.at[i].CompareAndSwap(0, int64(time.Since(a.begin))) {
		return false
	}
	if a.left.Add(-1) > 0 {
		return false
	}
	close(a.all)
	return true
}

// race lets the library and a watch follow the same writes; both must see n
// stamps from the first that it returns.
func (m *measurement) race(n int, write func(first int64) error) (raw, ours *arrivals, err error) {
	first := m.stamp + 1
	m.stamp += int64(n)
	raw, ours = newArrivals(first, n), newArrivals(first, n)
	library, err := m.startRaw(func(value []byte) { raw.note(value) })
	if err != nil {
		return nil, nil, err
	}
	f, err := m.follow()
	if err != nil {
		return nil, nil, errors.Join(err, library.close())
	}
	defer f.close()
	ctx, cancel := context.WithCancel(m.ctx)
	read := make(chan error, 1)
	go func() { read <- f.read(ctx, ours.note) }()
	if err = write(first); err == nil {
		err = errors.Join(m.await("the watch", ours), m.await("the library", raw))
	}
	cancel()
	return raw, ours, errors.Join(err, <-read, library.close())
}

// late is how long after the last write a change may arrive: only a lost one takes
// longer.
const late = time.Minute

// await waits until a reader has seen everything.
func (m *measurement) await(who string, a *arrivals) error {
	timer := time.NewTimer(late)
	defer timer.Stop()
	select {
	case <-a.all:
		return nil
	case <-timer.C:
	case <-m.ctx.Done():
	}
	return fmt.Errorf("%d changes did not arrive through %s", a.left.Load(), who)
}

// latency writes at a steady rate, each resource once, and records how much later
// the watch is than the library.
func (m *measurement) latency() error {
	n := min(2_000, m.rig.Resources)
	raw, ours, err := m.race(n, func(first int64) error {
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for i := range n {
			<-pace.C
			if err := m.rig.Put(m.ctx, i, stamped(first+int64(i))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	added := make([]float64, n)
	shift := ours.begin.Sub(raw.begin)
	for i := range n {
		added[i] = float64(time.Duration(ours.at[i].Load()-raw.at[i].Load())+shift) / float64(time.Microsecond)
	}
	slices.Sort(added)
	m.note("added-p50-µs", added[n/2])
	m.note("added-p99-µs", added[n*99/100])
	return nil
}

// throughput writes as fast as the upstream accepts it, each resource once.
func (m *measurement) throughput() error {
	n := min(m.rig.Writes, m.rig.Resources)
	var acknowledged atomic.Pointer[time.Time]
	raw, ours, err := m.race(n, func(first int64) error {
		return Parallel(m.ctx, n, func(ctx context.Context, i int) error {
			err := m.rig.Put(ctx, i, stamped(first+int64(i)))
			now := time.Now()
			acknowledged.CompareAndSwap(nil, &now)
			return err
		})
	})
	if err != nil {
		return err
	}
	from := *acknowledged.Load()
	m.note("changes/s", float64(n)/ours.last().Sub(from).Seconds())
	m.note("raw-changes/s", float64(n)/raw.last().Sub(from).Seconds())
	return nil
}

// last is when the last one arrived.
func (a *arrivals) last() time.Time {
	var last int64
	for i := range a.at {
		last = max(last, a.at[i].Load())
	}
	return a.begin.Add(time.Duration(last))
}
