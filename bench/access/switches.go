package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// round is a reload after which all streams have switched.
type round struct {
	took, cpu time.Duration // until all have a snapshot
	bytes     float64       // that each was sent, on average
}

// switches measures reloads of the rules, each of which makes all streams switch to another
// view.
func (b *bench) switches(ctx context.Context) (err error) {
	file, err := b.prepare(0)
	if err != nil {
		return err
	}
	g, err := process.Start(ctx, b.gateway, file)
	if err != nil {
		return err
	}
	defer g.Stop()
	if err := b.write(ctx, g); err != nil {
		return err
	}
	l, err := child.Start(ctx, b.generator, child.Options{
		Address: g.HTTP, Marker: []byte(`"type":"end_of_snapshot"`), Done: []byte(`"type":"end_of_snapshot"`), Sample: 1,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	snapshot, err := b.connect(ctx, l)
	if err != nil {
		return err
	}
	var rounds []round
	for i := range b.rounds {
		r, err := b.reload(ctx, g, l, (i+1)%2*b.differ)
		if err != nil {
			return err
		}
		rounds = append(rounds, r)
	}
	b.report(rounds, snapshot)
	return nil
}

// connect opens all streams, and returns how many bytes the snapshot of each has.
func (b *bench) connect(ctx context.Context, l *child.Loader) (snapshot float64, err error) {
	if err := l.OpenEach(b.requests()); err != nil {
		return 0, err
	}
	var s load.Stats
	err = process.Await(ctx, fmt.Sprintf("%d snapshots", b.streams), func() (bool, error) {
		s, err = stats(l)
		return s.Done >= uint64(b.streams), err
	})
	return float64(s.Bytes) / float64(b.streams), err
}

// reload changes the rules, and waits until all streams have a snapshot of their new view.
func (b *bench) reload(ctx context.Context, g *process.Gateway, l *child.Loader, from int) (r round, err error) {
	if err := process.Sleep(ctx, time.Second); err != nil { // the garbage of before is gone
		return r, err
	}
	before, err := stats(l)
	if err != nil {
		return r, err
	}
	used, err := g.CPU()
	if err != nil {
		return r, err
	}
	if _, err := b.prepare(from); err != nil {
		return r, err
	}
	began := time.Now()
	if err := g.Reload(); err != nil {
		return r, err
	}
	var since load.Stats
	err = process.Await(ctx, "all streams to have a snapshot", func() (bool, error) {
		s, err := stats(l)
		since = s.Since(before)
		return since.Events >= uint64(b.streams), err
	})
	if err != nil {
		return r, err
	}
	after, err := g.CPU()
	return round{took: time.Since(began), cpu: after - used, bytes: float64(since.Bytes) / float64(b.streams)}, err
}

// report adds the lines of all rounds.
func (b *bench) report(rounds []round, snapshot float64) {
	by := func(figure func(round) float64) float64 {
		var all []float64
		for _, r := range rounds {
			all = append(all, figure(r))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	b.Add(fmt.Sprintf("reload that moves %d streams to another view, until each has a snapshot", b.streams), "%.2f s",
		by(func(r round) float64 { return r.took.Seconds() }))
	b.Add("bytes to each of them", "%.1f KiB; a first snapshot has %.1f", by(func(r round) float64 { return r.bytes })/1024, snapshot/1024)
	b.Add("CPU of the gateway for each stream that moves", "%.0f µs", by(func(r round) float64 { return r.cpu.Seconds() })*1e6/float64(b.streams))
}

// stats fails if a connection was lost or refused.
func stats(l *child.Loader) (load.Stats, error) {
	s, err := l.Stats()
	if err == nil && s.Lost+s.Refused > 0 {
		err = fmt.Errorf("%d connections lost, %d refused, of %d", s.Lost, s.Refused, s.Connected)
	}
	return s, err
}
