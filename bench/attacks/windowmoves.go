package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var windowMoves = attack{
	name:  "window-moves",
	title: "one principal moves the windows of 20 streams as fast as it can, and those of somebody else; others follow the same watch",
	run:   runWindowMoves,
}

const movesConfiguration = listeners + accounts + `
sources: { a: { type: store, max_bytes: 64MiB } }
watches:
  rows: { source: a, allow: [ { role: anyone, read: "true", write: "true" } ] }
`

// movedStream is an open stream of a window, whose moves are counted.
type movedStream struct {
	name  atomic.Pointer[string] // nil: hello has not come
	moves atomic.Int64           // of which it was told
}

var (
	streamName = regexp.MustCompile(`"stream":"([A-Z0-9]+)"`)
	movedTo    = regexp.MustCompile(`"move":\d+`)
)

// follow follows a window until ctx is done.
func (s *movedStream) follow(ctx context.Context, c *client) (wait func()) {
	return c.follow(ctx, "/v1/watches/rows/events?order=n&limit=100", func(line string) {
		if m := streamName.FindStringSubmatch(line); m != nil {
			s.name.Store(&m[1])
		}
		if movedTo.MatchString(line) {
			s.moves.Add(1)
		}
	})
}

// putRows makes the resources that windows are sorted of.
func putRows(ctx context.Context, as *client) error {
	for i := range 2000 {
		if err := as.put(ctx, "rows", fmt.Sprint("k", i), fmt.Sprintf(`{"n":%d}`, i)); err != nil {
			return err
		}
	}
	return nil
}

func runWindowMoves(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, movesConfiguration, nil)
	if err != nil {
		return err
	}
	ann, bob := t.as("ann", "127.0.0.77"), t.as("bob", "127.0.0.5")
	if err := putRows(ctx, bob); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var late lateness
	defer late.follow(following, bob, "/v1/watches/rows/events?prefix=now")()
	own, other := make([]movedStream, 20), &movedStream{}
	for i := range own {
		defer own[i].follow(following, ann)()
	}
	defer other.follow(following, bob)()
	defer stop()
	if err := process.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	alone, err := lateBy(ctx, bob, &late, 5*time.Second)
	if err != nil {
		return err
	}
	before, err := t.Metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return err
	}
	attacking, end := context.WithCancel(ctx)
	asked, statuses := askForMoves(attacking, ann, own, other)
	attacked, err := lateBy(ctx, bob, &late, 10*time.Second)
	end()
	statuses.Wait()
	if err != nil {
		return err
	}
	after, err := t.Metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return err
	}
	taken := int64(0)
	for i := range own {
		taken += own[i].moves.Load()
	}
	const margin = 300 * time.Millisecond // of a busy machine
	r.atMost("95 % of the changes of somebody else are late by", attacked, alone+margin)
	r.report(fmt.Sprintf("moves that the streams were told of, of %d that were asked for in 10 s", asked.all.Load()), "1 to 1,100", taken >= 1 && taken <= 1100, "%d", taken)
	r.report("answers to moves of somebody else's stream", "404 or 429", asked.foreign.Load() > 0 && asked.foreign.Load() == asked.refused.Load() && other.moves.Load() == 0, "%d of %d", asked.refused.Load(), asked.foreign.Load())
	r.report("resident memory grows by", "≤ 200 MiB", after-before <= 200<<20, "%.0f MiB", (after-before)/(1<<20))
	return nil
}

// asks counts requests.
type asks struct{ all, foreign, refused atomic.Int64 }

// askForMoves moves windows of its own, and sometimes that of somebody else, until ctx is done.
func askForMoves(ctx context.Context, c *client, own []movedStream, other *movedStream) (*asks, *sync.WaitGroup) {
	n, all := &asks{}, &sync.WaitGroup{}
	for i := range 8 {
		all.Go(func() {
			for at := i; ctx.Err() == nil; at++ {
				of := &own[at%len(own)]
				foreign := at%50 == 0
				if foreign {
					of = other
				}
				name := of.name.Load()
				if name == nil {
					continue
				}
				a, err := c.ask(ctx, http.MethodPost, fmt.Sprintf("/v1/streams/%s/window?offset=%d", *name, at*37%1900), "")
				if err != nil {
					continue
				}
				n.all.Add(1)
				if foreign {
					n.foreign.Add(1)
				}
				if foreign && a.status == http.StatusNotFound || foreign && a.status == http.StatusTooManyRequests {
					n.refused.Add(1)
				}
			}
		})
	}
	return n, all
}

// lateBy changes a resource for a while, and returns how late 95 % of the changes are.
func lateBy(ctx context.Context, writer *client, l *lateness, lasts time.Duration) (time.Duration, error) {
	l.take()
	for began := time.Now(); time.Since(began) < lasts; {
		if err := writer.put(ctx, "rows", "now", fmt.Sprintf(`{"n":%d,"t":%d}`, time.Now().UnixNano()%2000, time.Now().UnixNano())); err != nil {
			return 0, err
		}
		if err := process.Sleep(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	if err := process.Sleep(ctx, time.Second); err != nil {
		return 0, err
	}
	return quantile(l.take(), .95), nil
}
