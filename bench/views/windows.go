package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// rows is the length of a window: what a page shows.
const rows = 50

// orders are what the windows are sorted by. Each change gives its resource another load, so that it has another place
// in five of the ten.
var orders = []string{"-load", "load", "zone,-load", "-state,load", "team,-load", "id", "-id", "node,id", "team,m", "-m"}

// traffic is what streams cost while a watch changes.
type traffic struct {
	used  time.Duration // of the gateway
	bytes float64       // that each stream has read
}

// inWindows compares clients that have a window each with clients that have the whole watch. Half of the windows are
// the top of an order, and half are pages in its middle, where a cursor keeps them.
func (b *bench) inWindows(ctx context.Context) error {
	p := b.plan
	return b.withSettings(ctx, settings{stream: viewLimits}, data{resources: p.large, groups: 100}, func(r *rig) error {
		if err := r.follow(ctx, p.whole); err != nil {
			return err
		}
		whole, err := r.traffic(ctx, "windows-whole", p.whole)
		if err != nil {
			return err
		}
		if err := r.leave(ctx); err != nil {
			return err
		}
		requests, err := r.windows(ctx, p.windows)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := r.subscribeEach(ctx, requests); err != nil {
			return err
		}
		opened := time.Since(began)
		window, err := r.traffic(ctx, "windows", p.windows)
		if err != nil {
			return err
		}
		if err := r.leave(ctx); err != nil {
			return err
		}
		alone, err := r.traffic(ctx, "windows-none", 0)
		if err != nil {
			return err
		}
		r.printWindows(whole, window, alone, opened)
		return nil
	})
}

func (r *rig) printWindows(whole, window, alone traffic, opened time.Duration) {
	p, of := r.plan, r.plan.windowed
	r.Add(fmt.Sprintf("opening %d streams, each with one of %d windows of %d of %d resources, until all have their snapshots", p.windows, 2*len(orders), rows, p.large),
		"%.1f s", opened.Seconds())
	ratio := whole.bytes / window.bytes
	r.Judge(fmt.Sprintf("bytes to each of them a second, under %d changes a second, against a stream of the whole watch", p.changes), "≥ 20 × fewer", ratio >= 20,
		"%.0f × (%.2f and %.0f KiB)", ratio, window.bytes/1024/of.Seconds(), whole.bytes/1024/of.Seconds())
	each := func(t traffic, streams int) float64 {
		return micro(t.used-alone.used) / of.Seconds() / float64(streams)
	}
	w, f := each(window, p.windows), each(whole, p.whole)
	r.Add("CPU of the gateway a second for each of them, against one of the whole watch", "%.1f × less (%.1f and %.0f µs)", f/w, w, f)
	r.Add(fmt.Sprintf("CPU of the gateway meanwhile with %d windows; with %d streams of the whole watch; with none", p.windows, p.whole),
		"%.0f, %.0f, %.0f %% of a core", share(window.used, of), share(whole.used, of), share(alone.used, of))
}

// traffic changes resources at the rate of the plan, and returns what that costs with so many streams.
func (r *rig) traffic(ctx context.Context, name string, streams int) (t traffic, err error) {
	if err := process.Sleep(ctx, r.plan.settle); err != nil { // what connecting has left behind
		return t, err
	}
	before, err := r.stats()
	if err != nil {
		return t, err
	}
	n := int(r.plan.windowed.Seconds() * float64(r.plan.changes))
	err = r.profiled(ctx, name, r.plan.windowed, func() error {
		t.used, err = r.used(func() error {
			// A large prime step, so that the resources that change are spread over the watch.
			if err := r.publish(ctx, n, time.Second/time.Duration(r.plan.changes), func(i int) int { return i * 7919 % r.resources() }); err != nil {
				return err
			}
			return r.silence(ctx)
		})
		return err
	})
	if err != nil || streams == 0 {
		return t, err
	}
	after, err := r.stats()
	t.bytes = float64(after.Since(before).Bytes) / float64(streams)
	return t, err
}

func (r *rig) resources() int { return r.upstream.data.resources }

// silence waits until clients are sent nothing more.
func (r *rig) silence(ctx context.Context) error {
	for seen := uint64(0); ; {
		s, err := r.stats()
		if err != nil {
			return err
		}
		if s.Bytes == seen {
			return nil
		}
		seen = s.Bytes
		if err := process.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// windows are requests of n clients for the windows in turn.
func (r *rig) windows(ctx context.Context, n int) ([]load.Request, error) {
	var each []load.Request
	for _, order := range orders {
		cursor, err := r.middle(ctx, order)
		if err != nil {
			return nil, err
		}
		limit := strconv.Itoa(rows)
		each = append(each, events(many, "order", order, "limit", limit), events(many, "order", order, "limit", limit, "after", cursor))
	}
	requests := make([]load.Request, n)
	for i := range requests {
		requests[i] = each[i%len(each)]
	}
	return requests, nil
}

// middle is the cursor of the place in the middle of an order.
func (r *rig) middle(ctx context.Context, order string) (string, error) {
	query := url.Values{"order": {order}, "limit": {"1"}, "offset": {strconv.Itoa(r.resources() / 2)}}
	text, err := r.Get(ctx, r.HTTP, "/v1/watches/"+many+"/resources?"+query.Encode())
	if err != nil {
		return "", err
	}
	var list struct{ Next string }
	if err := json.Unmarshal(text, &list); err != nil {
		return "", err
	}
	if list.Next == "" {
		return "", fmt.Errorf("order %s: the list has no cursor: %.200s", order, text)
	}
	return list.Next, nil
}
