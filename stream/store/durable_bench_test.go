package store_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"go.etcd.io/bbolt"
)

// durableValue is what each write of BenchmarkDurable has: 200 bytes.
var durableValue = []byte(`"` + strings.Repeat("x", 198) + `"`)

const (
	durableKeys = 1000
	durableTurn = 20 // writes of one contender, before it is the turn of the next; of many writers, more
)

// contender is what BenchmarkDurable measures.
type contender struct {
	name string
	// open returns a function that makes n writes to keys from one on, and returns when all are on the disk.
	open  func(b *testing.B, writers int) func(from, n int)
	slow  bool // one writer makes few writes, which take long
	alone bool // not with more than one writer
}

// BenchmarkDurable compares a write to a store in a file with those to what it is made of. Each write
// is of 200 bytes, to one of 1,000 keys that exist, and on the disk when it is answered. TMPDIR says on
// which disk. All write in turns, and the medians of all turns are reported, so that what else the
// machine does slows all of them alike; store/Update is that of the ratios of two turns, one after the other.
func BenchmarkDurable(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			all := []contender{
				{name: "store", open: together(storeWriter)},
				{name: "Update", open: together(func(b *testing.B) func(string) error { return bboltWriter(b, (*bbolt.DB).Update) })},
				{name: "Batch", open: together(func(b *testing.B) func(string) error { return bboltWriter(b, (*bbolt.DB).Batch) }), slow: true},
				{name: "append", open: together(appender)},
				{name: "SQLite", open: writeToSQLite, alone: true},
			}
			inTurns(b, writers, all)
		})
	}
}

// inTurns makes b.N writes with each contender.
func inTurns(b *testing.B, writers int, all []contender) {
	type measured struct {
		write func(from, n int)
		each  []time.Duration // for one write, by round
	}
	results := make([]measured, len(all))
	for i, c := range all {
		if c.alone && writers > 1 {
			continue
		}
		if results[i].write = c.open(b, writers); results[i].write != nil {
			results[i].write(0, durableKeys)
		}
	}
	b.ResetTimer()
	turn := durableTurn * max(1, writers/4)
	for from := 0; from < b.N; from += turn {
		for i := range all {
			r, n := &results[i], min(turn, b.N-from)
			if all[i].slow && writers == 1 {
				n = 1
			}
			if r.write != nil {
				start := time.Now()
				r.write(from, n)
				r.each = append(r.each, time.Since(start)/time.Duration(n))
			}
		}
	}
	for i, c := range all {
		if len(results[i].each) > 0 {
			b.ReportMetric(1/median(results[i].each).Seconds(), c.name+"/s")
		}
	}
	ratios := make([]float64, len(results[0].each))
	for i, took := range results[0].each {
		ratios[i] = results[1].each[i].Seconds() / took.Seconds()
	}
	b.ReportMetric(median(ratios), all[0].name+"/"+all[1].name)
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
}

func median[T cmp.Ordered](of []T) T { return slices.Sorted(slices.Values(of))[len(of)/2] }

// together makes writes with several writers.
func together(open func(b *testing.B) func(key string) error) func(b *testing.B, writers int) func(from, n int) {
	return func(b *testing.B, writers int) func(from, n int) {
		write := open(b)
		return func(from, n int) {
			next := atomic.Int64{}
			next.Store(int64(from))
			var running sync.WaitGroup
			for range writers {
				running.Go(func() {
					for at := next.Add(1) - 1; at < int64(from+n); at = next.Add(1) - 1 {
						if err := write(durableKey(int(at))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			running.Wait()
		}
	}
}

func durableKey(n int) string { return fmt.Sprintf("key%03d", n%durableKeys) }

// writeToSQLite makes each write in a transaction of its own, with the program sqlite3, which reads
// them from a pipe and waits for nothing but the disk. SQLite makes one transaction at a time, so more
// writers make no more of them. nil: it is not installed.
func writeToSQLite(b *testing.B, _ int) func(from, n int) {
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		b.Log("sqlite3 is not installed")
		return nil
	}
	c := exec.CommandContext(b.Context(), program, "-bail", "-batch", filepath.Join(b.TempDir(), "a.db"),
		"-cmd", "PRAGMA journal_mode=WAL", "-cmd", "PRAGMA synchronous=FULL", "-cmd", "CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	lines := bufio.NewScanner(out)
	return func(from, n int) {
		var script strings.Builder
		for at := from; at < from+n; at++ {
			fmt.Fprintf(&script, "INSERT OR REPLACE INTO notes VALUES ('%s', '%s');\n", durableKey(at), durableValue)
		}
		fmt.Fprintln(&script, "SELECT 'written';")
		if _, err := io.WriteString(in, script.String()); err != nil {
			b.Fatal(err)
		}
		for lines.Scan() {
			if lines.Text() == "written" {
				return
			}
		}
		b.Fatal("sqlite3 has ended")
	}
}

func storeWriter(b *testing.B) func(key string) error {
	s, err := store.Open(store.Config{Path: filepath.Join(b.TempDir(), "a.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	w := s.Writer("notes")
	return func(key string) error {
		_, _, err := w.Put(b.Context(), stream.PutRequest{Key: key, Value: durableValue})
		return err
	}
}

func bboltWriter(b *testing.B, in func(*bbolt.DB, func(*bbolt.Tx) error) error) func(key string) error {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "a.db"), 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return func(key string) error {
		return in(db, func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("notes"))
			if err != nil {
				return err
			}
			return bucket.Put([]byte(key), durableValue)
		})
	}
}

func appender(b *testing.B) func(key string) error {
	f, err := os.Create(filepath.Join(b.TempDir(), "a.log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	var mu sync.Mutex
	return func(key string) error {
		mu.Lock()
		defer mu.Unlock()
		if _, err := f.Write(append([]byte(key), durableValue...)); err != nil {
			return err
		}
		return f.Sync()
	}
}
