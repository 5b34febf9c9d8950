// Command digest measures what it costs that a log keeps the digest of its content: commits, the time
// from a commit to its first byte, and the fan-out of events. It compares itself with a second build
// of itself that computes no hashes, in turns within one run, and prints a table with the targets.
// Linux only.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// plan defines how much is measured.
type plan struct {
	keys        int   // of the state
	values      []int // bytes of each value, a state for each
	commits     int   // of a turn
	rounds      int   // turns of each
	firstBytes  int   // commits of a turn
	subscribers int
	events      int // commits of a turn of the fan-out
}

// full is the plan without flags.
func full() plan {
	return plan{keys: 100_000, values: []int{300, 3000}, commits: 10_000, rounds: 31, firstBytes: 300, subscribers: 1000, events: 100}
}

// quick shows that everything works.
func (p plan) quick() plan {
	p.keys, p.commits, p.rounds, p.firstBytes, p.subscribers, p.events = 1000, 100, 3, 10, 20, 5
	return p
}

func main() {
	p := full()
	quick := flag.Bool("quick", false, "small numbers; the figures mean little")
	flag.IntVar(&p.rounds, "rounds", p.rounds, "turns of each of the two builds")
	what := flag.String("serve", "", "be what is measured: log or gateway (the command starts itself so)")
	value := flag.Int("value", 300, "bytes of a value, for -serve")
	digests := flag.Bool("digests", true, "whether subscribers ask for digests, for -serve")
	flag.IntVar(&p.keys, "keys", p.keys, "keys of the state")
	flag.Parse()
	if *quick {
		p = p.quick()
	}
	process.Main("digest", func(ctx context.Context) error {
		if *what != "" {
			return serve(ctx, *what, p.keys, *value, *digests)
		}
		return run(ctx, p)
	})
}

func run(ctx context.Context, p plan) error {
	dir, err := os.MkdirTemp("", "digest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{plan: p}
	if b.programs, err = build(ctx, dir); err != nil {
		return err
	}
	for _, size := range p.values {
		if err := b.measure(ctx, size); err != nil {
			return err
		}
	}
	b.Print(os.Stdout)
	return nil
}
