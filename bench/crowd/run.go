package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
	"github.com/watchtide/watchtide/internal/plot"
)

// run is one measurement. Owned by one goroutine.
type run struct {
	*tree
	sample *sample
	table  process.Table
	began  time.Time

	first    Report // when all subscribers were in sync for the first time
	seconds  []second
	last     Report
	due      time.Time     // the next change
	interval time.Duration // between two
}

// second is a point of the diagram.
type second struct{ open, deliveries, bytes float64 }

func (p plan) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "crowd")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &run{began: time.Now()}
	r.say("starting a root and %d leaves for %d subscribers", p.leaves, p.subscribers)
	if r.tree, err = plant(ctx, p, dir); err != nil {
		return err
	}
	defer r.close()
	if err := r.all(ctx); err != nil {
		return err
	}
	r.table.Print(os.Stdout)
	return r.draw()
}

// all makes all measurements.
func (r *run) all(ctx context.Context) error {
	for _, phase := range []func(context.Context) error{r.connect, r.slowly, r.fast, r.restart, r.settle} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, values...))
}

// memory is that of processes, and that of the kernel, most of which sockets have here.
func memory(pids []int) (own, kernel int64, err error) {
	if own, err = process.Proportional(pids...); err != nil {
		return 0, 0, err
	}
	kernel, err = process.KernelMemory()
	return own, kernel, err
}

// connect connects everybody.
func (r *run) connect(ctx context.Context) error {
	leaves, _ := r.pids()
	before, slab, err := memory(leaves)
	if err != nil {
		return err
	}
	earlier, err := process.UsageOf(leaves...)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := r.populate(ctx); err != nil {
		return err
	}
	if err := r.await(ctx, "all subscribers to be in sync", func(s Report) bool { return int(s.Done) == r.plan.subscribers || s.Refused+s.Lost > 0 }); err != nil {
		return err
	}
	if r.last.Refused+r.last.Lost > 0 {
		return fmt.Errorf("%d subscribers were refused, and %d connections were lost", r.last.Refused, r.last.Lost)
	}
	took := time.Since(began)
	now, err := process.UsageOf(leaves...)
	if err != nil {
		return err
	}
	r.sample = newSample(ctx, r.plan.sample, r.leaves)
	if r.first, err = r.report(true); err != nil {
		return err
	}
	after, slabs, err := memory(leaves)
	if err != nil {
		return err
	}
	n, used := float64(r.plan.subscribers), now.Since(earlier)
	r.table.Add("subscribers; leaves", "%d; %d", r.plan.subscribers, r.plan.leaves)
	r.table.Add("connect and send the snapshot to all: time; CPU of the leaves for each, of which the kernel's", "%.1f s; %.0f µs, %.0f %%",
		took.Seconds(), float64(used.Total().Microseconds())/n, share(used.System, used.User))
	r.table.Add("memory for each: the leaf's; the kernel's, for both ends", "%.2f KiB; %.1f KiB", float64(after-before)/1024/n, float64(slabs-slab)/1024/n)
	r.table.Add("bytes of a first snapshot", "%.0f", float64(r.first.Bytes)/n)
	return nil
}

// share is a part of the sum in percent.
func share(part, rest time.Duration) float64 { return 100 * float64(part) / max(1, float64(part+rest)) }

// await waits, and shows the progress.
func (r *run) await(ctx context.Context, what string, so func(Report) bool) error {
	for began, most := time.Now(), r.plan.connects(); ; {
		s, err := r.tick(ctx)
		if err != nil {
			return err
		}
		if so(s) {
			return nil
		}
		if elapsed := int(time.Since(began).Seconds()); elapsed%10 == 9 {
			r.say("waiting for %s: %d are connected, %d wait to come back", what, s.Open, s.Away)
		}
		if time.Since(began) > most {
			return fmt.Errorf("waited %v for %s: %d are connected, %d wait to come back", most, what, s.Open, s.Away)
		}
	}
}

