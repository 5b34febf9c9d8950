// Command fanout measures the cost of delivering events to many subscribers: the
// gateway, other servers and a bare loop around write(2), each as a process of its
// own under the same load. It prints the tables of docs/performance.md, which
// explains every column.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	p := full()
	quick := flag.Bool("quick", false, "the essential comparisons, in about ten minutes")
	runs := flag.Int("runs", 0, "`runs` of everything; medians are printed (default 3, quick: 1)")
	flag.IntVar(&p.subscribers, "subscribers", p.subscribers, "subscribers of the comparison")
	only := flag.String("only", "", "regular expression: only these `servers`, by their names")
	parts := flag.String("parts", "", "regular expression: only these `parts` of "+partNames())
	flag.Parse()
	if *quick {
		p = p.quick()
	}
	if *runs > 0 {
		p.runs = *runs
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, p, *only, *parts); err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, only, parts string) error {
	b, err := newBench(ctx, p, only, parts)
	if err != nil {
		return err
	}
	defer b.close()
	for n := range p.runs {
		b.logf("run %d of %d", n+1, p.runs)
		if err := b.runAll(ctx); err != nil {
			return err
		}
	}
	return b.print(os.Stdout)
}
