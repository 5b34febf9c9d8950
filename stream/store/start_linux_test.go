package store

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/disk/disktest"
)

// startedByChild names the file of the store that a child process of BenchmarkStart opens.
const startedByChild = "WATCHTIDE_TEST_START"

func init() {
	if path := os.Getenv(startedByChild); path != "" {
		if err := startInChild(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// started is what the child says.
type started struct {
	Ready  time.Duration
	Memory disktest.Memory
	Bytes  int64 // of the log
	Count  int
}

func startInChild(path string) (err error) {
	var s *Store
	var said started
	began := time.Now()
	said.Memory, err = disktest.MemoryOf(func() {
		s, err = Open(Config{Path: path})
		said.Ready = time.Since(began)
	})
	if err != nil {
		return err
	}
	v := s.find("notes").log.Snapshot()
	said.Bytes, said.Count = v.Bytes(), v.Count()
	return json.NewEncoder(os.Stdout).Encode(said)
}

// BenchmarkStart opens a store with 1,000,000 resources of 300 bytes, in a process of its own. Reported are
// the time until it is ready, and the memory of the process in parts of the log, without and with the
// pages of the file. With -short there are 10,000.
func BenchmarkStart(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 10_000
	}
	path := filepath.Join(b.TempDir(), "a.db")
	fillFile(b, path, n)
	for b.Loop() {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), startedByChild+"="+path)
		out, err := child.CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		var s started
		if err := json.Unmarshal(out, &s); err != nil || s.Count != n {
			b.Fatalf("the child says %q: %v", out, err)
		}
		b.ReportMetric(s.Ready.Seconds(), "s-ready")
		b.ReportMetric(float64(s.Memory.Anonymous)/float64(s.Bytes), "memory/log")
		b.ReportMetric(float64(s.Memory.Resident)/float64(s.Bytes), "with-file/log")
		b.ReportMetric(float64(s.Bytes)/1e6, "MB-log")
	}
}

// fillFile makes a file with n resources, whose keys are in another order than their revisions.
func fillFile(b *testing.B, path string, n int) {
	f, err := disk.Open(fileConfig(path))
	if err != nil {
		b.Fatal(err)
	}
	r := record{Epoch: "e"}
	for at := 0; at < n && err == nil; {
		err = f.Update(func(tx *disk.Tx) error {
			entries, err := tx.MakeBucket(bucketOf(entriesBucket, "notes"))
			entries.Inserted()
			for end := min(at+20_000, n); at < end && err == nil; at++ {
				var sum uint32
				value := fmt.Appendf(nil, `{"at":%09d,"text":"%s"}`, at, strings.Repeat("x", 274))
				sum, err = entries.PutParts(fmt.Appendf(nil, "key-%07d", at), number(uint64(at*7919%n+1)), value)
				r.Entries.add(sum)
			}
			all, _ := tx.MakeBucket(watchesBucket)
			if err == nil {
				err = (&stored{record: r}).putRecord(all, "notes")
			}
			if err != nil {
				return err
			}
			return tx.SetSequence(uint64(n))
		})
	}
	if closed := f.Close(); err != nil || closed != nil {
		b.Fatal(err, closed)
	}
}
