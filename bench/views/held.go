package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/watchtide/watchtide/bench/load"
)

// inMemory measures what views of ten resources hold, each with a subscriber. What as
// many subscribers of a watch with ten resources hold is subtracted, and so are the
// frames: the events with these resources, as they are sent.
func (b *bench) inMemory(ctx context.Context) error {
	const groups = 100
	filter := func(i int) string { return fmt.Sprintf(`value.team == "t%d" && value.m != %d`, i%groups, 10_000+i) }
	return b.with(ctx, data{resources: 10 * groups, groups: groups}, func(r *rig) error {
		n := b.plan.held
		if err := r.subscribe(ctx, n, events(few)); err != nil {
			return err
		}
		without, err := r.memory(ctx)
		if err != nil {
			return err
		}
		idle, err := r.idle(ctx, "memory-idle")
		if err != nil {
			return err
		}
		b.Add(fmt.Sprintf("CPU of the idle gateway with %d subscribers of one watch, without views", n), "%.2f %%", share(idle, b.plan.heartbeat))
		if err := r.leave(ctx); err != nil {
			return err
		}
		views := from(0, n, func(i int) load.Request { return events(many, "filter", filter(i)) })
		if err := r.subscribeEach(ctx, views); err != nil {
			return err
		}
		with, err := r.memory(ctx)
		if err != nil {
			return err
		}
		frames, err := r.frames(ctx, filter(0))
		if err != nil {
			return err
		}
		each := func(with, without float64) float64 { return ((with-without)/float64(n) - frames) / 1024 }
		heap := each(with.heap, without.heap)
		b.Judge(fmt.Sprintf("memory of a view of ten resources, beyond %.1f KiB of frames, with %d views", frames/1024, n), "≤ 4 KiB", heap <= 4,
			"%.2f KiB (%.2f KiB by resident memory, %.2f KiB as the gateway counts)", heap, each(with.rss, without.rss), each(with.views, 0))
		if b.profiles == "" {
			return nil
		}
		return r.Keep(ctx, "/debug/pprof/heap", filepath.Join(b.profiles, "views.heap.pprof"))()
	})
}

// frames is the size of the events of a view's resources.
func (r *rig) frames(ctx context.Context, filter string) (total float64, err error) {
	text, err := r.Get(ctx, r.HTTP, "/v1/watches/"+many+"/events?until=end_of_snapshot&filter="+url.QueryEscape(filter))
	if err != nil {
		return 0, err
	}
	resources := 0
	for event := range bytes.SplitSeq(text, []byte("\n\n")) {
		if bytes.HasPrefix(event, []byte("event: upsert\n")) {
			total += float64(len(event) + 2)
			resources++
		}
	}
	if resources != 10 {
		return 0, fmt.Errorf("the view has %d resources, want 10", resources)
	}
	return total, nil
}
