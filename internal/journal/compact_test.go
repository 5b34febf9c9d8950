package journal

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// secret is a value of which something is in the file if any page of it is.
func secret(name string) []byte {
	return fmt.Appendf(nil, "%q", strings.Repeat(name+" ", 2_000))
}

// has reports whether the file has any byte of a secret.
func has(t *testing.T, dir, name string) bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(raw), name)
}

// TestDeletedValuesLeaveTheDisk: within a day nothing of a value that was deleted or replaced is in the file. Commits
// and reads go on meanwhile, and the next process has all.
func TestDeletedValuesLeaveTheDisk(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	r.replace(t, 5, upsert("a", 2), stream.Resource{Key: "gone", Revision: 3, Value: secret("deleted")},
		stream.Resource{Key: "b", Revision: 4, Value: secret("replaced")}, stream.Resource{Key: "c", Revision: 5, Value: secret("kept")})
	r.flush()
	r.commit(t, 7, log.Change{Resource: upsert("b", 7)}, removed("gone", 6))
	r.flush()
	r.compact(time.Now().Add(compactedFrom - time.Minute))
	if !has(t, dir, "deleted") || !has(t, dir, "replaced") {
		t.Fatal("the file does not have what it had: the test shows nothing")
	}
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				r.Stats()
				other := r.Journal.Watch("other", "s")
				if kept := other.Begin(log.NewWriter(log.Config{Watch: "other", GoesOn: true}).Log); kept != 0 {
					t.Errorf("another watch has %v", kept)
				}
				other.End()
			}
		}
	})
	all.Go(func() {
		defer close(done)
		for i := range uint64(20) {
			r.commit(t, 8+i, log.Change{Resource: upsert(fmt.Sprint("k", i), 8+i)})
			r.flush()
			r.compact(time.Now().Add(2 * compactedFrom))
		}
	})
	all.Wait()
	for r.compact(time.Now().Add(2 * compactedFrom)); r.waiting.Load() > 0; {
	}
	if has(t, dir, "deleted") || has(t, dir, "replaced") || !has(t, dir, "kept") {
		t.Errorf("deleted %t, replaced %t, kept %t", has(t, dir, "deleted"), has(t, dir, "replaced"), has(t, dir, "kept"))
	}
	want := stateOf(r.log.Snapshot())
	r.end()
	r = start(t, dir, "s")
	r.recall(t)
	if got := stateOf(r.log.Snapshot()); !maps.Equal(got, want) {
		t.Errorf("the next process has %d resources, want %d", len(got), len(want))
	}
	r.end()
}

// TestCompactionWithoutRoom leaves the file as it is, and the journal goes on.
func TestCompactionWithoutRoom(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	r.replace(t, 5, upsert("a", 2))
	r.flush()
	if err := os.Mkdir(filepath.Join(dir, FileName+".compacting"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName+".compacting", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.compact(time.Now().Add(compactedFrom))
	if !strings.Contains(r.logged.String(), "the journal was not compacted") {
		t.Errorf("logged %s", r.logged)
	}
	r.commit(t, 6, log.Change{Resource: upsert("b", 6)})
	if err := os.RemoveAll(filepath.Join(dir, FileName+".compacting")); err != nil {
		t.Fatal(err)
	}
	r.end()
	r = start(t, dir, "s")
	r.recall(t)
	if got := stateOf(r.log.Snapshot()); len(got) != 2 {
		t.Errorf("the next process has %v", got)
	}
	r.end()
}
