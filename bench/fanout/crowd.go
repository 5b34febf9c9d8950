package main

import (
	"context"
	"fmt"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/peers"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// inCrowd measures idle subscribers, in growing numbers.
func (b *bench) inCrowd(ctx context.Context, p peers.Peer) error {
	most := b.plan.crowd[len(b.plan.crowd)-1]
	return b.start(ctx, p, peers.Options{Subscribers: most}, func(b *pairing) error {
		if err := b.subscribe(1, load.Request{Bytes: b.server.Request}); err != nil {
			return err
		}
		before, err := process.Proportional(b.server.PIDs...)
		if err != nil {
			return err
		}
		for _, n := range b.plan.crowd {
			if err := b.subscribe(n-b.open, load.Request{Bytes: b.server.Request}); err != nil {
				return err
			}
			if err := b.memory(ctx, fmt.Sprintf("%d idle: KiB", n), b.plan.settle, before, n); err != nil {
				return err
			}
		}
		if b.again || b.name != measured {
			return nil
		}
		return b.holdAll(ctx, before, most)
	})
}

// inThree measures idle subscribers of three watches each.
func (b *bench) inThree(ctx context.Context, p peers.Peer) error {
	return b.start(ctx, p, peers.Options{Subscribers: b.plan.subscribers}, func(b *pairing) error {
		if err := b.subscribe(1, load.Request{Bytes: b.server.Several}); err != nil {
			return err
		}
		before, err := process.Proportional(b.server.PIDs...)
		if err != nil {
			return err
		}
		if err := b.subscribe(b.plan.subscribers-1, load.Request{Bytes: b.server.Several}); err != nil {
			return err
		}
		b.add("three watches: upstream streams", float64(b.server.Upstreams()))
		return b.memory(ctx, "three watches: KiB", b.plan.settle, before, b.plan.subscribers-1)
	})
}

// holdAll leaves all subscribers idle, with only the heartbeats.
func (b *pairing) holdAll(ctx context.Context, before int64, n int) error {
	earlier, err := b.loader.Stats()
	if err != nil {
		return err
	}
	used, err := b.cost(func() error { return sleep(ctx, b.plan.hold) })
	if err != nil {
		return err
	}
	s, err := b.loader.Stats()
	if err != nil {
		return err
	}
	b.add("held: CPU %", 100*used.Total().Seconds()/b.plan.hold.Seconds())
	b.add("held: lost", float64(s.Lost))
	b.add("held: bytes/s each", float64(s.Since(earlier).Bytes)/float64(n)/b.plan.hold.Seconds())
	return b.memory(ctx, "held: KiB", 0, before, n)
}
