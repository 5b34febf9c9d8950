package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

func tempDir(t interface{ Cleanup(func()) }) string {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// rig is one process with one watch.
type rig struct {
	*Journal
	watch  *Watch
	log    *log.Writer
	kept   watch.Kept
	logged *bytes.Buffer
}

func start(t *testing.T, dir, source string) *rig {
	t.Helper()
	r := &rig{logged: &bytes.Buffer{}}
	var err error
	if r.Journal, err = Open(Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(r.logged, nil))}); err != nil {
		t.Fatal(err)
	}
	r.begin(source)
	return r
}

func (r *rig) begin(source string) {
	r.watch = r.Journal.Watch("w", source)
	r.log = log.NewWriter(log.Config{Watch: "w", GoesOn: true})
	r.kept = r.watch.Begin(r.log.Log)
}

// recall takes what the journal has, which must be something: a record of what is not whole says nothing.
func (r *rig) recall(t *testing.T) {
	t.Helper()
	if r.kept == watch.KeptNothing {
		t.Fatalf("there is nothing to recall: %s", r.logged)
	}
	if err := r.watch.Recall(func(of log.Record, all log.RecordedEntries) error { return r.log.Recall(of, all) }); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) end() {
	r.watch.End()
	r.Close()
}

func upsert(key string, revision uint64) stream.Resource {
	return stream.Resource{Key: key, Revision: revision, Value: fmt.Appendf(nil, `{"of":%q,"at":%d}`, key, revision)}
}

func (r *rig) replace(t *testing.T, revision uint64, all ...stream.Resource) {
	t.Helper()
	if _, err := r.log.Replace("e", all, revision); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) commit(t *testing.T, revision uint64, changes ...log.Change) {
	t.Helper()
	if _, err := r.log.Commit(changes, revision); err != nil {
		t.Fatal(err)
	}
}

func removed(key string, revision uint64) log.Change {
	return log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true}
}

func stateOf(s log.Snapshot) map[string]string {
	state := map[string]string{}
	for r := range s.Resources() {
		state[r.Key] = fmt.Sprint(r.Revision, " ", string(r.Value), " ", r.Encoding)
	}
	return state
}

// TestGoesOn: the log of the next process is that of the one before, and positions of readers are resumed,
// after the next snapshot too.
func TestGoesOn(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	if r.kept != watch.KeptNothing {
		t.Fatalf("an empty journal has %v", r.kept)
	}
	binary := stream.Resource{Key: "b\x00\xff", Revision: 4, Value: []byte(`"AAE="`), Encoding: stream.Base64}
	r.replace(t, 5, upsert("a", 2), binary, upsert("gone", 5))
	r.flush()
	first := r.log.Snapshot().Position()
	r.commit(t, 7, log.Change{Resource: upsert("a", 7)}, removed("gone", 6))
	want, position := stateOf(r.log.Snapshot()), r.log.Snapshot().Position()
	r.end()

	r = start(t, dir, "s")
	if r.kept != watch.KeptWhole {
		t.Fatalf("kept %v after an orderly end: %s", r.kept, r.logged)
	}
	r.recall(t)
	if got := stateOf(r.log.Snapshot()); !maps.Equal(got, want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
	r.replace(t, 12, upsert("a", 7), upsert("new", 12))
	wantResumed(t, r, first, "delete gone@6", "delete b\x00\xff@12", "upsert a@7", "upsert new@12")
	wantResumed(t, r, position, "delete b\x00\xff@12", "upsert new@12")
	position.Run = 0 // it may be one of another replica, which was there meanwhile
	if s := r.log.Subscribe(log.SubscribeOptions{Resume: &position}); next(s) == nil || s.Outcome() != log.OutcomeExpired {
		t.Errorf("a position of nobody knows which replica: %s", s.Outcome())
	}
	r.end()
}

// next returns what a subscription has.
func next(s *log.Subscription) (got []string) {
	defer s.Close()
	var b log.Batch
	for s.Next(&b) {
		for e := range b.Events() {
			if e.Type == stream.Upsert || e.Type == stream.Delete {
				got = append(got, fmt.Sprintf("%s %s@%d", e.Type, e.Resource.Key, e.Resource.Revision))
			}
		}
	}
	return got
}

func wantResumed(t *testing.T, r *rig, at stream.Position, want ...string) {
	t.Helper()
	s := r.log.Subscribe(log.SubscribeOptions{Resume: &at})
	if got := next(s); s.Outcome() != log.OutcomeExact || strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("at %s: %s, %q, want %q", at, s.Outcome(), got, want)
	}
}

