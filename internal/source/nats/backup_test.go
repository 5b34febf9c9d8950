//go:build servers

package nats

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// A server whose data is reset to a copy: the bucket has the same creation
// time as before.
func TestRestoredBackup(t *testing.T) {
	for _, test := range []struct {
		name     string
		writes   int
		restored bool // it is noticed; else it looks like the same bucket some changes later
	}{{"shorter", 0, true}, {"as long", 3, true}, {"longer", 9, false}} {
		t.Run(test.name, func(t *testing.T) {
			data, backup := t.TempDir(), t.TempDir()
			s := realserver.Start(t, realserver.Build(t, "nats"), "-listen", realserver.FreeAddress(t), "-data", data)
			b := newClient(t, s.Addr()).bucket(jetstream.KeyValueConfig{Bucket: "b"})
			b.must(b.put("a", "1"))
			b.must(b.put("b", "1"))
			b.must(s.Stop())
			copyTree(t, data, backup)
			b.must(s.Restart())
			src := source(t, s.Addr(), "b")
			for n := range 3 {
				b.must(b.put("lost", fmt.Sprint(n)))
			}
			before := start(t, src, nil).has("a", "1", "b", "1", "lost", "2").stop()
			b.must(s.Stop())
			copyTree(t, backup, data)
			b.must(s.Restart())
			want := []string{"a", "1", "b", "1"}
			for n := range test.writes {
				b.must(b.put("new", fmt.Sprint(n)))
			}
			if test.writes > 0 {
				want = append(want, "new", fmt.Sprint(test.writes-1))
			}
			after := start(t, src, before)
			if test.restored && test.writes > 0 { // a message shows it, not the sequence of the newest one
				after.gone(errRestored, 10*time.Second)
				after = start(t, src, nil)
			}
			after.has(want...).resets(1)
			if same := before.Resume().Epoch == after.Resume().Epoch; same == test.restored {
				t.Errorf("the epoch was %s and is %s", before.Resume().Epoch, after.Resume().Epoch)
			}
		})
	}
}

// copyTree copies the data of a stopped server.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(name, from))
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
