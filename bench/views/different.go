package main

import (
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

func (b *bench) inEquality(ctx context.Context) error {
	return b.indexed(ctx, "equality", "`value.team == …`", func(i int) load.Request {
		return events(many, "filter", fmt.Sprintf(`value.team == "t%d"`, i))
	})
}

func (b *bench) inPrefix(ctx context.Context) error {
	return b.indexed(ctx, "prefix", "prefix", func(i int) load.Request {
		return events(many, "prefix", fmt.Sprintf("group-%05d/", i))
	})
}

// indexed measures commits that concern one of very many views, which an index finds.
func (b *bench) indexed(ctx context.Context, name, kind string, view func(i int) load.Request) error {
	p := b.plan
	return b.with(ctx, data{resources: p.resources, groups: p.views}, func(r *rig) error {
		if err := r.subscribe(ctx, 1, view(0)); err != nil {
			return err
		}
		one, err := r.perCommit(ctx, name+"-one", 0, func(int) int { return 0 })
		if err != nil {
			return err
		}
		began := time.Now()
		used, err := r.used(func() error { return r.subscribeEach(ctx, from(1, p.views, view)) })
		if err != nil {
			return err
		}
		b.Add(fmt.Sprintf("opening %d views by %s, until all have their snapshots", p.views, kind), "%.1f s, %.0f µs of CPU each",
			time.Since(began).Seconds(), micro(used)/float64(p.views))
		idle, err := r.idle(ctx, name+"-idle")
		if err != nil {
			return err
		}
		const step = 7919 // prime, so that it goes through all of them
		all, err := r.perCommit(ctx, name+"-all", idle, func(i int) int { return i * step % p.views })
		if err != nil {
			return err
		}
		b.Judge(fmt.Sprintf("CPU per commit that concerns one of %d views by %s, against one view", p.views, kind), "≤ 3 ×", all/one <= 3,
			"%.2f × (%.0f and %.0f µs)", all/one, all, one)
		load := share(idle, p.heartbeat)
		b.Judge(fmt.Sprintf("CPU of the idle gateway meanwhile, a heartbeat each in %v", p.heartbeat), "≤ 1 % of a core", load <= 1, "%.2f %%", load)
		return nil
	})
}

// from returns requests for the views from first to before last.
func from(first, last int, view func(i int) load.Request) (requests []load.Request) {
	for i := first; i < last; i++ {
		requests = append(requests, view(i))
	}
	return requests
}

// perCommit is the processor time of a commit that concerns one subscriber, in
// microseconds, less what the idle gateway uses in one period of heartbeats.
func (r *rig) perCommit(ctx context.Context, name string, idle time.Duration, resource func(i int) int) (each float64, err error) {
	lasts := time.Duration(r.plan.commits) * r.plan.interval
	err = r.profiled(ctx, name, lasts, func() error {
		used, _, err := r.commits(ctx, r.plan.commits, 1, r.plan.interval, resource)
		used -= time.Duration(float64(idle) * lasts.Seconds() / r.plan.heartbeat.Seconds())
		each = micro(used) / float64(r.plan.commits)
		return err
	})
	return each, err
}

// inScan measures commits that concern none of many views, all of which have to be asked.
func (b *bench) inScan(ctx context.Context) error {
	p := b.plan
	// Each value has n = 17, so that both comparisons are evaluated.
	view := func(i int) load.Request {
		return events(many, "filter", fmt.Sprintf("value.m != %d && value.n > 17", i))
	}
	var commit []float64
	err := b.with(ctx, data{resources: 1000, groups: 10}, func(r *rig) error {
		open := 0
		for _, n := range p.scans {
			if err := r.subscribeEach(ctx, from(10_000+open, 10_000+n, view)); err != nil {
				return err
			}
			open = n
			err := r.profiled(ctx, fmt.Sprintf("scan-%d", n), time.Duration(p.commits/2)*p.interval, func() error {
				used, _, err := r.commits(ctx, p.commits/2, 0, p.interval, func(i int) int { return i % 1000 })
				commit = append(commit, micro(used)/float64(p.commits/2))
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	last := len(p.scans) - 1
	for i := 1; i <= last; i++ {
		what := fmt.Sprintf("CPU of a change for each of %d views by `value.m != … && value.n > 17`, which no index helps", p.scans[i])
		each := (commit[i] - commit[0]) / float64(p.scans[i]-p.scans[0])
		if i < last {
			b.Add(what, "%.2f µs", each)
			continue
		}
		b.Judge(what, "linear, ≤ 1 µs", each <= 1, "%.2f µs", each)
	}
	return nil
}
