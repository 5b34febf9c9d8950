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
// leaves are needed. A run for which there is not enough memory is refused. A leaf has several
// load generators where the machine has processors for them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
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
	generated            int    // subscribers of a load generator, at most
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
		m, err := thisMachine()
		if err != nil {
			return err
		}
		if err := p.fit(m); err != nil {
			return err
		}
		return p.run(ctx)
	})
}

// spare is how many descriptors a gateway keeps for itself, and some for subscribers that are
// checked.
const spare = 1200

// The memory of a run: what a subscriber has of the kernel's and of a load generator's, and what a leaf and its load generators
// have besides.
const (
	subscriberBytes = 11 << 10
	leafBytes       = 64 << 20
)

// machine is what a run may take.
type machine struct {
	descriptors int   // of a process
	memory      int64 // in bytes
	processors  int
}

func thisMachine() (m machine, err error) {
	if m.descriptors, err = descriptors(); err != nil {
		return m, err
	}
	m.memory, err = process.AvailableMemory()
	m.processors = runtime.NumCPU()
	return m, err
}

// fit chooses the number of leaves, or checks the one that was asked for, and how many subscribers a load generator has.
func (p *plan) fit(m machine) error {
	limit := m.descriptors
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
	if needed := int64(p.subscribers)*subscriberBytes + int64(p.leaves)*leafBytes; needed > m.memory {
		return fmt.Errorf("-n=%d: subscribers and %d leaves need some %.1f GiB of memory, and %.1f GiB are available: want fewer (-n %d)",
			p.subscribers, p.leaves, gib(needed), gib(m.memory), m.memory/int64(subscriberBytes+leafBytes/most))
	}
	// A load generator has one thread. Half of the processors are left to the leaves.
	each := max(1, m.processors/2/p.leaves)
	ofLeaf := (p.subscribers + p.leaves - 1) / p.leaves
	p.generated = min(most, (ofLeaf+each-1)/each)
	return nil
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }

// connects is how long subscribers may take to connect and to be sent their snapshots.
func (p *plan) connects() time.Duration {
	return 10*process.Patience + time.Duration(p.subscribers)*2*time.Millisecond
}
