// Command crowd connects as many subscribers as the machine can hold to a tree of gateways:
// a root with a durable store, and leaves that follow it, each a process of its own. All
// subscribers are real: a socket each, at several loopback addresses. It changes resources
// now and then, restarts all leaves one after the other and then the root, counts what each
// subscriber has received, passes what some of them have received through the checkers of
// all guarantees, and prints the table of docs/scale.md. Linux only; run it on a quiet
// machine.
//
// Two sockets of a subscriber take some 10 KiB of the kernel's memory, and a descriptor in a
// leaf and in a load generator: the limit on descriptors (ulimit -n) says how many
// leaves are needed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// plan is the configuration of a run.
type plan struct {
	subscribers, leaves  int
	resources, bytes     int
	interval, each, fast time.Duration
	sample               int
	plot                 string
	stream               string // the section of this name of all gateways; empty: the defaults
}

func main() {
	var p plan
	flag.IntVar(&p.subscribers, "n", 190_000, "`subscribers`")
	flag.IntVar(&p.leaves, "leaves", 0, "leaf gateways; 0: as many as the limit on descriptors requires")
	flag.IntVar(&p.resources, "resources", 500, "resources of the watch")
	flag.IntVar(&p.bytes, "bytes", 300, "bytes of the value of each resource")
	flag.DurationVar(&p.interval, "interval", 5*time.Second, "time between two changes")
	flag.DurationVar(&p.each, "phase", time.Minute, "how long the changes are measured")
	flag.DurationVar(&p.fast, "fast", 30*time.Second, "how long one change a second is measured")
	flag.IntVar(&p.sample, "sample", 200, "more subscribers, whose events are checked")
	flag.StringVar(&p.plot, "plot", "", "`file` for a diagram (SVG)")
	serves := flag.Bool("generate", false, "be a load generator; crowd starts them")
	flag.Parse()
	if *serves {
		if err := generate(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "crowd: load generator:", err)
			os.Exit(1)
		}
		return
	}
	process.Main("crowd", func(ctx context.Context) error {
		if err := p.fit(); err != nil {
			return err
		}
		return p.run(ctx)
	})
}

// spare is how many descriptors a gateway keeps for itself, and some for subscribers that are
// checked.
const spare = 1200

// fit chooses the number of leaves, or checks the one that was asked for.
func (p *plan) fit() error {
	limit, err := descriptors()
	if err != nil {
		return err
	}
	if p.subscribers < 1 || p.sample < 0 || p.resources < 1 || p.interval <= 0 {
		return fmt.Errorf("-n=%d -sample=%d -resources=%d -interval=%v: want positive numbers", p.subscribers, p.sample, p.resources, p.interval)
	}
	most := limit - spare
	if most < 1 {
		return fmt.Errorf("the limit on descriptors is %d: want more than %d (ulimit -n)", limit, spare)
	}
	need := (p.subscribers + most - 1) / most
	switch {
	case p.leaves == 0:
		p.leaves = need
	case p.leaves < need:
		return fmt.Errorf("-leaves=%d: %d subscribers need %d leaves, as the limit on descriptors is %d; raise it (ulimit -n %d)",
			p.leaves, p.subscribers, need, limit, (p.subscribers+p.leaves-1)/p.leaves+spare)
	}
	return nil
}
