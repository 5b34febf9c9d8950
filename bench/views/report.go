package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// row is a line of the table.
type row struct {
	what, target, measured string
	// reached is nil if there is no target.
	reached *bool
}

// add adds a line without a target.
func (b *bench) add(what, format string, figures ...any) {
	b.rows = append(b.rows, row{what: what, target: "–", measured: fmt.Sprintf(format, figures...)})
}

// judge adds a line with a target.
func (b *bench) judge(what, target string, reached bool, format string, figures ...any) {
	b.rows = append(b.rows, row{what: what, target: target, measured: fmt.Sprintf(format, figures...), reached: &reached})
}

// print prints the table.
func (b *bench) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n| measurement | target | measured | |\n|---|---|---:|---|\n", machine())
	for _, r := range b.rows {
		verdict := ""
		if r.reached != nil {
			verdict = "**missed**"
			if *r.reached {
				verdict = "reached"
			}
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.what, r.target, r.measured, verdict)
	}
}

// machine describes where this was measured.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name\t: "); ok {
			model, _, _ = strings.Cut(rest, "\n")
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	minute, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%d cores of %s, Linux %s, %s, load average at the end %s.",
		runtime.NumCPU(), model, strings.TrimSpace(string(kernel)), runtime.Version(), minute)
}
