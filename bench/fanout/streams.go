package main

import (
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/peers"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// sampled is the share of connections whose latency is measured: one in so many.
const sampled = 10

// inStreams measures what a subscriber costs, idle and under load.
func (b *bench) inStreams(ctx context.Context, p peers.Peer) error {
	o := peers.Options{Subscribers: b.plan.subscribers, Backlog: b.plan.window + 10}
	return b.start(ctx, p, o, func(b *pairing) error {
		if b.server.Publish == nil {
			return nil
		}
		for _, measure := range []func(context.Context) error{b.alone, b.connect, b.atRate, b.flatOut} {
			if err := measure(ctx); err != nil {
				return err
			}
		}
		memory, err := process.PeakResident(b.server.PIDs...)
		b.add("peak MiB", mebibytes(memory))
		return err
	})
}

// start is between, for events.
func (b *bench) start(ctx context.Context, p peers.Peer, o peers.Options, do func(*pairing) error) error {
	return b.between(ctx, p, o, child.Options{Sample: sampled}, do)
}

// alone measures one subscriber, and so warms the server up.
func (b *pairing) alone(ctx context.Context) error {
	if err := b.subscribe(1, load.Request{Bytes: b.server.Request}); err != nil {
		return err
	}
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	if _, err := b.loader.Latency(); err != nil {
		return err
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for range b.plan.alone {
		<-ticker.C
		if err := b.publish(1, b.plan.sizes[0]); err != nil {
			return err
		}
	}
	if err := sleep(ctx, 100*time.Millisecond); err != nil {
		return err
	}
	l, err := b.loader.Latency()
	b.add("alone p50 µs", microseconds(l.P50))
	b.add("alone p99 µs", microseconds(l.P99))
	return err
}

// connect measures the cost of connecting, and the memory of connections.
func (b *pairing) connect(ctx context.Context) error {
	before, err := process.Proportional(b.server.PIDs...)
	if err != nil {
		return err
	}
	n := b.plan.subscribers - b.open
	used, err := b.cost(func() error { return b.subscribe(n, load.Request{Bytes: b.server.Request}) })
	if err != nil {
		return err
	}
	b.add("connect µs", microseconds(used.Total())/float64(n))
	if err := b.memory(ctx, "idle KiB", b.plan.settle, before, n); err != nil {
		return err
	}
	if b.plan.idle > 0 && !b.again {
		if err := b.memory(ctx, "later KiB", b.plan.idle, before, n); err != nil {
			return err
		}
	}
	if b.server.Upstreams != nil {
		b.add("upstream streams", float64(b.server.Upstreams()))
	}
	return b.warmUp(ctx)
}

// memory records how much more than before each of n connections holds.
func (b *pairing) memory(ctx context.Context, figure string, wait time.Duration, before int64, n int) error {
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	after, err := process.Proportional(b.server.PIDs...)
	b.add(figure, float64(after-before)/1024/float64(n))
	return err
}

// atRate publishes one event at a time, at a rate that most servers sustain.
func (b *pairing) atRate(ctx context.Context) error {
	for _, size := range b.plan.sizes {
		f, err := b.paced(ctx, size)
		if err != nil {
			return err
		}
		f.note(b, fmt.Sprintf("%d B", size))
	}
	return nil
}

// paced publishes on schedule, regardless of the result, and waits for late
// deliveries.
func (b *pairing) paced(ctx context.Context, size int) (load figures, err error) {
	n := int(b.plan.seconds.Seconds() * float64(b.plan.rate))
	return b.phase(ctx, func(*progress) (int, error) {
		ticker := time.NewTicker(time.Second / time.Duration(b.plan.rate))
		defer ticker.Stop()
		for range n {
			<-ticker.C
			if err := b.publish(1, size); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// flatOut publishes as fast as the server accepts it, one event at a time and ten.
func (b *pairing) flatOut(ctx context.Context) error {
	for _, each := range []int{1, 10} {
		f, err := b.phase(ctx, func(p *progress) (int, error) { return b.ahead(ctx, p, each) })
		if err != nil {
			return err
		}
		f.note(b, fmt.Sprintf("flat out, %d", each))
	}
	return nil
}

// ahead publishes, and waits whenever it is a window ahead of the mean
// subscriber. If nothing arrives for too long, the missing events count as
// lost.
func (b *pairing) ahead(ctx context.Context, p *progress, each int) (published int, err error) {
	got := uint64(0) // as of the last poll: only when there is no room
	for began := time.Now(); time.Since(began) < b.plan.seconds; published += each {
		if room := (published + each - b.plan.window) * b.open; int(got) < room {
			if got, err = b.delivered(ctx, p.before, room); err != nil || got < uint64(room) {
				return published, err
			}
		}
		if err := b.publish(each, b.plan.sizes[0]); err != nil {
			return published, err
		}
	}
	return published, nil
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
