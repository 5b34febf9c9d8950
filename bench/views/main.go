// Command views measures the cost of views: of those that many clients share, of very
// many different ones, of windows, of building one, and of those that access rules make. The gateway, its clients and its upstream are
// processes of their own: the upstream is this one. It prints a table with the targets.
// Linux only; run it on a quiet machine.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/watchtide/watchtide/bench/internal/process"
)

func main() {
	o := options{plan: full()}
	quick := flag.Bool("quick", false, "small numbers, a few seconds for each measurement; the figures mean little")
	flag.StringVar(&o.only, "only", "", "regular expression: only these `measurements` of "+names())
	flag.StringVar(&o.before, "before", "", "`program`: a gateway of an older commit, to compare what needs no view")
	flag.StringVar(&o.profiles, "profiles", "", "`directory` for a CPU profile of the gateway under each load, and a heap profile with views")
	flag.Parse()
	if *quick {
		o.plan = o.plan.quick()
	}
	process.Main("views", func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) error {
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.runAll(ctx); err != nil {
		return err
	}
	b.Print(os.Stdout)
	return nil
}
