//go:build servers

package soak

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// progress is one line on the progress of the run.
func (r *run) progress(c *crowd) string {
	s, a := r.samples[len(r.samples)-1], c.last.Load()
	perSecond, cpu := r.pace(r.samples[max(0, len(r.samples)-15):])
	return fmt.Sprintf("%v: %d subscribers (%d stalled), %.0f deliveries/s, %.2f cores, PSS %s, heap %s, %d goroutines, %d descriptors; "+
		"resumes: %s; %d joins, %d resets, %d ended by the gateway; %d faults; %d connections checked, %d failures",
		time.Since(r.began).Round(time.Second), s.subscribers, a.Stalled, perSecond, cpu, mib(s.pss), mib(s.heap), s.goroutines, s.descriptors,
		counts(s.metrics.by("watchtide_resumes_total", "outcome")), a.Joins, a.Resets, a.Lost,
		r.totals.struck(), r.totals.checked.Load(), r.failures())
}

func (r *run) failures() int {
	r.totals.mu.Lock()
	defer r.totals.mu.Unlock()
	return r.totals.failed
}

// pace is how many events were sent in a second, and their processor time.
func (r *run) pace(samples []sample) (perSecond, cores float64) {
	if len(samples) < 2 {
		return 0, 0
	}
	first, last := samples[0], samples[len(samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	return (last.events - first.events) / seconds, (last.cpu - first.cpu) / seconds
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func counts[N int | float64](of map[string]N) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %.0f", name, float64(of[name])))
	}
	return strings.Join(parts, ", ")
}

// report is the outcome in Markdown.
func (r *run) report() string {
	var b strings.Builder
	last := r.after.metrics
	perSecond, cores := r.pace(r.samples)
	seconds := r.stopped.Sub(r.began).Seconds()
	fmt.Fprintf(&b, "%s, %s, %d cores: %d subscribers over two watches, %d of them sampled, and %d attackers.\n\n", r.stopped.Sub(r.began).Round(time.Second),
		runtime.Version(), runtime.NumCPU(), r.plan.crowd+r.plan.sampled, r.plan.sampled, r.plan.attackers)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | "+format+" |\n", append([]any{what}, args...)...)
	}
	b.WriteString("| measurement | |\n|---|---|\n")
	changes := r.changes() - r.filled
	row("changes at the upstreams", "%d, %.0f/s", changes, float64(changes)/seconds)
	row("events delivered", "%.0f, %.0f/s, at %.2f cores of the gateway", r.after.events-r.before.events, perSecond, cores)
	row("changes that slow subscribers did not see one by one", "%.0f", last.sum("watchtide_conflated_changes_total"))
	a := r.attendance
	row("streams opened", "%.0f; the crowd disconnected %d times, %d of them by a reset, and stalled %d times", last.sum("watchtide_resumes_total"), a.Leaves, a.Resets, a.Stalls)
	row("how streams began", "%s", counts(last.by("watchtide_resumes_total", "outcome")))
	row("goodbyes", "%s; %.0f streams ended because the client did not read", counts(last.by("watchtide_goodbyes_total", "reason")), last.sum("watchtide_write_timeouts_total"))
	row("upstream connections lost", "%.0f; snapshots loaded: %.0f", last.sum("watchtide_upstream_reconnects_total"), last.sum("watchtide_upstream_resyncs_total"))
	row("sampled streams checked, counted per watch", "%d with %d events, %d streams compressed: %d failures",
		r.totals.checked.Load(), r.totals.events.Load(), r.totals.compressed.Load(), r.failures())
	row("how sampled streams ended", "%s", counts(r.totals.ends))
	r.reportFaults(&b)
	r.siege.report(&b)
	r.reportLevels(&b)
	return b.String()
}

func (r *run) reportFaults(b *strings.Builder) {
	b.WriteString("\n| fault | times | mean length | slowest recovery |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.totals.faults)) {
		f := r.totals.faults[name]
		fmt.Fprintf(b, "| %s | %d | %v | %v |\n", name, f.times,
			(f.lasted / time.Duration(f.times)).Round(10*time.Millisecond), f.slowest.Round(10*time.Millisecond))
	}
}

// reportLevels leaves out the first quarter, in which history fills up.
func (r *run) reportLevels(b *strings.Builder) {
	b.WriteString("\n| gateway | before | second quarter | third | fourth | after all clients left |\n|---|---|---|---|---|---|\n")
	quarter := len(r.samples) / 4
	line := func(what string, of func(sample) int64, show func(int64) string) {
		fmt.Fprintf(b, "| %s | %s", what, show(of(r.before)))
		for i := 1; i < 4; i++ {
			fmt.Fprintf(b, " | %s", show(level(r.samples[i*quarter:(i+1)*quarter], of)))
		}
		fmt.Fprintf(b, " | %s |\n", show(of(r.after)))
	}
	plain := func(n int64) string { return fmt.Sprint(n) }
	line("subscribers", func(s sample) int64 { return int64(s.subscribers) }, plain)
	line("memory (PSS)", func(s sample) int64 { return s.pss }, mib)
	fmt.Fprintf(b, "| its peak | | | | | %s at any time |\n", mib(most(r.samples, func(s sample) int64 { return s.pss })))
	line("Go heap", func(s sample) int64 { return s.heap }, mib)
	line("compressed cache in the heap", func(s sample) int64 { return s.cached }, mib)
	line("goroutines", func(s sample) int64 { return int64(s.goroutines) }, plain)
	line("descriptors", func(s sample) int64 { return int64(s.descriptors) }, plain)
}