// TestKilled: what was written last is whole. Readers resume from it as from the log of another replica, since they
// may have more.
func TestKilled(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	r.replace(t, 5, upsert("a", 2))
	r.flush()
	position, want := r.log.Snapshot().Position(), stateOf(r.log.Snapshot())
	r.kill()
	r = start(t, dir, "s")
	if r.kept != watch.KeptLost {
		t.Fatalf("kept %v after a kill", r.kept)
	}
	err := r.watch.Recall(func(of log.Record, all log.RecordedEntries) error {
		of.Lost()
		return r.log.Recall(of, all)
	})
	if got := stateOf(r.log.Snapshot()); err != nil || !maps.Equal(got, want) {
		t.Fatalf("%v: the log has %v, want %v", err, got, want)
	}
	if s := r.log.Subscribe(log.SubscribeOptions{Resume: &position}); next(s) != nil || s.Outcome() != log.OutcomeExact {
		t.Errorf("a position from before the kill: %s", s.Outcome())
	}
	r.replace(t, 9, upsert("a", 2))
	if s := r.log.Subscribe(log.SubscribeOptions{Resume: &position}); next(s) == nil || s.Outcome() != log.OutcomeExpired {
		t.Errorf("the same after a snapshot, which does not tell of all deletes: %s", s.Outcome())
	}
	r.end()
}

// TestKilledAtOnce: what the file has is the end of the log for one process only, also if that wrote nothing.
func TestKilledAtOnce(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	r.replace(t, 5, upsert("a", 2))
	r.end()
	if r = start(t, dir, "s"); r.kept != watch.KeptWhole {
		t.Fatalf("kept %v after an orderly end", r.kept)
	}
	r.kill()
	if r = start(t, dir, "s"); r.kept != watch.KeptLost {
		t.Errorf("kept %v after a kill", r.kept)
	}
	r.end()
}

// TestNotUsed: what is of another configuration, too old, or not whole is not used, with a word.
func TestNotUsed(t *testing.T) {
	written := func(t *testing.T, dir string) {
		r := start(t, dir, "s")
		r.replace(t, 5, upsert("a", 2), upsert("b", 3))
		r.end()
	}
	for name, c := range map[string]struct {
		between func(t *testing.T, dir string)
		source  string
		want    string
	}{
		"another configuration": {nil, "other", "another configuration"},
		"a copy": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, FileName)
			raw, err := os.ReadFile(path)
			if err != nil || os.Remove(path) != nil || os.WriteFile(path, raw, 0o600) != nil {
				t.Fatal(err)
			}
			_ = os.Remove(path + ".state")
		}, "s", "set aside"},
		"damaged": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, FileName)
			raw, err := os.ReadFile(path)
			at := bytes.Index(raw, []byte(`"of":"a"`))
			for err == nil && at >= 0 { // on each page that has it
				raw[at+6] = 'x'
				at = bytes.Index(raw, []byte(`"of":"a"`))
			}
			if err := errors.Join(err, os.WriteFile(path, raw, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "s", "checksum"},
		"cut off": {func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, FileName), 5000); err != nil {
				t.Fatal(err)
			}
		}, "s", "set aside"},
		"no database": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte("notes"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "s", "set aside"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			written(t, dir)
			if c.between != nil {
				c.between(t, dir)
			}
			r := start(t, dir, c.source)
			if r.kept == watch.KeptWhole {
				if err := r.watch.Recall(func(of log.Record, all log.RecordedEntries) error { return r.log.Recall(of, all) }); err == nil {
					t.Error("it is used")
				}
			}
			if !strings.Contains(r.logged.String(), c.want) || r.log.Snapshot().Primed() {
				t.Errorf("logged %q, want %q", r.logged, c.want)
			}
			r.replace(t, 9, upsert("c", 9))
			r.end()
			if r = start(t, dir, c.source); r.kept != watch.KeptWhole {
				t.Errorf("the next one has %v", r.kept)
			}
			r.recall(t)
			r.end()
		})
	}
}

// TestTooOld is not used.
func TestTooOld(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	r.replace(t, 5, upsert("a", 2))
	r.end()
	r = start(t, dir, "s")
	r.watch.End()
	r.config.MaxAge = time.Nanosecond
	if r.begin("s"); r.kept != watch.KeptNothing || !strings.Contains(r.logged.String(), "max_age") {
		t.Errorf("%v: %s", r.kept, r.logged)
	}
	r.end()
}

