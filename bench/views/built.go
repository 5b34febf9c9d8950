package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// built are views that are built under load, and what the subscribers of their watch
// notice.
type built struct {
	took    []float64 // milliseconds
	latency child.Latency
}

// add times one more.
func (b *built) add(build func() error) error {
	began := time.Now()
	err := build()
	b.took = append(b.took, micro(time.Since(began))/1e3)
	return err
}

// inBuild builds one view after the other, each a hundredth of a large watch, which then
// has commits and subscribers meanwhile.
func (b *bench) inBuild(ctx context.Context) error {
	const groups = 100
	p := b.plan
	kinds := []struct {
		short, name, filter string
		most                float64 // milliseconds
	}{
		{"equality", "an equality", `value.team == "t%d" && value.m != -%d`, 250},
		{"macro", "a predicate on the whole value", `value.exists(k, k == "team" && value[k] == "t%d") && value.m != -%d`, 600},
	}
	s := settings{stream: viewLimits + "  view_linger: 1s\n"}
	return b.withSettings(ctx, s, data{resources: p.large, groups: groups}, func(r *rig) error {
		if err := r.follow(ctx, p.followers); err != nil {
			return err
		}
		for _, kind := range kinds {
			n := 0
			build := func() error {
				n++
				return r.buildOne(ctx, fmt.Sprintf(kind.filter, n%groups, n), p.large/groups)
			}
			alone := built{}
			err := r.profiled(ctx, "build-"+kind.short, time.Second, func() error {
				for range p.builds {
					if err := alone.add(build); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			took := median(alone.took)
			b.Judge(fmt.Sprintf("a view of %d in %d resources by %s, request to `end_of_snapshot`", p.large/groups, p.large, kind.name),
				fmt.Sprintf("≤ %.0f ms", kind.most), took <= kind.most, "%.0f ms (at most %.0f ms, of %d)", took, slices.Max(alone.took), len(alone.took))
			if err := r.disturbed(ctx, build); err != nil {
				return err
			}
		}
		return nil
	})
}

// disturbed measures what the subscribers of the watch notice of views that are built: for a
// while without, for a while with them, and so on.
func (r *rig) disturbed(ctx context.Context, build func() error) error {
	var took, quiet, busy []float64 // the latter are 99th percentiles in milliseconds
	for range r.plan.turns {
		for _, c := range []struct {
			to    *[]float64
			build func() error
		}{{&quiet, nil}, {&busy, build}} {
			if err := r.withoutViews(ctx); err != nil {
				return err
			}
			u, err := r.under(ctx, c.build)
			if err != nil {
				return err
			}
			took = append(took, u.took...)
			*c.to = append(*c.to, micro(u.latency.P99)/1e3)
		}
	}
	r.Add("the same, under 200 commits a second", "%.0f ms (at most %.0f ms, of %d)", median(took), slices.Max(took), len(took))
	with, without := median(busy), median(quiet)
	r.Judge(fmt.Sprintf("p99 from commit to receipt of %d subscribers of the watch meanwhile, against without", r.plan.followers), "≤ 1.2 ×", with/without <= 1.2,
		"%.2f × (%.2f and %.2f ms)", with/without, with, without)
	return nil
}

// withoutViews waits until there are none.
func (r *rig) withoutViews(ctx context.Context) error {
	return process.Await(ctx, "the views to be gone", func() (bool, error) {
		n, err := r.Metric(ctx, "watchtide_views")
		return n == 0, err
	})
}

// follow connects subscribers of the large watch that have its snapshot already.
func (r *rig) follow(ctx context.Context, n int) error {
	if err := r.subscribe(ctx, 1, events(many)); err != nil {
		return err
	}
	id, err := r.loader.LastID(0)
	if err != nil {
		return err
	}
	return r.subscribe(ctx, n-1, events(many, "last_event_id", id))
}

// under commits changes for a while, and calls build again and again meanwhile.
func (r *rig) under(ctx context.Context, build func() error) (out built, err error) {
	const interval = 5 * time.Millisecond
	if _, err := r.loader.Latency(); err != nil {
		return out, err
	}
	before, err := r.stats()
	if err != nil {
		return out, err
	}
	n := int(r.plan.phase / interval)
	ended := make(chan error, 1)
	go func() {
		ended <- r.publish(ctx, n, interval, func(i int) int { return i * 7919 % r.plan.large })
	}()
	for over := false; !over; {
		if build == nil {
			err, over = <-ended, true
			continue
		}
		if err := out.add(build); err != nil {
			<-ended
			return out, err
		}
		select {
		case err = <-ended:
			over = true
		default:
		}
	}
	if err != nil {
		return out, err
	}
	if _, err := r.delivered(ctx, before, uint64(n*r.plan.followers)); err != nil {
		return out, err
	}
	out.latency, err = r.loader.Latency()
	return out, err
}

// buildOne asks for a view that does not exist, and reads its snapshot.
func (r *rig) buildOne(ctx context.Context, filter string, want int) error {
	text, err := r.Get(ctx, r.HTTP, "/v1/watches/"+many+"/events?until=end_of_snapshot&filter="+url.QueryEscape(filter))
	if err != nil {
		return err
	}
	if got := bytes.Count(text, []byte("event: upsert\n")); got < want {
		return fmt.Errorf("the view %s has %d resources, want %d", filter, got, want)
	}
	return nil
}
