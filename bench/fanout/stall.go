package main

import (
	"context"
	"errors"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/peers"
)

// inStall measures how one subscriber that reads nothing affects the others:
// first with it, while the server cannot deliver its data, and then without it.
func (b *bench) inStall(ctx context.Context, p peers.Peer) error {
	o := peers.Options{Subscribers: b.plan.subscribers + 2}
	return b.start(ctx, p, o, func(b *pairing) (err error) {
		stalled, err := child.Start(ctx, b.bench.loader, child.Options{Address: b.server.Address, IDs: true, Marker: b.server.Marker})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stalled.Stop()) }()
		position, err := b.stall(ctx, stalled)
		if err != nil {
			return err
		}
		// With a position, or each would first get the events that the stalled
		// one does not read.
		request := load.With(b.server.Request, "Last-Event-ID", position)
		if err := b.subscribe(b.plan.subscribers, load.Request{Bytes: request}); err != nil {
			return err
		}
		if err := b.compare(ctx, "one stalls"); err != nil {
			return err
		}
		if err := stalled.HangupAll(); err != nil {
			return err
		}
		return b.compare(ctx, "nobody stalls")
	})
}

// compare is a phase after which the server is idle.
func (b *pairing) compare(ctx context.Context, figure string) error {
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	f, err := b.paced(ctx, b.plan.sizes[0])
	if err != nil {
		return err
	}
	f.note(b, figure)
	return nil
}

// stall has one subscriber read nothing, and publishes until its socket must be
// full. A second one reads, and supplies the position after that.
func (b *pairing) stall(ctx context.Context, l *child.Loader) (position string, err error) {
	const buffer, events, size = 4096, 80, 100_000 // more than the 4 MiB that a socket takes at most
	if err := l.Open(1, load.Request{Bytes: b.server.Request, Stalled: true, ReceiveBuffer: buffer}); err != nil {
		return "", err
	}
	if err := l.Open(1, load.Request{Bytes: b.server.Request}); err != nil {
		return "", err
	}
	reader := &pairing{bench: b.bench, server: b.server, loader: l, open: 1}
	_, err = reader.phase(ctx, func(*progress) (int, error) {
		for range events {
			if err := b.publish(1, size); err != nil {
				return 0, err
			}
		}
		return events, nil
	})
	if err != nil {
		return "", err
	}
	return l.LastID(1)
}
