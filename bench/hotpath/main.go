// Command hotpath profiles a gateway under load: live events to many subscribers,
// and many snapshots at once. The gateway runs in this process, its clients in
// another, which is not profiled. It writes CPU and allocation profiles and prints
// the top of each.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

// options are the flags.
type options struct {
	subscribers int           // of live events
	commits     int           // of one event each
	interval    time.Duration // between two commits; 0: as fast as they are accepted
	storms      int           // one after the other
	snapshots   int           // at once
	resources   int           // in each
	dir         string
}

func main() {
	// To tell allocations apart they must be sampled: the hot path allocates little.
	runtime.MemProfileRate = 4 << 10
	var o options
	flag.IntVar(&o.subscribers, "subscribers", 10_000, "how many subscribers get live events")
	flag.IntVar(&o.commits, "commits", 60, "how many events each of them gets")
	flag.DurationVar(&o.interval, "interval", 100*time.Millisecond, "the time between two events; 0: as fast as they are taken")
	flag.IntVar(&o.storms, "storms", 4, "how often many subscribers request a snapshot at once")
	flag.IntVar(&o.snapshots, "snapshots", 100, "how many subscribers request it")
	flag.IntVar(&o.resources, "resources", 100_000, "how many resources of 300 bytes a snapshot has")
	flag.StringVar(&o.dir, "dir", "profile", "where profiles are kept")
	clients := flag.String("clients", "", "be the clients: live or snapshots (the command starts itself so)")
	address := flag.String("address", "", "of the gateway, for clients")
	flag.Parse()
	var err error
	if *clients != "" {
		err = runClients(*clients, *address, o)
	} else {
		err = profileAll(context.Background(), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hotpath:", err)
		os.Exit(1)
	}
}

func profileAll(ctx context.Context, o options) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, %d cores\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if err := profileLive(ctx, o); err != nil {
		return fmt.Errorf("live events: %w", err)
	}
	if err := profileSnapshots(ctx, o); err != nil {
		return fmt.Errorf("snapshots: %w", err)
	}
	return nil
}

// profileLive profiles events on the way from their commits to all subscribers.
func profileLive(ctx context.Context, o options) error {
	g, err := serve(ctx, 1)
	if err != nil {
		return err
	}
	defer g.close()
	c, err := startClients(ctx, "live", g.address, o)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := c.await("open"); err != nil {
		return err
	}
	p, err := begin(o.dir, "live")
	if err != nil {
		return err
	}
	if err := g.commit(o.commits, o.interval); err != nil {
		return err
	}
	if err := c.await("done"); err != nil {
		return err
	}
	return p.end(o.commits*o.subscribers, "event delivered")
}

// profileSnapshots profiles snapshots to many at once.
func profileSnapshots(ctx context.Context, o options) error {
	g, err := serve(ctx, o.resources)
	if err != nil {
		return err
	}
	defer g.close()
	p, err := begin(o.dir, "snapshots")
	if err != nil {
		return err
	}
	c, err := startClients(ctx, "snapshots", g.address, o)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := c.await("done"); err != nil {
		return err
	}
	return p.end(o.storms*o.snapshots, "snapshot")
}
