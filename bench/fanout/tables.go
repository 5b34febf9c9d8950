package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// column is one figure in a table with a row for each server.
type column struct{ title, figure, format string }

// print writes all results.
func (b *bench) print(w io.Writer) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s\n\n", process.Machine())
	fmt.Fprintf(out, "%d subscribers; medians of %d runs, with the smallest and the largest in parentheses.\n\n", b.plan.subscribers, b.plan.runs)
	b.table(out, "### Idle, and one at a time", []column{
		{"KiB per idle connection", "idle KiB", "%.2f"},
		{"after " + b.plan.idle.String(), "later KiB", "%.2f"},
		{"µs to connect", "connect µs", "%.0f"},
		{"upstream streams", "upstream streams", "%.0f"},
		{"alone: p50 µs", "alone p50 µs", "%.0f"},
		{"p99 µs", "alone p99 µs", "%.0f"},
		{"peak MiB", "peak MiB", "%.0f"},
	})
	for _, size := range b.plan.sizes {
		b.table(out, fmt.Sprintf("### %d events of %d bytes a second", b.plan.rate, size), phaseColumns(fmt.Sprintf("%d B", size)))
	}
	for _, each := range []int{1, 10} {
		b.table(out, fmt.Sprintf("### As fast as possible, %d per publish", each), phaseColumns(fmt.Sprintf("flat out, %d", each)))
	}
	b.table(out, fmt.Sprintf("### Snapshots of %d × %d bytes", b.plan.resources, b.plan.bytes), b.stormColumns())
	b.printOurs(out)
	b.printTargets(out)
	for _, name := range b.missing {
		fmt.Fprintf(out, "%s is not installed here and was left out.\n", name)
	}
	for _, what := range b.failed {
		fmt.Fprintf(out, "%s.\n\n", what)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func phaseColumns(phase string) []column {
	return []column{
		{"CPU µs/event", phase + ": µs", "%.2f"},
		{"user", phase + ": user µs", "%.2f"},
		{"system", phase + ": system µs", "%.2f"},
		{"1,000 deliveries/s", phase + ": k/s", "%.0f"},
		{"p50 ms", phase + ": p50 ms", "%.0f"},
		{"p99 ms", phase + ": p99 ms", "%.0f"},
		{"missed %", phase + ": lost %", "%.1f"},
	}
}

func (b *bench) stormColumns() (out []column) {
	for _, n := range b.plan.storms {
		for _, encoding := range []string{"", ", gzip"} {
			figure := fmt.Sprintf("%d at once%s", n, encoding)
			out = append(out,
				column{figure + ": s", figure + ": s", "%.3f"},
				column{"CPU s", figure + ": CPU s", "%.2f"},
				column{"peak MiB", figure + ": peak MiB", "%.0f"},
				column{"MB each", figure + ": MB each", "%.1f"})
		}
	}
	return out
}

// table prints the rows of servers with results, and the columns with any values.
func (b *bench) table(w io.Writer, title string, columns []column) {
	var filled []column
	for _, c := range columns {
		if b.anybody(c.figure) {
			filled = append(filled, c)
		}
	}
	if len(filled) == 0 {
		return
	}
	fmt.Fprintf(w, "%s\n\n| server |", title)
	for _, c := range filled {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---:|", len(filled)))
	for _, p := range b.peers {
		if b.has(p.Name, filled) {
			fmt.Fprintf(w, "| %s |", p.Name)
			for _, c := range filled {
				fmt.Fprintf(w, " %s |", b.sheet.text(p.Name, c.figure, c.format))
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w)
}

func (b *bench) has(server string, columns []column) bool {
	for _, c := range columns {
		if _, ok := b.sheet.median(server, c.figure); ok {
			return true
		}
	}
	return false
}

func (b *bench) anybody(figure string) bool {
	for _, p := range b.peers {
		if _, ok := b.sheet.median(p.Name, figure); ok {
			return true
		}
	}
	return false
}

// printOurs prints the measurements of the gateway alone.
func (b *bench) printOurs(w io.Writer) {
	b.table(w, fmt.Sprintf("### %d clients come back after %d changes", b.plan.resumes, b.plan.changes), []column{
		{"s", "resumes, identity: s", "%.2f"},
		{"CPU s", "resumes, identity: CPU s", "%.2f"},
		{"bytes per change", "resumes, identity: bytes per change", "%.0f"},
		{"gzip: s", "resumes, gzip: s", "%.2f"},
		{"CPU s", "resumes, gzip: CPU s", "%.2f"},
		{"bytes per change", "resumes, gzip: bytes per change", "%.0f"},
	})
	b.table(w, "### One subscriber stalls", []column{
		{"p50 ms with it", "one stalls: p50 ms", "%.1f"},
		{"p99 ms with it", "one stalls: p99 ms", "%.1f"},
		{"p50 ms without", "nobody stalls: p50 ms", "%.1f"},
		{"p99 ms without", "nobody stalls: p99 ms", "%.1f"},
	})
	crowd := []column{
		{"three watches: KiB each", "three watches: KiB", "%.2f"},
		{"upstream streams", "three watches: upstream streams", "%.0f"},
	}
	for _, n := range b.plan.crowd {
		crowd = append(crowd, column{fmt.Sprintf("%d: KiB each", n), fmt.Sprintf("%d idle: KiB", n), "%.2f"})
	}
	b.table(w, "### Idle subscribers, with heartbeats", append(crowd,
		column{"after " + b.plan.hold.String(), "held: KiB", "%.2f"},
		column{"CPU %", "held: CPU %", "%.1f"},
		column{"lost", "held: lost", "%.0f"},
		column{"bytes/s each", "held: bytes/s each", "%.1f"}))
}
