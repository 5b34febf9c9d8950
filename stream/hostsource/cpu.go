package hostsource

import (
	"maps"
	"slices"
	"time"
)

// cpuMeter turns CPU times into shares. The zero value is ready. It is not safe
// for concurrent use.
type cpuMeter struct {
	samples map[int]cpuSample // by process id
}

// cpuSample is where the measurement of one process stands.
type cpuSample struct {
	start   time.Time // of the process: ids are used again
	at      time.Time
	cpuTime time.Duration
	share   percent
}

// measure returns the share of one core that the process used since it was
// measured last; 0 at first sight.
func (m *cpuMeter) measure(s processStat, now time.Time) percent {
	if m.samples == nil {
		m.samples = map[int]cpuSample{}
	}
	before, known := m.samples[s.pid]
	known = known && before.start.Equal(s.start)
	elapsed := now.Sub(before.at)
	if known && elapsed < MinInterval {
		// After a reconnect: a clock tick in so short a time would look like
		// a busy process. The time is counted in the next measurement.
		return before.share
	}
	next := cpuSample{start: s.start, at: now, cpuTime: s.cpuTime}
	if known {
		next.share = percentOf(float64(s.cpuTime-before.cpuTime), float64(elapsed))
	}
	m.samples[s.pid] = next
	return next.share
}

// forgetOthers forgets the processes that are not in pids, which is sorted.
func (m *cpuMeter) forgetOthers(pids []int) {
	maps.DeleteFunc(m.samples, func(pid int, _ cpuSample) bool {
		_, there := slices.BinarySearch(pids, pid)
		return !there
	})
}
