package store_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"go.etcd.io/bbolt"
)

// BenchmarkDurable compares a write to a store in a file with those to what it is made of. Each write
// is of 200 bytes, to one of 1,000 keys, and on the disk when it is answered. TMPDIR says on which disk.
func BenchmarkDurable(b *testing.B) {
	value := []byte(`"` + strings.Repeat("x", 198) + `"`)
	for _, writers := range []int{1, 64} {
		for _, c := range []struct {
			name string
			open func(b *testing.B) (write func(key string) error, done func())
		}{
			{"store", func(b *testing.B) (func(string) error, func()) { return storeWriter(b, value) }},
			{"bbolt.Update", func(b *testing.B) (func(string) error, func()) { return bboltWriter(b, value, (*bbolt.DB).Update) }},
			{"bbolt.Batch", func(b *testing.B) (func(string) error, func()) { return bboltWriter(b, value, (*bbolt.DB).Batch) }},
			{"append+sync", func(b *testing.B) (func(string) error, func()) { return appender(b, value) }},
		} {
			b.Run(fmt.Sprintf("writers=%d/%s", writers, c.name), func(b *testing.B) {
				write, done := c.open(b)
				defer done()
				writeTogether(b, writers, write)
			})
		}
	}
	b.Run("writers=1/SQLite", func(b *testing.B) { writeToSQLite(b, string(value)) })
}

// writeToSQLite makes b.N writes, each in a transaction of its own, with the program sqlite3, which reads
// them from a pipe and waits for nothing but the disk. SQLite makes one transaction at a time, so more
// writers make no more of them.
func writeToSQLite(b *testing.B, value string) {
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		b.Skip("sqlite3 is not installed")
	}
	var script strings.Builder
	for n := range b.N {
		fmt.Fprintf(&script, "INSERT OR REPLACE INTO notes VALUES ('key%03d', '%s');\n", n%1000, value)
	}
	c := exec.CommandContext(b.Context(), program, "-bail", "-batch", filepath.Join(b.TempDir(), "a.db"),
		"-cmd", "PRAGMA journal_mode=WAL", "-cmd", "PRAGMA synchronous=FULL", "-cmd", "CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
	c.Stdin = strings.NewReader(script.String())
	b.ResetTimer()
	start := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "writes/s")
}

// writeTogether makes b.N writes.
func writeTogether(b *testing.B, writers int, write func(key string) error) {
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for range writers {
		running.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := write(fmt.Sprintf("key%03d", n%1000)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "writes/s")
}

func storeWriter(b *testing.B, value []byte) (write func(key string) error, done func()) {
	s, err := store.Open(store.Config{Path: filepath.Join(b.TempDir(), "a.db")})
	if err != nil {
		b.Fatal(err)
	}
	w := s.Writer("notes")
	return func(key string) error {
		_, _, err := w.Put(b.Context(), stream.PutRequest{Key: key, Value: value})
		return err
	}, s.Close
}

func bboltWriter(b *testing.B, value []byte, in func(*bbolt.DB, func(*bbolt.Tx) error) error) (write func(key string) error, done func()) {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "a.db"), 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		b.Fatal(err)
	}
	return func(key string) error {
		return in(db, func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("notes"))
			if err != nil {
				return err
			}
			return bucket.Put([]byte(key), value)
		})
	}, func() { db.Close() }
}

func appender(b *testing.B, value []byte) (write func(key string) error, done func()) {
	f, err := os.Create(filepath.Join(b.TempDir(), "a.log"))
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	return func(key string) error {
		mu.Lock()
		defer mu.Unlock()
		if _, err := f.Write(append([]byte(key), value...)); err != nil {
			return err
		}
		return f.Sync()
	}, func() { f.Close() }
}