// tick waits for a second, makes the changes that are due, and notes the state.
func (r *run) tick(ctx context.Context) (Report, error) {
	until := time.Now().Add(time.Second)
	for r.interval > 0 && r.due.Before(until) {
		if err := process.Sleep(ctx, time.Until(r.due)); err != nil {
			return Report{}, err
		}
		if err := r.change(ctx); err != nil {
			return Report{}, err
		}
		r.due = r.due.Add(r.interval)
	}
	if err := process.Sleep(ctx, time.Until(until)); err != nil {
		return Report{}, err
	}
	s, err := r.report(false)
	if err != nil {
		return s, err
	}
	since := s.Since(r.last.Stats)
	r.seconds = append(r.seconds, second{float64(s.Open), float64(since.Events), float64(since.Bytes)})
	r.last = s
	return s, nil
}

// changes begins to make changes, one in each interval. 0: none.
func (r *run) changes(interval time.Duration) {
	r.interval, r.due = interval, time.Now().Add(min(interval, time.Second))
}

// measure makes changes for a time, and adds a line to the table.
func (r *run) measure(ctx context.Context, name string, interval, duration time.Duration, judge func(what string, p99 time.Duration, format string, values ...any)) error {
	r.say("%s", name)
	leaves, generators := r.pids()
	if _, err := r.report(true); err != nil {
		return err
	}
	earlier, err := process.UsageOf(leaves...)
	if err != nil {
		return err
	}
	generated, err := process.UsageOf(generators...)
	if err != nil {
		return err
	}
	began, before := time.Now(), r.events
	r.changes(interval)
	for time.Since(began) < duration {
		if _, err := r.tick(ctx); err != nil {
			return err
		}
	}
	r.changes(0)
	if err := r.await(ctx, "all changes to arrive", r.complete); err != nil {
		return err
	}
	now, err := process.UsageOf(leaves...)
	if err != nil {
		return err
	}
	generating, err := process.UsageOf(generators...)
	if err != nil {
		return err
	}
	report, err := r.report(true)
	if err != nil {
		return err
	}
	used := now.Since(earlier)
	deliveries := float64(r.events-before) * float64(r.plan.subscribers)
	judge(name+": from write to read, p50; p99; largest", report.Latency.Quantile(0.99), "%.2f s; %.2f s; %.2f s",
		report.Latency.Quantile(0.5).Seconds(), report.Latency.Quantile(0.99).Seconds(), report.Latency.Max().Seconds())
	r.table.Add(name+": CPU of the leaves for each delivery, of which the kernel's; of the load generators", "%.2f µs, %.0f %%; %.2f µs",
		float64(used.Total().Nanoseconds())/1e3/deliveries, share(used.System, used.User), float64(generating.Since(generated).Total().Nanoseconds())/1e3/deliveries)
	return nil
}

// complete reports whether as many events have been delivered as there should be.
func (r *run) complete(s Report) bool {
	return s.Events >= r.events*uint64(r.plan.subscribers) && s.Open == r.plan.subscribers
}

func (r *run) slowly(ctx context.Context) error {
	const most = 1500 * time.Millisecond
	return r.measure(ctx, fmt.Sprintf("one change each %v", r.plan.interval), r.plan.interval, r.plan.each, func(what string, p99 time.Duration, format string, values ...any) {
		r.table.Judge(what, fmt.Sprintf("p99 ≤ %v", most), p99 <= most, format, values...)
	})
}

func (r *run) fast(ctx context.Context) error {
	return r.measure(ctx, "one change a second", time.Second, r.plan.fast, func(what string, _ time.Duration, format string, values ...any) {
		r.table.Add(what, format, values...)
	})
}

