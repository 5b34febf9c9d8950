package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// measureLog measures the log alone: writes, a full read, and memory.
func measureLog(n, runs int) []row {
	upserts := row{what: fmt.Sprintf("upserts/s, a commit for each, %d × 300 B", n), target: "≥ 400,000", format: "%.0f", ok: atLeast(400_000)}
	batched := row{what: fmt.Sprintf("upserts/s, ten in a commit, %d × 300 B", n), target: "≥ 400,000", format: "%.0f", ok: atLeast(400_000)}
	limit := 10 * float64(n) / 100_000
	read := row{what: fmt.Sprintf("ms for a full snapshot, %d × 300 B", n), target: fmt.Sprintf("≤ %.0f", limit), format: "%.2f", ok: atMost(limit)}
	loaded := row{what: fmt.Sprintf("memory after loading %d, of 1.4 × frames + 150 B each", n), target: "≤ 1", format: "%.2f", ok: atMost(1)}
	churned := row{what: fmt.Sprintf("memory after %d random upserts, likewise", 3*n), target: "≤ 1", format: "%.2f", ok: atMost(1)}
	names := keys(n)
	for range runs {
		before := heap()
		l := newLog(names)
		frames := readAll(l.Log)
		allowed := 1.4*float64(frames) + 150*float64(n)
		loaded.seen = append(loaded.seen, float64(heap()-before)/allowed)
		w := writer{log: l, names: names, revision: uint64(n), random: 1}
		upserts.seen = append(upserts.seen, w.rate(3*n/2, 1))
		batched.seen = append(batched.seen, w.rate(3*n/2, 10))
		churned.seen = append(churned.seen, float64(heap()-before)/allowed)
		start := time.Now()
		readAll(l.Log)
		read.seen = append(read.seen, float64(time.Since(start).Microseconds())/1000)
		runtime.KeepAlive(l)
	}
	return []row{upserts, batched, read, loaded, churned}
}

func newLog(names []string) *log.Writer {
	l := log.NewWriter(log.Config{Watch: "services"})
	all := make([]stream.Resource, len(names))
	for i, k := range names {
		all[i] = stream.Resource{Key: k, Revision: uint64(i + 1), Value: value}
	}
	if _, err := l.Replace("bench", all, uint64(len(names))); err != nil {
		panic(err)
	}
	l.SetStatus(stream.Status{State: stream.InSync})
	return l
}

// readAll walks a full snapshot, like a pump without a socket, and returns its
// bytes.
func readAll(l *log.Log) int {
	s := l.Subscribe(log.SubscribeOptions{})
	defer s.Close()
	var b log.Batch
	var parts [][]byte
	n := 0
	for s.Next(&b) {
		parts = b.Append(parts[:0], frame.SSE, nil)
		for _, p := range parts {
			n += len(p)
		}
	}
	return n
}

type writer struct {
	log      *log.Writer
	names    []string
	revision uint64
	random   uint64
}

// rate upserts n random keys and returns the rate per second. The keys are
// adjacent in memory, as if just read from an upstream: searching for them all
// over the memory is not the log's work.
func (w *writer) rate(n, inCommit int) float64 {
	keys := make([]string, n)
	for i := range keys {
		w.random = w.random*6364136223846793005 + 1442695040888963407
		keys[i] = strings.Clone(w.names[(w.random>>33)%uint64(len(w.names))])
	}
	changes := make([]log.Change, inCommit)
	start := time.Now()
	for range n / inCommit {
		for i := range changes {
			w.revision++
			changes[i].Resource = stream.Resource{Key: keys[0], Revision: w.revision, Value: value}
			keys = keys[1:]
		}
		if _, err := w.log.Commit(changes, w.revision); err != nil {
			panic(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
