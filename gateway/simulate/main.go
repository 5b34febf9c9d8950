// Command simulate shows what very many clients do to gateways, in fake time: in a
// deployment, when a region is lost, when the upstream comes and goes, and when all
// clients come at once. It prints a table, and draws each scenario.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/plot"
)

// scenario is what happens, and to whom.
type scenario struct {
	name    string
	settled bool
	happen  func(*Crowd)
}

func main() {
	o := Options{
		Regions: 3, Retry: 1500 * time.Millisecond, DrainDelay: 2 * time.Second, Drain: 10 * time.Second, Restart: 5 * time.Second,
		Probe: 500 * time.Millisecond, Failover: 30 * time.Second, Patience: 30 * time.Second, Silence: 37500 * time.Millisecond,
	}
	cores := flag.Float64("cores", 2, "processors of a gateway")
	gbit := flag.Float64("gbit", 10, "Gbit/s that a gateway sends")
	at := flag.Int("at-once", 0, "gateways that a deployment restarts at once; 0: one in fifty")
	most := flag.Duration("most", time.Hour, "simulated time after which a scenario ends")
	connect := flag.Duration("connect", 74*time.Microsecond, "CPU time of a new stream")
	out := flag.String("out", "", "directory of the plots; empty: none")
	only := flag.String("only", "", "the one scenario to run: deployment, region, upstream or herd; empty: all")
	flag.IntVar(&o.Clients, "clients", 10_000_000, "clients")
	flag.IntVar(&o.Regions, "regions", o.Regions, "regions; at least 2 for the loss of one")
	flag.IntVar(&o.Replicas, "replicas", 50, "gateways of a region")
	flag.IntVar(&o.Limit, "limit", 110_000, "most streams of a gateway")
	flag.DurationVar(&o.Restart, "restart", o.Restart, "from the last stream of a gateway to readiness")
	flag.DurationVar(&o.Drain, "drain", o.Drain, "time over which goodbyes are spread")
	flag.Float64Var(&o.Snapshot, "snapshot", 60e3, "bytes of a snapshot")
	flag.Float64Var(&o.Resume, "resume", 8e3, "bytes of what a client has missed")
	flag.Uint64Var(&o.Seed, "seed", 1, "of all randomness")
	flag.Parse()
	o.Connect, o.Rate = time.Duration(float64(*connect) / *cores), *gbit*1e9/8
	if *at == 0 {
		*at = max(o.Replicas*o.Regions/50, 1)
	}
	fmt.Printf("seed %d, %d clients, %d × %d gateways of %g cores, %g Gbit/s and %d streams\n\n", o.Seed, o.Clients, o.Regions, o.Replicas, *cores, *gbit, o.Limit)
	fmt.Println("| scenario | in sync after | back in sync: p50 | p99 | max | most attempts/s | refused | most Gbit/s | most streams of a gateway |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, s := range []scenario{
		{"deployment", true, func(c *Crowd) { c.Deploy(*at) }},
		{"region", true, func(c *Crowd) { c.LoseRegion(0) }},
		{"upstream", true, func(c *Crowd) { flap(c, o) }},
		{"herd", false, (*Crowd).Herd},
	} {
		if *only != "" && *only != s.name {
			continue
		}
		if err := s.run(o, *most, *out); err != nil {
			fmt.Fprintln(os.Stderr, "simulate:", err)
			os.Exit(1)
		}
		runtime.GC() // two crowds need not fit
	}
}

// flap loses the upstream three times. At last it is another one, with a snapshot.
func flap(c *Crowd, o Options) {
	for i, bytes := range []float64{o.Resume, o.Resume, o.Snapshot} {
		c.At(time.Duration(i)*2*time.Minute, func() { c.LoseUpstream(20*time.Second, bytes) })
	}
}

func (s scenario) run(o Options, most time.Duration, out string) error {
	c := New(o)
	if s.settled {
		c.Settle()
	}
	c.At(5*time.Second, func() { s.happen(c) })
	after := "never"
	if c.Run(most) {
		after = (time.Duration(len(c.Seconds)-5) * time.Second).String()
	}
	var attempts, refused int
	var bytes float64
	for _, second := range c.Seconds {
		attempts, refused, bytes = max(attempts, second.Attempts), refused+second.Refused, max(bytes, second.Bytes)
	}
	fmt.Printf("| %s | %s | %.1f s | %.1f s | %.1f s | %d | %d | %.1f | %d |\n", s.name, after,
		quantile(c.Synced, 0.5), quantile(c.Synced, 0.99), float64(len(c.Synced))/10, attempts, refused, bytes*8/1e9, c.Most)
	if out == "" {
		return nil
	}
	title := fmt.Sprintf("%s: %d clients, seed %d", s.name, o.Clients, o.Seed)
	return os.WriteFile(filepath.Join(out, "scale-"+s.name+".svg"), []byte(draw(title, c)), 0o644)
}

// quantile returns the time in seconds within which such a share came back in sync.
func quantile(tenths []int, share float64) float64 {
	all, sum := 0, 0
	for _, n := range tenths {
		all += n
	}
	at := slices.IndexFunc(tenths, func(n int) bool {
		sum += n
		return float64(sum) >= share*float64(all)
	})
	return float64(at+1) / 10
}

func draw(title string, c *Crowd) string {
	var open, inSync, gbit, share []float64
	for _, s := range c.Seconds {
		open, inSync, gbit = append(open, float64(s.Open)), append(inSync, float64(s.InSync)), append(gbit, s.Bytes*8/1e9)
	}
	all, sum := 0, 0
	for _, n := range c.Synced {
		all += n
	}
	for _, n := range c.Synced {
		sum += n
		share = append(share, 100*float64(sum)/float64(all))
	}
	seconds := float64(len(c.Seconds))
	return plot.Draw(
		plot.Panel{Title: title, X: "s", Last: seconds, Lines: []plot.Line{{Name: "streams", Points: open}, {Name: "in sync", Points: inSync}}},
		plot.Panel{Title: "Gbit/s of all gateways", X: "s", Last: seconds, Lines: []plot.Line{{Points: gbit}}},
		plot.Panel{Title: "% of those that were not in sync, back in sync within", X: "s", Last: float64(len(c.Synced)) / 10, Lines: []plot.Line{{Points: share}}},
	)
}
