package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/peers"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// pairing is one fresh server and one load generator.
type pairing struct {
	*bench
	name   string
	server *peers.Server
	loader *child.Loader
	open   int // connections that are open
}

// between starts a server and a load generator, and ends both after do.
func (b *bench) between(ctx context.Context, p peers.Peer, o peers.Options, l child.Options, do func(*pairing) error) (err error) {
	o.WorkDir, o.EventBytes = b.dir, b.plan.sizes[len(b.plan.sizes)-1]
	server, err := p.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	l.Address, l.Stamp, l.InFlight = server.Address, server.Stamp, server.InFlight
	if !l.EndIsDone { // otherwise the end is enough, and counting costs
		l.Marker = server.Marker
	}
	loader, err := child.Start(ctx, b.loader, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loader.Stop()) }()
	return do(&pairing{bench: b, name: p.Name, server: server, loader: loader})
}

// subscribe opens more connections.
func (b *pairing) subscribe(n int, r load.Request) error {
	if err := b.loader.Open(n, r); err != nil {
		return err
	}
	b.open += n
	return b.unharmed()
}

// unharmed requires every connection to be open.
func (b *pairing) unharmed() error {
	s, err := b.loader.Stats()
	if err == nil && s.Lost+s.Refused > 0 {
		err = fmt.Errorf("%d connections lost, %d refused, of %d", s.Lost, s.Refused, s.Connected)
	}
	return err
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func (b *pairing) add(figure string, value float64) { b.sheet.add(b.name, figure, value) }

// cost returns the processor time of the server while do ran.
func (b *pairing) cost(do func() error) (process.Usage, error) {
	before, err := process.UsageOf(b.server.PIDs...)
	if err != nil {
		return process.Usage{}, err
	}
	if err := do(); err != nil {
		return process.Usage{}, err
	}
	after, err := process.UsageOf(b.server.PIDs...)
	return after.Since(before), err
}

// publish publishes n events of a size at once, stamped with the present time.
func (b *pairing) publish(n, size int) error {
	events := make([][]byte, n)
	for i := range events {
		events[i] = event(size)
	}
	return b.server.Publish(events)
}

func event(size int) []byte {
	const around = `{"at":1234567890123456789,"pad":""}`
	return fmt.Appendf(nil, `{"at":%d,"pad":"%s"}`, time.Now().UnixNano(), strings.Repeat("x", max(0, size-len(around))))
}

// warmUp publishes until one event has reached every subscriber: with some
// servers, the head of the answer is sent before the subscription.
func (b *pairing) warmUp(ctx context.Context) error {
	for range 20 {
		before, err := b.loader.Stats()
		if err != nil {
			return err
		}
		if err := b.publish(1, b.plan.sizes[0]); err != nil {
			return err
		}
		if got, err := b.delivered(ctx, before, b.open); err != nil || got >= uint64(b.open) {
			return err
		}
	}
	return fmt.Errorf("of 20 events, none has reached all %d subscribers", b.open)
}

const (
	// pollInterval is how often the load generator is polled.
	pollInterval = 2 * time.Millisecond
	// standstill is the time without any delivery after which no more are expected.
	standstill = 2 * time.Second
)

// delivered waits until that many events have arrived since earlier, or no more
// arrive, and returns how many did.
func (b *pairing) delivered(ctx context.Context, earlier load.Stats, want int) (uint64, error) {
	last, seen := time.Now(), uint64(0)
	for {
		s, err := b.loader.Stats()
		if err != nil {
			return 0, err
		}
		got := s.Since(earlier).Events
		if want <= 0 || got >= uint64(want) || time.Since(last) > standstill {
			return got, nil
		}
		if got > seen {
			seen, last = got, time.Now()
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return got, err
		}
	}
}
