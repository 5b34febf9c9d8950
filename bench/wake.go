package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
)

// measureWake measures one commit that wakes 10,000 waiting subscriptions, each
// of which reads it.
func measureWake(runs int) []row {
	allocs := row{what: "allocations for each of 10,000 subscriptions that a commit wakes", target: "≤ 1", format: "%.4f", ok: atMost(1)}
	took := row{what: "µs until the last of 10,000 subscriptions has read a commit", target: "–", format: "%.0f"}
	const subscribers, commits = 10_000, 50
	l := newLog(keys(1000))
	var ready, read sync.WaitGroup
	var stop atomic.Bool
	ready.Add(subscribers)
	for range subscribers {
		go func() {
			s := l.Subscribe(log.SubscribeOptions{})
			defer s.Close()
			var b log.Batch
			for s.Next(&b) {
			}
			ready.Done()
			for !stop.Load() {
				<-s.Changed()
				for s.Next(&b) {
				}
				read.Done()
			}
		}()
	}
	ready.Wait()
	w := writer{log: l, names: []string{"k"}, revision: 1000, random: 1}
	commit := func() {
		read.Add(subscribers)
		w.rate(1, 1)
		read.Wait()
	}
	commit()
	for range runs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		for range commits {
			commit()
		}
		took.seen = append(took.seen, float64(time.Since(start).Microseconds())/commits)
		runtime.ReadMemStats(&after)
		allocs.seen = append(allocs.seen, float64(after.Mallocs-before.Mallocs)/commits/subscribers)
	}
	stop.Store(true)
	commit()
	return []row{allocs, took}
}
