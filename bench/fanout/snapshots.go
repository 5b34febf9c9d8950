package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/peers"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// inSnapshots measures a snapshot to one subscriber, and to many at once.
func (b *bench) inSnapshots(ctx context.Context, p peers.Peer) error {
	for _, n := range b.plan.storms {
		if err := b.storm(ctx, p, n, false); err != nil {
			return fmt.Errorf("%d at once: %w", n, err)
		}
		if ours(b.plan, p) {
			if err := b.storm(ctx, p, n, true); err != nil {
				return fmt.Errorf("%d at once, gzip: %w", n, err)
			}
		}
	}
	return nil
}

// storm has n subscribers request a snapshot at the same time. Each storm has a
// fresh server, as some cache compressed data.
func (b *bench) storm(ctx context.Context, p peers.Peer, n int, compressed bool) error {
	o := peers.Options{Subscribers: n, Resources: b.plan.resources, ResourceBytes: b.plan.bytes}
	const enough = 1 << 30 // for all of one response
	return b.between(ctx, p, o, child.Options{EndIsDone: true, Keep: enough}, func(b *pairing) error {
		if b.server.Snapshot == nil {
			return nil
		}
		request, figure := b.server.Snapshot, fmt.Sprintf("%d at once", n)
		if compressed {
			request, figure = load.With(request, "Accept-Encoding", "gzip"), figure+", gzip"
		}
		return b.ask(ctx, n, request, figure)
	})
}

// ask connects first, so that all requests are sent within some milliseconds.
func (b *pairing) ask(ctx context.Context, n int, request []byte, figure string) error {
	if err := b.subscribe(n, load.Request{Bytes: request, Held: true}); err != nil {
		return err
	}
	if err := sleep(ctx, b.plan.settle); err != nil {
		return err
	}
	before, err := process.Resident(b.server.PIDs...)
	if err != nil {
		return err
	}
	if err := process.ForgetPeak(b.server.PIDs...); err != nil {
		return err
	}
	used, err := b.cost(func() error { return b.answered(ctx, n) })
	if err != nil {
		return err
	}
	memory, err := process.PeakResident(b.server.PIDs...)
	if err != nil {
		return err
	}
	b.add(figure+": CPU s", used.Total().Seconds())
	b.add(figure+": peak MiB", mebibytes(memory))
	b.add(figure+": growth MiB", mebibytes(memory-before))
	return b.noteAnswers(n, figure)
}

// answered releases the requests and waits for the ends of all responses.
func (b *pairing) answered(ctx context.Context, n int) error {
	if err := b.loader.Release(); err != nil {
		return err
	}
	return b.done(ctx, uint64(n))
}

// done waits until n connections are done.
func (b *pairing) done(ctx context.Context, n uint64) error {
	for began := time.Now(); ; {
		s, err := b.loader.Stats()
		switch {
		case err != nil:
			return err
		case s.Lost+s.Refused > 0:
			return fmt.Errorf("%d lost, %d refused, %d done of %d", s.Lost, s.Refused, s.Done, n)
		case s.Done >= n:
			return nil
		case time.Since(began) > 5*time.Minute:
			return fmt.Errorf("%d of %d done after five minutes", s.Done, n)
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

func (b *pairing) noteAnswers(n int, figure string) error {
	times, err := b.loader.Times()
	if err != nil {
		return err
	}
	s, err := b.loader.Stats()
	if err != nil {
		return err
	}
	b.add(figure+": s", times.Max.Seconds())
	b.add(figure+": MB each", float64(s.Bytes)/float64(n)/1e6)
	first, err := b.loader.Kept()
	if err != nil {
		return err
	}
	return b.complete(first)
}

// complete requires every resource in a response: a server that sends less is
// faster.
func (b *pairing) complete(response []byte) error {
	body, err := decode(response)
	if err != nil {
		return fmt.Errorf("the response to the first subscriber: %w", err)
	}
	if got := bytes.Count(body, []byte(`resource-`)); got != b.plan.resources {
		return fmt.Errorf("the response to the first subscriber has %d resources, want %d", got, b.plan.resources)
	}
	return nil
}