// TestFromTheFuture: a newer format is set aside, and stays as it is.
func TestFromTheFuture(t *testing.T) {
	dir := tempDir(t)
	future(t, dir)
	r := start(t, dir, "s")
	if _, err := os.Stat(filepath.Join(dir, AsideName)); err != nil || !strings.Contains(r.logged.String(), "format 99") {
		t.Errorf("%v: %s", err, r.logged)
	}
	r.end()
}

// TestSetAsideForADay: a file that was set aside has values that were deleted since, so it is removed after a day,
// at a start and by a process that runs, and not before.
func TestSetAsideForADay(t *testing.T) {
	aside := func(t *testing.T) (dir, path string) {
		dir = tempDir(t)
		future(t, dir)
		long := time.Now().Add(-48 * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, FileName), long, long); err != nil {
			t.Fatal(err)
		}
		start(t, dir, "s").end()
		return dir, filepath.Join(dir, AsideName)
	}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	const said = "set aside a day ago is removed"
	t.Run("at a start", func(t *testing.T) {
		dir, path := aside(t)
		r := start(t, dir, "s")
		r.end()
		if !exists(path) {
			t.Fatalf("it was removed at once: %s", r.logged)
		}
		before := time.Now().Add(-compactedFrom)
		if err := os.Chtimes(path, before, before); err != nil {
			t.Fatal(err)
		}
		r = start(t, dir, "s")
		r.end()
		if exists(path) || !strings.Contains(r.logged.String(), said) {
			t.Errorf("there %t: %s", exists(path), r.logged)
		}
	})
	t.Run("while it runs", func(t *testing.T) {
		dir := tempDir(t)
		future(t, dir)
		synctest.Test(t, func(t *testing.T) {
			now := time.Now() // the file system has another clock
			r := start(t, dir, "s")
			path := filepath.Join(dir, AsideName)
			if err := os.Chtimes(path, now, now); err != nil {
				t.Fatal(err)
			}
			time.Sleep(compactedFrom - compactionCheck)
			synctest.Wait()
			if !exists(path) {
				t.Fatalf("it was removed too early: %s", r.logged)
			}
			time.Sleep(24*time.Hour - (compactedFrom - compactionCheck))
			synctest.Wait()
			if exists(path) || !strings.Contains(r.logged.String(), said) {
				t.Errorf("there %t: %s", exists(path), r.logged)
			}
			r.end()
		})
	})
}

// future makes a file of a newer format.
func future(t *testing.T, dir string) {
	f, err := disk.Open(disk.Config{Path: filepath.Join(dir, FileName), Kind: "journal", Format: 99})
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSecondProcess is refused by the lock.
func TestSecondProcess(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	if j, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "has it open") {
		j.Close()
		t.Errorf("a second one: %v", err)
	}
	r.end()
}

// TestUnfit: a watch with a key that the file cannot have is not kept, and others are.
func TestUnfit(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	other := r.Journal.Watch("other", "s")
	l := log.NewWriter(log.Config{Watch: "other", GoesOn: true})
	other.Begin(l.Log)
	if _, err := l.Replace("e", []stream.Resource{upsert("x", 1)}, 1); err != nil {
		t.Fatal(err)
	}
	r.replace(t, 5, upsert(strings.Repeat("k", maxKey+1), 2))
	r.flush()
	other.End()
	r.end()
	if r = start(t, dir, "s"); r.kept != watch.KeptNothing {
		t.Errorf("kept %v", r.kept)
	}
	other = r.Journal.Watch("other", "s")
	if kept := other.Begin(log.NewWriter(log.Config{Watch: "other"}).Log); kept != watch.KeptWhole {
		t.Errorf("of the other watch: %v", kept)
	}
	other.End()
	r.end()
}

// TestRetain: what is kept of watches that are gone leaves the file.
func TestRetain(t *testing.T) {
	dir := tempDir(t)
	r := start(t, dir, "s")
	r.replace(t, 5, upsert("a", 2))
	r.watch.End()
	r.Retain([]string{"w"})
	if r.begin("s"); r.kept != watch.KeptWhole {
		t.Fatalf("kept %v", r.kept)
	}
	r.recall(t)
	r.watch.End()
	r.Retain(nil)
	if r.begin("s"); r.kept != watch.KeptNothing {
		t.Errorf("kept %v of a watch that is gone", r.kept)
	}
	r.end()
}

func write(t *testing.T, folder, key string, n int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, key+".json"), fmt.Appendf(nil, "%d", n), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, folder, key string) {
	t.Helper()
	if err := os.Remove(filepath.Join(folder, key+".json")); err != nil {
		t.Fatal(err)
	}
}
