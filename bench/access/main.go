// Command access measures what access costs: a reload of rules that makes very many streams
// switch to another view. The gateway and its clients are processes of their own. It prints a
// table with the targets. Linux only; run it on a quiet machine.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/watchtide/watchtide/bench/internal/process"
)

func main() {
	p := full()
	quick := flag.Bool("quick", false, "small numbers; the figures mean little")
	flag.Parse()
	if *quick {
		p = p.quick()
	}
	process.Main("access", func(ctx context.Context) error { return run(ctx, p) })
}

func run(ctx context.Context, p plan) error {
	b, err := newBench(ctx, p)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.switches(ctx); err != nil {
		return err
	}
	b.Print(os.Stdout)
	return nil
}
