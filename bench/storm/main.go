// Command storm measures the cost for a gateway, in a process of its own, of very many
// subscribers that connect at once: with a position from before some changes, with a
// position that cannot be resumed and the state from before those changes, which they
// verify, with no position, without ever reading, or because the revision order of their
// watch has changed while they were connected. It prints a line for each. Linux only; run
// it on a quiet machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// plan is the configuration of a measurement.
type plan struct {
	subscribers, changes int
	resources, bytes     int
	pump                 string
	budget               int64
}

func main() {
	var p plan
	serves := flag.Bool("serve", false, "be the gateway; storm starts it")
	flag.IntVar(&p.subscribers, "subscribers", 10_000, "how many subscribers connect at once")
	flag.IntVar(&p.resources, "resources", 100_000, "resources of the watch")
	flag.IntVar(&p.bytes, "bytes", 300, "bytes of the value of each resource")
	flag.IntVar(&p.changes, "changes", 1000, "changes that subscribers with a position have missed")
	flag.StringVar(&p.pump, "pump", "shards", "pump that carries the streams")
	flag.Int64Var(&p.budget, "budget", 0, "snapshot budget in bytes; 0: the gateway's own")
	what := flag.String("what", "resume", "resume, digest (a resume by digest), snapshot, stall (snapshots that only one subscriber reads), or epoch (connected subscribers get a new snapshot)")
	profile := flag.String("cpuprofile", "", "where the gateway writes a CPU profile")
	flag.Parse()
	run := func() error { return p.measure(*what, *profile) }
	if *serves {
		run = func() error { return serve(p, *profile) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

func (p plan) measure(what, profile string) error {
	g, err := startGateway(p, profile)
	if err != nil {
		return err
	}
	defer g.stop()
	switch what {
	case "resume":
		position, err := g.order("change", p.changes)
		if err != nil {
			return err
		}
		return p.connect(g, position)
	case "digest":
		if _, err := g.order("change", p.changes); err != nil {
			return err
		}
		return p.verify(g)
	case "snapshot":
		return p.connect(g, "")
	case "stall":
		return p.stall(g)
	case "epoch":
		return p.change(g)
	}
	return fmt.Errorf("-what=%s: want resume, digest, snapshot, stall or epoch", what)
}

// request returns a request that ends when the subscriber is up to date.
func request(position string) []byte {
	r := []byte("GET /v1/events?watch=storm HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
	if position == "" {
		return r
	}
	return load.With(r, "Last-Event-ID", position)
}

// connect connects all subscribers at once.
func (p plan) connect(g *gatewayProcess, position string) error {
	c, err := load.New(load.Options{Address: g.address, Done: []byte(`"type":"end_of_snapshot"`)})
	if err != nil {
		return err
	}
	defer c.Close()
	m := measureFrom(g)
	if err := c.Open(p.subscribers, load.Request{Bytes: request(position)}); err != nil {
		return err
	}
	if err := p.await(c, m, uint64(p.subscribers)); err != nil {
		return err
	}
	m.print(c.Stats())
	return nil
}

// stall connects all subscribers, which do not read, and then one more that
// does.
func (p plan) stall(g *gatewayProcess) error {
	c, err := load.New(load.Options{Address: g.address, Done: []byte(`"type":"end_of_snapshot"`)})
	if err != nil {
		return err
	}
	defer c.Close()
	m := measureFrom(g)
	stalled := load.Request{Bytes: request(""), Stalled: true, ReceiveBuffer: 64 << 10}
	if err := c.Open(p.subscribers, stalled); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < time.Second; m.sample() {
		if _, err := c.Poll(100 * time.Millisecond); err != nil {
			return err
		}
	}
	last, err := c.Connect(load.Request{Bytes: request("")})
	if err != nil {
		return err
	}
	for c.DoneAfter(last) == 0 && c.Alive(last) {
		if _, err := c.Poll(100 * time.Millisecond); err != nil {
			return err
		}
		m.sample()
	}
	fmt.Printf("the one that reads: %.2f s; ", c.DoneAfter(last).Seconds())
	m.print(c.Stats())
	return nil
}

// change gives all connected subscribers another revision order.
func (p plan) change(g *gatewayProcess) error {
	c, err := load.New(load.Options{Address: g.address, Marker: []byte(`"type":"end_of_snapshot"`), Done: []byte(`"reason":"epoch_changed"`)})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Open(p.subscribers, load.Request{Bytes: request("")}); err != nil {
		return err
	}
	for c.Stats().Events < uint64(p.subscribers) {
		if _, err := c.Poll(time.Second); err != nil {
			return err
		}
	}
	m, before := measureFrom(g), c.Stats()
	if _, err := g.order("epoch", 0); err != nil {
		return err
	}
	for c.Stats().Since(before).Events < uint64(p.subscribers) {
		if _, err := c.Poll(100 * time.Millisecond); err != nil {
			return err
		}
		m.sample()
	}
	m.print(c.Stats().Since(before))
	return nil
}

// await polls until that many subscribers are up to date.
func (p plan) await(c *load.Client, m *measurement, done uint64) error {
	for c.Stats().Done < done {
		if _, err := c.Poll(100 * time.Millisecond); err != nil {
			return err
		}
		m.sample()
		if lost := c.Stats().Lost + c.Stats().Refused; lost > 0 {
			return fmt.Errorf("%d connections were lost or refused", lost)
		}
	}
	return nil
}
