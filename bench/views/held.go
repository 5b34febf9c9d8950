package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// inMemory measures what views of ten resources hold: with a subscriber each, whose stream
// then has a group of its own, and once the subscribers have left, while the views linger. What
// a gateway holds that has, or has had, as many subscribers of a watch with ten resources is
// subtracted, and so are the frames: the events with these resources, as they are sent.
func (b *bench) inMemory(ctx context.Context) error {
	const groups = 100
	filter := func(i int) string { return fmt.Sprintf(`value.team == "t%d" && value.m != %d`, i%groups, 10_000+i) }
	d, n := data{resources: 10 * groups, groups: groups}, b.plan.held
	var without, with held
	frames := 0.0
	err := b.with(ctx, d, func(r *rig) (err error) {
		// What is made once, for the first view of a process, is there too.
		if frames, err = r.frames(ctx, filter(0)); err != nil {
			return err
		}
		if err := r.subscribe(ctx, n, events(few)); err != nil {
			return err
		}
		idle, err := r.idle(ctx, "memory-idle")
		if err != nil {
			return err
		}
		b.Add(fmt.Sprintf("CPU of the idle gateway with %d subscribers of one watch, without views", n), "%.2f %%", share(idle, b.plan.heartbeat))
		without, err = r.held(ctx, "memory-without")
		return err
	})
	if err != nil {
		return err
	}
	err = b.with(ctx, d, func(r *rig) error {
		err := r.subscribeEach(ctx, from(0, n, func(i int) load.Request { return events(many, "filter", filter(i)) }))
		if err != nil {
			return err
		}
		with, err = r.held(ctx, "memory")
		return err
	})
	if err != nil {
		return err
	}
	each := func(with, without float64) float64 { return ((with-without)/float64(n) - frames) / 1024 }
	heap := each(with.left.heap, without.left.heap)
	b.Judge(fmt.Sprintf("memory of a view of ten resources, beyond %.1f KiB of frames, with %d views whose subscribers have just left", frames/1024, n), "≤ 4 KiB", heap <= 4,
		"%.2f KiB (%.2f KiB as the gateway counts)", heap, each(with.left.views, 0))
	b.Add("the same with a subscriber each, and so with a group each in the shards", "%.2f KiB (%.2f KiB by resident memory)",
		each(with.followed.heap, without.followed.heap), each(with.followed.rss, without.followed.rss))
	return nil
}

// held is what a gateway holds with its subscribers, and right after they have left: the views
// linger.
type held struct{ followed, left memory }

func (r *rig) held(ctx context.Context, name string) (h held, err error) {
	if h.followed, err = r.memory(ctx); err != nil {
		return h, err
	}
	if r.profiles != "" {
		if err := r.Keep(ctx, "/debug/pprof/heap", filepath.Join(r.profiles, name+".heap.pprof"))(); err != nil {
			return h, err
		}
	}
	if err := r.leave(ctx); err != nil {
		return h, err
	}
	h.left, err = r.memory(ctx)
	return h, err
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
