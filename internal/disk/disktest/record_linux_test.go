package disktest

import (
	"os"
	"path/filepath"
	"testing"
)

const writesIn = "WATCHTIDE_TEST_WRITES_IN"

func TestMain(m *testing.M) {
	if folder := os.Getenv(writesIn); folder != "" {
		writeUntilTheEnd(folder)
	}
	os.Exit(m.Run())
}

// writeUntilTheEnd is the child: it ends while some of its threads are in calls of the system.
func writeUntilTheEnd(folder string) {
	for _, name := range []string{"a", "b", "c", "d"} {
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			os.Exit(1)
		}
		go func() {
			for {
				_, _ = f.WriteAt([]byte("x"), 0)
			}
		}()
	}
	Mark("begun")
	os.Exit(0)
}

// TestEndAmongCalls: a process may end while threads of it are stopped at a call of the system.
func TestEndAmongCalls(t *testing.T) {
	for range 20 {
		folder := t.TempDir()
		r := Record(t, folder, writesIn+"="+folder)
		if marks := r.marks(); marks != 1 {
			t.Fatalf("%d marks, want 1", marks)
		}
	}
}

func (r *Recording) marks() (n int) {
	for _, o := range r.ops {
		if o.kind == opMark {
			n++
		}
	}
	return n
}
