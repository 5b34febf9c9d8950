package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// bench compares two programs.
type bench struct {
	process.Table
	plan     plan
	programs [2]string
}

// figures are those of all turns, by program.
type figures [2][]float64

// measure measures one state.
func (b *bench) measure(ctx context.Context, size int) error {
	of := fmt.Sprintf("%d × %d B", b.plan.keys, size)
	err := b.pair(ctx, "log", size, func(c [2]*child) error {
		return b.commits(c, "commits of one change to a log of "+of)
	})
	if err != nil {
		return err
	}
	return b.pair(ctx, "gateway", size, func(c [2]*child) error {
		if err := b.commits(c, "commits of one change through a watch of "+of); err != nil {
			return err
		}
		if err := b.firstByte(c, "µs from a commit to its first byte, "+of); err != nil {
			return err
		}
		return b.fanout(c, fmt.Sprintf("CPU µs for an event of %d B, %d subscribers", size, b.plan.subscribers))
	})
}

// pair calls fn with both programs, which serve a state.
func (b *bench) pair(ctx context.Context, what string, size int, fn func([2]*child) error) error {
	var both [2]*child
	for i, program := range b.programs {
		c, err := start(ctx, program, what, b.plan, size, i == with)
		if err != nil {
			return err
		}
		defer c.stop()
		both[i] = c
	}
	return fn(both)
}

// inTurns has the programs take turns, the other one first each time. The first round is not counted.
func (b *bench) inTurns(turn func(i int) (float64, error)) (of figures, err error) {
	for round := range b.plan.rounds + 1 {
		for k := range 2 {
			i := (round + k) % 2
			figure, err := turn(i)
			if err != nil {
				return of, err
			}
			if round > 0 {
				of[i] = append(of[i], figure)
			}
		}
	}
	return of, nil
}

// ratio returns the median of the ratios of two neighbouring turns, between which lies half of them.
func (f figures) ratio() (median, low, high float64) {
	ratios := make([]float64, len(f[with]))
	for i := range ratios {
		ratios[i] = f[with][i] / f[without][i]
	}
	slices.Sort(ratios)
	n := len(ratios)
	return ratios[n/2], ratios[n/4], ratios[n-1-n/4]
}

func median(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }

const spread = "%.3f × (%.3f…%.3f)"

// commits measures how many commits there are in a second, and in a second of processor time, which other
// work on the machine does not change as much.
func (b *bench) commits(c [2]*child, what string) error {
	var used figures
	of, err := b.inTurns(func(i int) (float64, error) {
		seconds, err := c[i].ask("commits", b.plan.commits)
		if err != nil {
			return 0, err
		}
		processor, err := c[i].ask("used", 1)
		used[i] = append(used[i], float64(b.plan.commits)/processor)
		return float64(b.plan.commits) / seconds, err
	})
	if err != nil {
		return err
	}
	ratio, low, high := of.ratio()
	b.Judge(what+": a second", "≥ 0.97 ×", ratio >= 0.97, spread+", %.0f and %.0f", ratio, low, high, median(of[with]), median(of[without]))
	for i := range used {
		used[i] = used[i][1:] // as inTurns does
	}
	ratio, low, high = used.ratio()
	b.Judge("the same: a second of processor time", "≥ 0.97 ×", ratio >= 0.97, spread+", %.0f and %.0f", ratio, low, high, median(used[with]), median(used[without]))
	return nil
}

func (b *bench) firstByte(c [2]*child, what string) error {
	of, err := b.inTurns(func(i int) (float64, error) { return c[i].ask("first", b.plan.firstBytes) })
	if err != nil {
		return err
	}
	ratio, low, high := of.ratio()
	b.Judge(what, "≤ 1.05 ×", ratio <= 1.05, spread+", %.1f and %.1f", ratio, low, high, median(of[with]), median(of[without]))
	return nil
}

// fanout measures the processor time of a gateway for each event that is delivered.
func (b *bench) fanout(c [2]*child, what string) error {
	var clients [2]*load.Client
	for i := range clients {
		client, err := b.open(c[i].address, i == with)
		if err != nil {
			return err
		}
		defer client.Close()
		clients[i] = client
	}
	of, err := b.inTurns(func(i int) (float64, error) { return b.deliver(c[i], clients[i]) })
	if err != nil {
		return err
	}
	ratio, low, high := of.ratio()
	b.Judge(what, "≤ 1.02 ×", ratio <= 1.02, spread+", %.2f and %.2f", ratio, low, high, median(of[with]), median(of[without]))
	return nil
}

// open opens the subscribers of a gateway. They begin where one stream is at the end of the snapshot, so
// that nobody else is sent that.
func (b *bench) open(address string, digests bool) (*load.Client, error) {
	end := []byte("\nevent: end_of_snapshot")
	first, err := load.New(load.Options{Address: address, Done: end, IDs: true})
	if err != nil {
		return nil, err
	}
	defer first.Close()
	if err := first.Open(1, load.Request{Bytes: request(digests)}); err != nil {
		return nil, err
	}
	if err := read(first, func(s load.Stats) bool { return s.Done == 1 && !strings.Contains(first.LastID(0), "/") }); err != nil {
		return nil, err
	}
	all, err := load.New(load.Options{Address: address, Marker: []byte("\nevent: upsert"), Done: end})
	if err != nil {
		return nil, err
	}
	resume := load.Request{Bytes: load.With(request(digests), "Last-Event-ID", first.LastID(0))}
	if err = all.Open(b.plan.subscribers, resume); err == nil {
		err = read(all, func(s load.Stats) bool { return s.Done == uint64(b.plan.subscribers) })
	}
	if err == nil && all.Stats().Events > 0 {
		err = fmt.Errorf("%d events were sent to subscribers that resume", all.Stats().Events)
	}
	if err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// deliver makes the commits of one turn, and returns the processor microseconds for each event.
func (b *bench) deliver(c *child, client *load.Client) (float64, error) {
	before, err := c.ask("cpu", 1)
	if err != nil {
		return 0, err
	}
	events := uint64(b.plan.events * b.plan.subscribers)
	from, made := client.Stats().Events, make(chan error, 1)
	go func() {
		_, err := c.ask("paced", b.plan.events)
		made <- err
	}()
	err = read(client, func(s load.Stats) bool { return s.Events-from >= events })
	if failed := <-made; err == nil {
		err = failed
	}
	if err != nil {
		return 0, err
	}
	after, err := c.ask("cpu", 1)
	return (after - before) * 1e6 / float64(events), err
}

// read reads until something is so.
func read(c *load.Client, so func(load.Stats) bool) error {
	for began := time.Now(); !so(c.Stats()); {
		n, err := c.Poll(time.Second)
		if err != nil {
			return err
		}
		if n > 0 {
			began = time.Now()
		}
		if s := c.Stats(); s.Lost+s.Refused > 0 || time.Since(began) > process.Patience {
			return fmt.Errorf("nothing arrives; the figures are %+v", s)
		}
	}
	return nil
}
