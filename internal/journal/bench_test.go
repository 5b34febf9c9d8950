package journal

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
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

// BenchmarkStart opens a journal and makes the log of it. Also reported are the first write of all of it, and the
// memory that the process has had, in parts of the log.
func BenchmarkStart(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 10_000
	}
	dir := b.TempDir()
	j, err := Open(Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	w, l := j.Watch("w", "s"), log.NewWriter(log.Config{Watch: "w", GoesOn: true})
	w.Begin(l.Log)
	if _, err := l.Replace("e", resources(n), uint64(n)); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	j.flush()
	written := time.Since(began)
	w.End()
	j.Close()
	w, l = nil, nil
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		resetPeak()
		before := resident("VmRSS")
		b.StartTimer()
		began := time.Now()
		if j, err = Open(Config{Dir: dir}); err != nil {
			b.Fatal(err)
		}
		opened := time.Since(began)
		w, l = j.Watch("w", "s"), log.NewWriter(log.Config{Watch: "w", GoesOn: true})
		w.Begin(l.Log)
		if err := w.Recall(func(r log.Record, all log.RecordedEntries) error { return l.Recall(r, all) }); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(opened.Seconds(), "s-open")
		b.ReportMetric(float64(resident("VmHWM")-before)/float64(l.Snapshot().Bytes()), "peak/log")
		b.ReportMetric(float64(l.Snapshot().Bytes())/1e6, "MB-log")
		if l.Snapshot().Count() != n {
			b.Fatal("it is not whole")
		}
		w.End()
		j.Close()
		b.StartTimer()
	}
	b.ReportMetric(written.Seconds(), "s-written")
}

// resident returns what the kernel says of the memory of this process, in bytes.
func resident(what string) int64 {
	raw, _ := os.ReadFile("/proc/self/status")
	_, after, _ := bytes.Cut(raw, []byte(what+":"))
	var kib int64
	_, _ = fmt.Sscan(string(after), &kib)
	return kib << 10
}

func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600) }

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
