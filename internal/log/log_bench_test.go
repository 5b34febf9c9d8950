package log

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// benchValue is a JSON value of 300 bytes.
var benchValue = func() []byte {
	v := make([]byte, 300)
	for i := range v {
		v[i] = 'x'
	}
	copy(v, `{"v":"`)
	copy(v[298:], `"}`)
	return v
}()

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%02d/resource-%07d", i%100, i)
	}
	return keys
}

func benchLog(b testing.TB, keys []string) *Writer {
	b.Helper()
	l := NewWriter(Config{Watch: "services"})
	all := make([]stream.Resource, len(keys))
	for i, k := range keys {
		all[i] = stream.Resource{Key: k, Revision: uint64(i + 1), Value: benchValue}
	}
	if _, err := l.Replace("e", all, uint64(len(keys))); err != nil {
		b.Fatal(err)
	}
	inSync(l)
	return l
}

var benchSizes = []int{100_000, 1_000_000}

// randomKeys returns n of the keys, adjacent in memory, as if just read from an
// upstream.
func randomKeys(keys []string, n int) []string {
	out, k := make([]string, n), uint64(1)
	for i := range out {
		k = k*6364136223846793005 + 1442695040888963407
		out[i] = strings.Clone(keys[(k>>33)%uint64(len(keys))])
	}
	return out
}

// BenchmarkUpsert makes one commit for each upsert of a random key.
func BenchmarkUpsert(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			keys := benchKeys(n)
			l := benchLog(b, keys)
			revision := uint64(n)
			random := randomKeys(keys, 1<<19)
			change := make([]Change, 1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				revision++
				change[0].Resource = stream.Resource{Key: random[i%len(random)], Revision: revision, Value: benchValue}
				if _, err := l.Commit(change, revision); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "upserts/s")
		})
	}
}

// BenchmarkTransaction makes commits of 64 upserts of random keys.
func BenchmarkTransaction(b *testing.B) {
	const size = 64
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			keys := benchKeys(n)
			l := benchLog(b, keys)
			revision := uint64(n)
			random := randomKeys(keys, 1<<19)
			changes := make([]Change, size)
			b.ReportAllocs()
			for i := 0; b.Loop(); i += size {
				for c := range changes {
					revision++
					changes[c].Resource = stream.Resource{Key: random[(i+c)%len(random)], Revision: revision, Value: benchValue}
				}
				if _, err := l.Commit(changes, revision); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "upserts/s")
		})
	}
}

// BenchmarkSnapshotRead reads a full snapshot, walking the frames, without a socket.
func BenchmarkSnapshotRead(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			l := benchLog(b, benchKeys(n))
			var batch Batch
			var out [][]byte
			id := []byte("services@e-1/2")
			for b.Loop() {
				s := l.Subscribe(SubscribeOptions{})
				bytes := 0
				for s.Next(&batch) {
					out = batch.Append(out[:0], frame.SSE, id)
					for _, p := range out {
						bytes += len(p)
					}
				}
				s.Close()
				b.SetBytes(int64(bytes))
			}
		})
	}
}

// BenchmarkMemory reports the heap after a load, and after every key was overwritten
// three times at random, beside the bytes of the live frames.
func BenchmarkMemory(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			for b.Loop() {
				measureMemory(b, n)
			}
		})
	}
}

func measureMemory(b *testing.B, n int) {
	keys := benchKeys(n)
	before := heap()
	l := benchLog(b, keys)
	loaded := heap() - before
	frames := float64(l.used)
	revision, k := uint64(n), uint64(1)
	change := make([]Change, 1)
	for range 3 * n {
		revision++
		k = k*6364136223846793005 + 1442695040888963407
		change[0].Resource = stream.Resource{Key: keys[(k>>33)%uint64(n)], Revision: revision, Value: benchValue}
		if _, err := l.Commit(change, revision); err != nil {
			b.Fatal(err)
		}
	}
	churned := heap() - before
	allowed := 1.4*frames + 150*float64(n)
	b.ReportMetric(float64(loaded)/1e6, "MB-loaded")
	b.ReportMetric(float64(churned)/1e6, "MB-churned")
	b.ReportMetric(frames/1e6, "MB-frames")
	b.ReportMetric(float64(churned)/allowed, "of-allowed")
	runtime.KeepAlive(l)
	runtime.KeepAlive(keys)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkWake measures one commit and 10,000 waiting subscriptions that read it.
func BenchmarkWake(b *testing.B) {
	const subscribers = 10_000
	l := benchLog(b, benchKeys(1000))
	var read, ready sync.WaitGroup
	var stop atomic.Bool
	ready.Add(subscribers)
	for range subscribers {
		go func() {
			var batch Batch
			s := l.Subscribe(SubscribeOptions{})
			for s.Next(&batch) {
			}
			ready.Done()
			for !stop.Load() {
				<-s.Changed()
				for s.Next(&batch) {
				}
				read.Done()
			}
		}()
	}
	ready.Wait()
	revision := uint64(1000)
	commit := func() {
		revision++
		read.Add(subscribers)
		change := Change{Resource: stream.Resource{Key: "k", Revision: revision, Value: benchValue}}
		if _, err := l.Commit([]Change{change}, revision); err != nil {
			b.Fatal(err)
		}
		read.Wait()
	}
	commit()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for b.Loop() {
		commit()
		n++
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n)/subscribers, "allocs/subscriber")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/subscribers, "ns/subscriber")
	stop.Store(true)
	commit()
}
