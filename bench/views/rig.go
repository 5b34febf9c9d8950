package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// rig is a gateway and a load generator.
type rig struct {
	*bench
	*gateway
	loader *child.Loader
	done   uint64 // subscribers that have had their snapshot
}

// with starts a gateway that has views, and a load generator, and ends both after do.
func (b *bench) with(ctx context.Context, d data, do func(*rig) error) error {
	return b.withSettings(ctx, settings{stream: viewLimits}, d, do)
}

func (b *bench) withSettings(ctx context.Context, s settings, d data, do func(*rig) error) error {
	g, err := startGateway(ctx, b.program, b.dir, b.plan, s, d)
	if err != nil {
		return err
	}
	defer g.stop()
	return b.load(ctx, g, do)
}

// load starts a load generator for a gateway.
func (b *bench) load(ctx context.Context, g *gateway, do func(*rig) error) (err error) {
	l, err := child.Start(ctx, b.generator, child.Options{
		Address: g.HTTP, Marker: []byte("\nevent: upsert\n"), Done: []byte(`"type":"end_of_snapshot"`), Sample: 1, IDs: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	return do(&rig{bench: b, gateway: g, loader: l})
}

// events is a request for the events of a watch.
func events(watch string, parameters ...string) load.Request {
	return eventsAs("", watch, parameters...)
}

// eventsAs is such a request with a token; empty: none.
func eventsAs(token, watch string, parameters ...string) load.Request {
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	head := "GET /v1/watches/" + watch + "/events?" + query.Encode() + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	return load.Request{Bytes: []byte(head + "\r\n")}
}

// subscribe connects that many more subscribers of the same, and waits until all have the
// snapshot.
func (r *rig) subscribe(ctx context.Context, n int, request load.Request) error {
	if err := r.loader.Open(n, request); err != nil {
		return err
	}
	return r.snapshots(ctx, n)
}

// subscribeEach connects one more subscriber for each request.
func (r *rig) subscribeEach(ctx context.Context, requests []load.Request) error {
	if err := r.loader.OpenEach(requests); err != nil {
		return err
	}
	return r.snapshots(ctx, len(requests))
}

func (r *rig) snapshots(ctx context.Context, n int) error {
	r.done += uint64(n)
	return process.Await(ctx, fmt.Sprintf("%d snapshots", n), func() (bool, error) {
		s, err := r.stats()
		return s.Done >= r.done, err
	})
}

// stats fails if a connection was lost or refused.
func (r *rig) stats() (load.Stats, error) {
	s, err := r.loader.Stats()
	if err == nil && s.Lost+s.Refused > 0 {
		err = fmt.Errorf("%d connections lost, %d refused, of %d", s.Lost, s.Refused, s.Connected)
	}
	return s, err
}

// leave closes all connections, and waits until the gateway has noticed.
func (r *rig) leave(ctx context.Context) error {
	if err := r.loader.HangupAll(); err != nil {
		return err
	}
	return process.Await(ctx, "the gateway to have no subscribers", func() (bool, error) {
		n, err := r.Metric(ctx, "watchtide_subscribers")
		return n == 0, err
	})
}

// used is the processor time of the gateway while do ran.
func (g *gateway) used(do func() error) (time.Duration, error) {
	before, err := g.CPU()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := g.CPU()
	return after - before, err
}

// idle is the processor time of the gateway in one period of heartbeats without commits.
// It begins when the garbage of connecting is gone.
func (r *rig) idle(ctx context.Context, name string) (used time.Duration, err error) {
	if err := process.Sleep(ctx, r.plan.settle); err != nil {
		return 0, err
	}
	if _, err := r.memory(ctx); err != nil {
		return 0, err
	}
	err = r.profiled(ctx, name, r.plan.heartbeat, func() error {
		used, err = r.used(func() error { return process.Sleep(ctx, r.plan.heartbeat) })
		return err
	})
	return used, err
}

// commits changes n resources, one after the other at a fixed rate, and returns the
// processor time of the gateway until all that was sent has arrived, and how many events
// that were. each is how many deliveries are expected of every commit.
func (r *rig) commits(ctx context.Context, n, each int, interval time.Duration, resource func(i int) int) (time.Duration, uint64, error) {
	before, err := r.stats()
	if err != nil {
		return 0, 0, err
	}
	got := uint64(0)
	used, err := r.used(func() error {
		if err := r.publish(ctx, n, interval, resource); err != nil {
			return err
		}
		got, err = r.delivered(ctx, before, uint64(n*each))
		return err
	})
	switch want := uint64(n * each); {
	case err != nil || got == want:
	case got == 0:
		err = fmt.Errorf("of %d events none was delivered", want)
	case got < want: // a subscriber that lags gets the newest value only
		r.logf("%d of %d events were delivered: the machine is slow for this rate", got, want)
	}
	return used, got, err
}

// publish commits changes at a fixed rate.
func (g *gateway) publish(ctx context.Context, n int, interval time.Duration, resource func(i int) int) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		if err := g.upstream.commit(ctx, resource(i)); err != nil {
			return err
		}
	}
	return nil
}

// delivered waits until that many events have arrived, or no more do.
func (r *rig) delivered(ctx context.Context, before load.Stats, want uint64) (uint64, error) {
	const standstill = time.Second
	for last, seen := time.Now(), uint64(0); ; {
		s, err := r.stats()
		if err != nil {
			return 0, err
		}
		got := s.Since(before).Events
		if got >= want || time.Since(last) > standstill {
			return got, nil
		}
		if got > seen {
			seen, last = got, time.Now()
		}
		if err := process.Sleep(ctx, 2*time.Millisecond); err != nil {
			return got, err
		}
	}
}

// profiled has a CPU profile of the gateway taken while do runs, if profiles are wanted.
func (r *rig) profiled(ctx context.Context, name string, lasts time.Duration, do func() error) error {
	if r.profiles == "" {
		return do()
	}
	path := fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(lasts.Seconds())))
	wait := r.Keep(ctx, path, filepath.Join(r.profiles, name+".cpu.pprof"))
	return errors.Join(do(), wait())
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// share is the processor time in percent of the time that passed.
func share(used, of time.Duration) float64 { return 100 * used.Seconds() / of.Seconds() }

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}
