// Command bench measures the figures that docs/performance.md promises and prints a table:
// each figure beside its target. It needs curl for the snapshot over a socket.
// Run it on a quiet machine; absolute times differ between machines.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	what   string
	target string
	seen   []float64 // one for each run
	format string
	ok     func(median float64) bool // nil: there is no target
}

func main() {
	runs := flag.Int("runs", 3, "runs of each measurement; the median and the spread are printed")
	large := flag.Bool("large", true, "measure with 1,000,000 resources too (needs 2 GiB of memory)")
	flag.Parse()
	if err := run(*runs, *large); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(runs int, large bool) error {
	sizes := []int{100_000}
	if large {
		sizes = append(sizes, 1_000_000)
	}
	var rows []row
	for _, n := range sizes {
		fmt.Fprintf(os.Stderr, "log with %d resources …\n", n)
		rows = append(rows, measureLog(n, runs)...)
	}
	fmt.Fprintln(os.Stderr, "waking 10,000 subscriptions …")
	rows = append(rows, measureWake(runs)...)
	fmt.Fprintln(os.Stderr, "snapshot to curl …")
	curl, err := measureCurl(runs)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "commit to first byte …")
	first, err := measureFirstByte(runs)
	if err != nil {
		return err
	}
	print(slices.Concat(rows, curl, first))
	return nil
}

func print(rows []row) {
	fmt.Printf("%s %s/%s, %d cores\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\ttarget\tmedian\tmin … max\t")
	for _, r := range rows {
		slices.Sort(r.seen)
		median := r.seen[len(r.seen)/2]
		verdict := "reached"
		switch {
		case r.ok == nil:
			verdict = ""
		case !r.ok(median):
			verdict = "MISSED"
		}
		spread := fmt.Sprintf(r.format+" … "+r.format, r.seen[0], r.seen[len(r.seen)-1])
		fmt.Fprintf(w, "%s\t%s\t"+r.format+"\t%s\t%s\n", r.what, r.target, median, spread, verdict)
	}
	w.Flush()
}

func atLeast(n float64) func(float64) bool { return func(m float64) bool { return m >= n } }
func atMost(n float64) func(float64) bool  { return func(m float64) bool { return m <= n } }

// value is a JSON value of 300 bytes.
var value = []byte(`{"v":"` + strings.Repeat("x", 292) + `"}`)

func keys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("namespace-%02d/resource-%07d", i%100, i)
	}
	return out
}
