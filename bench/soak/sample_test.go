//go:build servers

package soak

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is the gateway's resource usage at a moment.
type sample struct {
	at          time.Time
	subscribers int
	pss         int64 // bytes
	heap        int64 // bytes of the Go heap, garbage included
	cached      int64 // bytes of it that are compressed events for later subscribers, within a budget
	goroutines  int
	descriptors int
	cpu         float64 // seconds so far
	events      float64 // sent so far
	metrics     metrics
}

func (g *gateway) sample() (s sample, err error) {
	s.at = time.Now()
	if s.metrics, err = g.metrics(); err != nil {
		return s, err
	}
	s.subscribers = int(s.metrics.sum("watchtide_subscribers"))
	s.heap = int64(s.metrics["go_memstats_heap_alloc_bytes"])
	s.cached = int64(s.metrics["watchtide_compression_cache_bytes"])
	s.goroutines = int(s.metrics["go_goroutines"])
	s.cpu = s.metrics["process_cpu_seconds_total"]
	s.events = s.metrics.sum("watchtide_events_sent_total")
	if s.pss, err = pss(g.Pid()); err != nil {
		return s, err
	}
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.Pid()))
	s.descriptors = len(names)
	return s, err
}

// pss is the proportional set size of a process: its memory, with shared memory
// divided by the number of its users (proc(5), smaps_rollup).
func pss(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "Pss:" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/smaps_rollup has no line Pss", pid)
}

// most is the maximum over samples.
func most(samples []sample, of func(sample) int64) (n int64) {
	for _, s := range samples {
		n = max(n, of(s))
	}
	return n
}

// level is the median over samples.
func level(samples []sample, of func(sample) int64) int64 {
	if len(samples) == 0 {
		return 0
	}
	var all []int64
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// Each measure is a figure of the gateway, and the allowed rise of its level.
var measures = []struct {
	name  string
	of    func(sample) int64
	share float64 // of the level in the first half
	more  int64   // plus this much
}{
	{"PSS", func(s sample) int64 { return s.pss }, 0.10, 16 << 20},
	{"Go heap", func(s sample) int64 { return s.heap }, 0.15, 16 << 20},
	{"goroutines", func(s sample) int64 { return int64(s.goroutines) }, 0.10, 50},
	{"descriptors without subscribers", func(s sample) int64 { return int64(s.descriptors - s.subscribers) }, 0.10, 100},
}

// grown reports the measures that rose from the first half of the samples to
// the second, without the warm-up.
func grown(samples []sample) (out []string) {
	half := len(samples) / 2
	for _, m := range measures {
		before, after := level(samples[:half], m.of), level(samples[half:], m.of)
		if most := before + int64(m.share*float64(before)) + m.more; after > most {
			out = append(out, fmt.Sprintf("%s rose from %d in the first half to %d in the second: want %d at most", m.name, before, after, most))
		}
	}
	return out
}

// kept reports the measures that are higher after all subscribers have
// disconnected than before they connected.
func kept(before, after sample) (out []string) {
	check := func(name string, was, is, more int64) {
		if is > was+more {
			out = append(out, fmt.Sprintf("%s: %d before the subscribers connected and %d after they disconnected, want %d more at most", name, was, is, more))
		}
	}
	check("subscribers", 0, int64(after.subscribers), 0)
	check("goroutines", int64(before.goroutines), int64(after.goroutines), 8)
	check("descriptors", int64(before.descriptors), int64(after.descriptors), 8)
	check("Go heap without caches", before.heap-before.cached, after.heap-after.cached, 32<<20)
	return out
}
