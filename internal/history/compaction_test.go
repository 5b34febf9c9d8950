package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// busy returns the writer of a log, and what makes one more change in it. The log is compacted
// now and then.
func busy(tb testing.TB, keys, bytes int) (*log.Writer, func(n uint64)) {
	w := log.NewWriter(log.Config{Watch: "w"})
	if _, err := w.Replace("e", nil, 1); err != nil {
		tb.Fatal(err)
	}
	padding := strings.Repeat("x", bytes)
	return w, func(n uint64) {
		r := stream.Resource{Key: fmt.Sprintf("k%d", n%uint64(keys)), Revision: n, Value: fmt.Appendf(nil, `{"n":%d,"p":%q}`, n, padding)}
		if _, err := w.Commit([]log.Change{{Resource: r}}, n); err != nil {
			tb.Error(err)
		}
	}
}

// TestWhileCompacting: pages go back through the past without a repetition, and without a gap
// that they do not tell of, while changes are made and dropped.
func TestWhileCompacting(t *testing.T) {
	w, change := busy(t, 50, 4000)
	for n := uint64(2); n < 500; n++ {
		change(n)
	}
	ended, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		for n := uint64(500); ; n++ {
			select {
			case <-ended:
				return
			default:
				change(n)
			}
		}
	}()
	for range 30 {
		q := Query{Limit: 20, Bytes: 1 << 20, Entries: 1000}
		var last, since uint64
		for range 50 {
			p := Read(w.Log.Snapshot(), nil, q, func() bool { return true })
			since = max(since, p.Since)
			for _, c := range p.Changes {
				if last != 0 && (c.Revision >= last || c.Revision != last-1 && last-1 > since) {
					t.Fatalf("%d follows %d, complete since %d", c.Revision, last, since)
				}
				last = c.Revision
			}
			if q.Before = p.Next; p.Next == nil {
				break
			}
		}
	}
	close(ended)
	<-written
}

// BenchmarkPage reads 100 changes of a log with 10,000 resources: all of them, one in ten, and
// none of the 16,384 entries that are read at most.
func BenchmarkPage(b *testing.B) {
	w, change := busy(b, 10_000, 300)
	for n := uint64(2); n < 30_000; n++ {
		change(n)
	}
	for name, filter := range map[string]string{"all": "", "some": `key.endsWith("7")`, "none": "value.n < 0"} {
		var d *view.Definition
		if filter != "" {
			var err error
			if d, err = view.Parse(view.Params{Filter: filter}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Read(w.Snapshot(), d, Query{Limit: 100, Bytes: 1 << 20, Entries: 16 << 10}, func() bool { return true })
			}
		})
	}
}
