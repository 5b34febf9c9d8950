package main

import (
	"fmt"
	"io"
	"strings"
)

const (
	// measured is the server that has targets; limit is the server for
	// comparison, and file sends the bytes of a snapshot at almost no cost.
	measured = "gateway, shards"
	limit    = "bare loop, a write per event"
	file     = "nginx, sendfile"
)

// target is one line of the table of targets.
type target struct {
	what string
	want string // in words
	// got returns false if something was not measured.
	got    func(*bench) (float64, bool)
	format string
	ok     func(float64) bool
}

func targets(p plan) []target {
	size := fmt.Sprintf("%d B", p.sizes[0])
	return []target{
		{"KiB per idle subscriber", "≤ 1", own("idle KiB"), "%.2f", atMost(1)},
		{fmt.Sprintf("the same after %v", p.idle), "≤ 1", own("later KiB"), "%.2f", atMost(1)},
		{"the same, three watches", "≤ 1", own("three watches: KiB"), "%.2f", atMost(1)},
		{fmt.Sprintf("CPU per event, %d events/s of %s to %d", p.rate, size, p.subscribers), "≤ 1.15 × the bare loop", over(limit, size+": µs"), "%.2f ×", atMost(1.15)},
		{"latency p99, same load", "≤ 1.3 × the bare loop", over(limit, size+": p99 ms"), "%.2f ×", atMost(1.3)},
		{"deliveries/s as fast as possible, 1 event per publish", "≥ 10 × the best peer", overBest("flat out, 1: k/s"), "%.1f ×", atLeast(10)},
		{"deliveries/s as fast as possible, 10 events per publish", "≥ 10 × the best peer", overBest("flat out, 10: k/s"), "%.1f ×", atLeast(10)},
		{"p99 of the other subscribers while one stalls", "no change (≤ 1.1 ×)", ratio("one stalls: p99 ms", "nobody stalls: p99 ms"), "%.2f ×", atMost(1.1)},
		{"CPU per snapshot, 100 at once", "≤ 1.3 × nginx sendfile", over(file, "100 at once: CPU s"), "%.2f ×", atMost(1.3)},
		{"the same, 1,000 at once", "≤ 1.3 × nginx sendfile", over(file, "1000 at once: CPU s"), "%.2f ×", atMost(1.3)},
		{"memory beyond the log during these, MiB", "≤ 32", own("100 at once: growth MiB"), "%.0f", atMost(32)},
		{"bytes of the same snapshots with gzip", "≤ 0.25 ×", ratio("100 at once, gzip: MB each", "100 at once: MB each"), "%.2f ×", atMost(0.25)},
		{"CPU of each further snapshot with gzip", "one compression for all (≤ 0.1 × the first)", furtherGzip, "%.3f ×", atMost(0.1)},
		{fmt.Sprintf("s for %d resumes after %d changes", p.resumes, p.changes), "≤ 1", own("resumes, identity: s"), "%.2f", atMost(1)},
		{"CPU of these", "≤ 1.3 × nginx sendfile of as many bytes", over(file, "resumes, identity: CPU s"), "%.2f ×", atMost(1.3)},
		{"s for the resumes with gzip", "≤ 1", own("resumes, gzip: s"), "%.2f", atMost(1)},
		{fmt.Sprintf("upstream streams for %d subscribers", p.subscribers), "1", own("upstream streams"), "%.0f", func(n float64) bool { return n == 1 }},
		{fmt.Sprintf("KiB per idle subscriber beyond the first %d", p.crowd[0]), "≤ 1", beyond, "%.2f", atMost(1)},
		{fmt.Sprintf("lost of %d idle subscribers in %v", p.crowd[len(p.crowd)-1], p.hold), "0", own("held: lost"), "%.0f", atMost(0)},
	}
}

func (b *bench) printTargets(w io.Writer) {
	lines := &strings.Builder{}
	for _, t := range targets(b.plan) {
		got, ok := t.got(b)
		if !ok {
			continue
		}
		verdict := "reached"
		if !t.ok(got) {
			verdict = "MISSED"
		}
		fmt.Fprintf(lines, "| %s | %s | %s | %s |\n", t.what, t.want, fmt.Sprintf(t.format, got), verdict)
	}
	if lines.Len() > 0 {
		fmt.Fprintf(w, "### Targets of the gateway, pump `shards`\n\n| measurement | target | median | |\n|---|---|---:|---|\n%s\n", lines)
	}
}

// own is a figure of the gateway.
func own(figure string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) { return b.sheet.median(measured, figure) }
}

// over is a figure of the gateway as a multiple of the same of another server.
func over(server, figure string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		mine, ok1 := b.sheet.median(measured, figure)
		theirs, ok2 := b.sheet.median(server, figure)
		return mine / theirs, ok1 && ok2 && theirs > 0
	}
}

// ratio is one figure of the gateway as a multiple of another of its own.
func ratio(figure, of string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		mine, ok1 := b.sheet.median(measured, figure)
		other, ok2 := b.sheet.median(measured, of)
		return mine / other, ok1 && ok2 && other > 0
	}
}

// overBest is a figure as a multiple of the largest of any server that is neither
// the gateway nor the bare loop.
func overBest(figure string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		best := 0.0
		for _, p := range b.peers {
			if got, ok := b.sheet.median(p.Name, figure); ok && !ours(b.plan, p) && !strings.HasPrefix(p.Name, "bare") {
				best = max(best, got)
			}
		}
		mine, ok := b.sheet.median(measured, figure)
		return mine / best, ok && best > 0
	}
}

// furtherGzip is the cost of each but the first of 100 compressed snapshots, as
// a multiple of the first, for which everything has to be compressed.
func furtherGzip(b *bench) (float64, bool) {
	one, ok1 := b.sheet.median(measured, "1 at once, gzip: CPU s")
	all, ok2 := b.sheet.median(measured, "100 at once, gzip: CPU s")
	return (all - one) / 99 / one, ok1 && ok2 && one > 0
}

// beyond is the memory of each idle subscriber beyond the first ones: the
// one-time growth of the heap by those is not counted again.
func beyond(b *bench) (float64, bool) {
	n, first := b.plan.crowd[len(b.plan.crowd)-1], b.plan.crowd[0]
	most, ok1 := b.sheet.median(measured, fmt.Sprintf("%d idle: KiB", n))
	few, ok2 := b.sheet.median(measured, fmt.Sprintf("%d idle: KiB", first))
	return (most*float64(n) - few*float64(first)) / float64(n-first), ok1 && ok2
}

func atMost(n float64) func(float64) bool  { return func(got float64) bool { return got <= n } }
func atLeast(n float64) func(float64) bool { return func(got float64) bool { return got >= n } }
