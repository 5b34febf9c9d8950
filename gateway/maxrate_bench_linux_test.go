package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// BenchmarkMaxRate measures the processor time of a second in which each of 1,000 keys changes once, for
// 9,000 subscribers over loopback and the process that reads for them: with the changes one by one, one by
// one to streams with max_rate=2/s, and in two transactions a second, as a publisher would make them that
// knew that nobody needs more.
func BenchmarkMaxRate(b *testing.B) {
	for _, c := range []struct {
		name, query string
		at          int // once: changes of one transaction
	}{
		{"all", "", 1},
		{"2 a second", "&max_rate=2/s", 1},
		{"2 transactions a second", "", 500},
	} {
		b.Run(c.name, func(b *testing.B) {
			address, source := benchmarkGateway(b, 1)
			received := subscribeMany(b, address, "/v1/events?watch=a"+c.query, 9000)
			revision := uint64(1)
			began, bytes := processorTime(b), received.Load()
			for b.Loop() {
				publishSecond(source, &revision, c.at)
			}
			seconds := b.Elapsed().Seconds() // more than b.N if the changes take longer than a second
			b.ReportMetric((processorTime(b)-began).Seconds()*1000/seconds, "cpu-ms/s")
			b.ReportMetric(float64(received.Load()-bytes)/seconds/9000/1000, "kB/s/stream")
		})
	}
}

// publishSecond changes 1,000 keys in a second, some in each transaction.
func publishSecond(source *gatewaytest.Script, revision *uint64, at int) {
	every := time.NewTicker(time.Second / time.Duration(1000/at))
	defer every.Stop()
	value := `"` + strings.Repeat("x", 100) + `"`
	for n := 0; n < 1000; n += at {
		<-every.C
		source.Steps <- func(s stream.Sink) error {
			*revision++
			err := error(nil)
			for i := n; i < n+at; i++ {
				err = errors.Join(err, s.Upsert(gatewaytest.Resource(fmt.Sprintf("key-%03d", i), *revision, value)))
			}
			return errors.Join(err, s.Commit(*revision))
		}
	}
}

// subscribeMany opens streams, and reads them until the benchmark ends. It returns how many bytes they
// have received, when each has its snapshot.
func subscribeMany(b *testing.B, address, path string, streams int) *atomic.Int64 {
	received := new(atomic.Int64)
	var opened sync.WaitGroup
	for range streams {
		c, err := net.Dial("tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, rawGet(path)); err != nil {
			b.Fatal(err)
		}
		opened.Add(1)
		go func() {
			p, begins := make([]byte, 16<<10), true
			for {
				n, err := c.Read(p)
				if begins && (err != nil || bytes.Contains(p[:n], []byte("end_of_snapshot"))) {
					begins = false
					opened.Done()
				}
				if err != nil {
					return
				}
				received.Add(int64(n))
			}
		}()
	}
	opened.Wait()
	return received
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
