// Command access measures what access costs: a reload of rules that makes very many streams
// switch to another view. The gateway and its clients are processes of their own. It prints a
// table with the targets. Linux only; run it on a quiet machine.
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
	quick := flag.Bool("quick", false, "small numbers; the figures mean little")
	flag.Parse()
	if *quick {
		p = p.quick()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, "access:", err)
		os.Exit(1)
	}
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
	b.print(os.Stdout)
	return nil
}
