package journal

import (
	"fmt"
	"strings"
	"testing"

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
