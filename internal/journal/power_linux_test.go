package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/disk/disktest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// recordedIn names the folder in which a child process of a test has a journal.
const recordedIn = "WATCHTIDE_TEST_RECORD"

func init() {
	if folder := os.Getenv(recordedIn); folder != "" {
		if err := writeRecorded(folder + "/state"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// begun is a process that goes on with the journal.
type begun struct {
	*Journal
	watch  *Watch
	log    *log.Writer
	kept   watch.Kept
	logged bytes.Buffer
}

func begin(folder string) (*begun, error) {
	b := &begun{}
	var err error
	if b.Journal, err = Open(Config{Dir: folder, Logger: slog.New(slog.NewTextHandler(&b.logged, nil))}); err != nil {
		return nil, err
	}
	b.watch, b.log = b.Watch("w", "s"), log.NewWriter(log.Config{Watch: "w", GoesOn: true})
	if b.kept = b.watch.Begin(b.log.Log); b.kept == watch.KeptNothing {
		return b, nil
	}
	return b, b.watch.Recall(func(of log.Record, all log.RecordedEntries) error { return b.log.Recall(of, all) })
}

// writeRecorded is the child: three processes follow an upstream, and each rewrites the file. At revision n there are
// the keys a, with n as its value, and n; before each third one the key before it is deleted.
func writeRecorded(folder string) error {
	n := uint64(0)
	for range 3 {
		b, err := begin(folder)
		if err != nil {
			return err
		}
		if n == 0 {
			n = 1
			if _, err := b.log.Replace("e", resourcesAt(n), n); err != nil {
				return err
			}
		}
		for range 4 {
			n++
			changes := []log.Change{{Resource: stream.Resource{Key: "a", Revision: n, Value: valueAt(n)}}, {Resource: stream.Resource{Key: fmt.Sprint(n), Revision: n, Value: valueAt(n)}}}
			if n%3 == 0 {
				changes = append(changes, removed(fmt.Sprint(n-1), n))
			}
			if _, err := b.log.Commit(changes, n); err != nil {
				return err
			}
			b.flush()
			disktest.Mark(fmt.Sprint(n))
		}
		b.compact(time.Now().Add(24 * time.Hour))
		b.watch.End()
		b.Close()
	}
	return nil
}

func valueAt(n uint64) []byte { return fmt.Appendf(nil, `"%d %s"`, n, strings.Repeat("x", 300*int(n))) }

func resourcesAt(n uint64) (all []stream.Resource) {
	for i := uint64(1); i <= n; i++ {
		if (i+1)%3 != 0 || i == n {
			all = append(all, stream.Resource{Key: fmt.Sprint(i), Revision: i, Value: valueAt(i)})
		}
	}
	return append(all, stream.Resource{Key: "a", Revision: n, Value: valueAt(n)})
}

// TestLossOfPower: whenever the power is lost, the journal has one state of the watch, whole, and not an older one than
// was written.
func TestLossOfPower(t *testing.T) {
	folder := t.TempDir()
	r := disktest.Record(t, folder, recordedIn+"="+folder)
	r.Check(t, func(marks []string) error {
		b, err := begin(folder + "/state")
		if err != nil {
			return err
		}
		defer b.Close()
		defer b.watch.End()
		written := uint64(0)
		if len(marks) > 0 {
			_, _ = fmt.Sscan(marks[len(marks)-1], &written)
		}
		if b.kept == watch.KeptNothing || strings.Contains(b.logged.String(), "set aside") {
			if written > 0 {
				return fmt.Errorf("nothing is kept: %s", &b.logged)
			}
			return nil
		}
		state := b.log.Snapshot()
		if state.Revision() < written || state.Revision() > written+2 {
			return fmt.Errorf("it is at revision %d", state.Revision())
		}
		want := resourcesAt(state.Revision())
		for _, r := range want {
			if got, ok := state.Get(r.Key); !ok || got.Revision != r.Revision || !bytes.Equal(got.Value, r.Value) {
				return fmt.Errorf("at revision %d, key %s is at %d", state.Revision(), r.Key, got.Revision)
			}
		}
		if state.Count() != len(want) {
			return fmt.Errorf("at revision %d there are %d resources, want %d", state.Revision(), state.Count(), len(want))
		}
		return nil
	})
}
