package journal

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// resources returns so many of 300 bytes.
func resources(n int) []stream.Resource {
	all := make([]stream.Resource, n)
	for i := range all {
		all[i] = sized(i*7919%n, uint64(i+1))
	}
	return all
}

func sized(key int, revision uint64) stream.Resource {
	const around = len(`{"at":000000000,"text":""}`)
	return stream.Resource{
		Key: fmt.Sprintf("key-%07d", key), Revision: revision,
		Value: fmt.Appendf(nil, `{"at":%09d,"text":"%s"}`, revision, strings.Repeat("x", 300-around)),
	}
}

// BenchmarkCommit commits changes of 100,000 resources as fast as it can, with and without a journal.
func BenchmarkCommit(b *testing.B) {
	const n = 100_000
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("journal=%t", with), func(b *testing.B) {
			l := log.NewWriter(log.Config{Watch: "w", GoesOn: true})
			if _, err := l.Replace("e", resources(n), n); err != nil {
				b.Fatal(err)
			}
			if with {
				j, err := Open(Config{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				w := j.Watch("w", "s")
				w.Begin(l.Log)
				j.flush()
				defer func() {
					b.StopTimer()
					b.ReportMetric(float64(j.Stats().Written)-n, "written")
					b.ReportMetric(j.Stats().Behind.Seconds(), "s-behind")
					w.End()
					j.Close()
				}()
			}
			revision := uint64(n)
			for b.Loop() {
				revision++
				if _, err := l.Commit([]log.Change{{Resource: sized(int(revision*7919%n), revision)}}, revision); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTransaction writes the state of a new journal, 300,000 resources, in transactions of several sizes. It reports
// the most memory that the process had of the system for its heap beyond that of the log, which the pages of a transaction take until it ends.
func BenchmarkTransaction(b *testing.B) {
	const n = 300_000
	l := log.NewWriter(log.Config{Watch: "w", GoesOn: true})
	if _, err := l.Replace("e", resources(n), n); err != nil {
		b.Fatal(err)
	}
	of := TransactionBytes
	defer func() { TransactionBytes = of }()
	for _, mib := range []int{1, 2, 4, 8, 16, 64} {
		b.Run(fmt.Sprintf("MiB=%d", mib), func(b *testing.B) {
			TransactionBytes = mib << 20
			most, took := uint64(0), time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				debug.FreeOSMemory()
				before := heap()
				j, err := Open(Config{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				w := j.Watch("w", "s")
				w.Begin(l.Log)
				done, watched := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(watched)
					for tick := time.NewTicker(time.Millisecond); ; {
						select {
						case <-tick.C:
							most = max(most, heap()-min(before, heap()))
						case <-done:
							tick.Stop()
							return
						}
					}
				}()
				b.StartTimer()
				start := time.Now()
				j.flush()
				took += time.Since(start)
				b.StopTimer()
				close(done)
				<-watched
				b.ReportMetric(float64(j.Stats().Commits), "transactions")
				w.End()
				j.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(most)/(1<<20), "MiB-heap")
			b.ReportMetric(float64(n)*float64(b.N)/took.Seconds(), "resources/s")
		})
	}
}

// heap is how many bytes objects have, reachable or not.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
