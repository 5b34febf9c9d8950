package host

import (
	"maps"
	"slices"
	"time"
)

// cpuMeter converts CPU times to shares. The zero value is ready. It is not
// safe for concurrent use.
type cpuMeter struct {
	samples map[int]cpuSample // by process id
}

// cpuSample is the state of the measurement of one process.
type cpuSample struct {
	start   time.Time // of the process: ids are reused
	at      time.Time
	cpuTime time.Duration
	share   percent
}

// measure returns the share of one core that the process used since the
// last measurement; 0 the first time.
func (m *cpuMeter) measure(s processStat, now time.Time) percent {
	if m.samples == nil {
		m.samples = map[int]cpuSample{}
	}
	before, known := m.samples[s.pid]
	known = known && before.start.Equal(s.start)
	elapsed := now.Sub(before.at)
	if known && elapsed < MinInterval {
		// After a reconnect: a clock tick in such a short time would look
		// like a busy process. The time is counted in the next measurement.
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
