package main

import (
	"context"
	"fmt"
	"time"
)

// inShared compares a view that many subscribers share with its watch. Both have the
// same subscribers, alternately.
func (b *bench) inShared(ctx context.Context) error {
	const resources = 1000
	var watch, view []float64
	err := b.with(ctx, data{resources: resources, groups: 10}, func(r *rig) error {
		for range b.plan.rounds {
			for _, c := range []struct {
				to         *[]float64
				parameters []string
			}{{&watch, nil}, {&view, []string{"filter", `value.team == "t3"`}}} {
				if err := r.subscribe(ctx, b.plan.subscribers, events(many, c.parameters...)); err != nil {
					return err
				}
				each, err := r.perEvent(ctx, fmt.Sprintf("shared-%d", len(c.parameters)/2), b.plan.shared)
				if err != nil {
					return err
				}
				*c.to = append(*c.to, each)
				if err := r.leave(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w, v := median(watch), median(view)
	b.Judge(fmt.Sprintf("CPU per event, a view with %d subscribers against the watch itself", b.plan.subscribers), "≤ 1.1 ×", v/w <= 1.1,
		"%.2f × (%.2f and %.2f µs)", v/w, v, w)
	return nil
}

// perEvent is the processor time of the gateway for each event that one of many
// subscribers gets of n commits, in microseconds. Every commit concerns all of them.
func (r *rig) perEvent(ctx context.Context, name string, n int) (each float64, err error) {
	const interval = 100 * time.Millisecond
	err = r.profiled(ctx, name, time.Duration(n)*interval, func() error {
		used, got, err := r.commits(ctx, n, r.plan.subscribers, interval, func(i int) int { return 3 + i*10 })
		each = micro(used) / float64(got)
		return err
	})
	return each, err
}
