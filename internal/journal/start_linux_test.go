package journal

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/disk/disktest"
	"github.com/watchtide/watchtide/internal/log"
)

// startedByChild names the folder whose journal a child process of BenchmarkStart opens.
const startedByChild = "WATCHTIDE_TEST_START"

func init() {
	if dir := os.Getenv(startedByChild); dir != "" {
		if err := startInChild(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// started is what the child says.
type started struct {
	Opened, Ready time.Duration
	Memory        disktest.Memory
	Bytes         int64 // of the log
	Count         int
}

// startInChild opens a journal and makes the log of it.
func startInChild(dir string) (err error) {
	var s started
	var l *log.Writer
	began := time.Now()
	s.Memory, err = disktest.MemoryOf(func() {
		var j *Journal
		if j, err = Open(Config{Dir: dir}); err != nil {
			return
		}
		s.Opened = time.Since(began)
		l = log.NewWriter(log.Config{Watch: "w", GoesOn: true})
		w := j.Watch("w", "s")
		w.Begin(l.Log)
		err = w.Recall(func(r log.Record, all log.RecordedEntries) error { return l.Recall(r, all) })
		s.Ready = time.Since(began)
	})
	if err != nil {
		return err
	}
	s.Bytes, s.Count = l.Snapshot().Bytes(), l.Snapshot().Count()
	return json.NewEncoder(os.Stdout).Encode(s)
}

// BenchmarkStart opens a journal and makes the log of it, in a process of its own. Reported are the times
// until it is open and until the log is ready, the memory of the process in parts of the log, without
// and with the pages of the file, and the first write of all of it.
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
	for b.Loop() {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), startedByChild+"="+dir)
		out, err := child.CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		var s started
		if err := json.Unmarshal(out, &s); err != nil || s.Count != n {
			b.Fatalf("the child says %q: %v", out, err)
		}
		b.ReportMetric(s.Opened.Seconds(), "s-open")
		b.ReportMetric(s.Ready.Seconds(), "s-ready")
		b.ReportMetric(float64(s.Memory.Anonymous)/float64(s.Bytes), "memory/log")
		b.ReportMetric(float64(s.Memory.Resident)/float64(s.Bytes), "with-file/log")
		b.ReportMetric(float64(s.Bytes)/1e6, "MB-log")
	}
	b.ReportMetric(written.Seconds(), "s-written")
}