// restart replaces all leaves, one after the other, and then the root, while changes go on.
func (r *run) restart(ctx context.Context) error {
	began, before := time.Now(), r.last
	if _, err := r.report(true); err != nil {
		return err
	}
	r.changes(r.plan.interval)
	for i := range r.leaves {
		r.say("restarting leaf %d of %d: %d are connected", i+1, len(r.leaves), r.last.Open)
		done := make(chan error, 1)
		go func() { done <- r.replace(ctx, i) }()
		for ended := false; !ended; {
			select {
			case err := <-done:
				if err != nil {
					return fmt.Errorf("restart leaf %d: %w", i, err)
				}
				ended = true
			default:
				if _, err := r.tick(ctx); err != nil {
					return err
				}
			}
		}
	}
	if err := r.await(ctx, "all subscribers to be back", func(s Report) bool { return s.Open == r.plan.subscribers }); err != nil {
		return err
	}
	r.say("restarting the root")
	r.changes(0)
	if err := r.root.Drain(ctx); err != nil {
		return fmt.Errorf("restart the root: %w", err)
	}
	if err := r.startRoot(ctx); err != nil {
		return fmt.Errorf("restart the root: %w", err)
	}
	r.changes(r.plan.interval)
	for range 2 * int(r.plan.interval.Seconds()+1) {
		if _, err := r.tick(ctx); err != nil {
			return err
		}
	}
	r.changes(0)
	if err := r.await(ctx, "all changes to arrive", r.complete); err != nil {
		return err
	}
	report, err := r.report(true)
	if err != nil {
		return err
	}
	r.table.Add("restart of all leaves and the root: time; subscribers that moved", "%.0f s; %d", time.Since(began).Seconds(), report.Returns-before.Returns)
	full := float64(r.first.Bytes) / float64(r.plan.subscribers)
	again := 100 * float64(report.Resent) / max(1, float64(report.Returns)*full)
	r.table.Judge("bytes that were sent until they were in sync again, of full snapshots", "≤ 1 %", again <= 1, "%.2f %% (%.0f bytes each)", again, float64(report.Resent)/max(1, float64(report.Returns)))
	r.table.Add("changes meanwhile: from write to read, p50; p99; largest", "%.2f s; %.2f s; %.2f s",
		report.Latency.Quantile(0.5).Seconds(), report.Latency.Quantile(0.99).Seconds(), report.Latency.Max().Seconds())
	r.table.Add("gap of one until in sync: p50; p99; largest", "%.1f s; %.1f s; %.1f s",
		report.Gaps.Quantile(0.5).Seconds(), report.Gaps.Quantile(0.99).Seconds(), report.Gaps.Max().Seconds())
	resets := report.Resets - before.Resets
	r.table.Judge("resets", "0", resets == 0, "%d", resets)
	return nil
}

// settle checks what everybody has received.
func (r *run) settle(ctx context.Context) error {
	r.say("checking")
	if err := process.Sleep(ctx, time.Second); err != nil {
		return err
	}
	wrong, err := r.check()
	if err != nil {
		return err
	}
	if wrong.N > 0 {
		r.say("%s; want %d events and revision %d", wrong.Example, r.events, r.revision)
	}
	r.table.Judge("subscribers that have lost a change, or got one twice", "0", wrong.N == 0, "%d", wrong.N)
	connections, err := r.sample.check(r.truth)
	if err != nil {
		r.say("the checkers: %v", err)
	}
	r.table.Judge("connections of sampled subscribers against the guarantees", "hold", err == nil, "%d", connections)
	return nil
}

// draw writes the diagram.
func (r *run) draw() error {
	if r.plan.plot == "" {
		return nil
	}
	var open, deliveries, bytes []float64
	for _, s := range r.seconds {
		open, deliveries, bytes = append(open, s.open), append(deliveries, s.deliveries), append(bytes, s.bytes*8/1e9)
	}
	last := float64(len(r.seconds))
	return os.WriteFile(r.plan.plot, []byte(plot.Draw(
		plot.Panel{Title: "Connected subscribers", X: "s", Last: last, Lines: []plot.Line{{Points: open}}},
		plot.Panel{Title: "Deliveries a second", X: "s", Last: last, Lines: []plot.Line{{Points: deliveries}}},
		plot.Panel{Title: "Gbit/s of all leaves", X: "s", Last: last, Lines: []plot.Line{{Points: bytes}}},
	)), 0o644)
}
