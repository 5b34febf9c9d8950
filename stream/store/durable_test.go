package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/sourcetest"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
	"pgregory.net/rapid"
)

// reopen opens the store of a file, until the test ends or close is called.
func reopen(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func newFile(t testing.TB) string { return filepath.Join(t.TempDir(), "notes.db") }

// state returns what the store's own log of the watch notes has.
func state(s *Store) map[string]string {
	got := map[string]string{}
	if w := s.find("notes"); w != nil {
		for r := range w.log.Snapshot().Resources() {
			got[r.Key] = fmt.Sprintf("%s@%d", r.Value, r.Revision)
		}
	}
	return got
}

func TestConformanceOnDisk(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		s := reopen(t, newFile(t))
		return harness(s, s.Source("notes"))
	})
}

func TestADurableStoreLasts(t *testing.T) {
	path := newFile(t)
	s := reopen(t, path)
	w := s.Writer("notes")
	write(t, w, "a", "1")
	write(t, w, "b", `"\u2028"`)
	write(t, w, "a", "2")
	write(t, s.Writer("other"), "\xff\xfe", "3")
	write(t, w, "newest", "4")
	if _, err := w.Delete(background, stream.DeleteRequest{Key: "newest"}); err != nil {
		t.Fatal(err)
	}
	want, epoch, other, used := state(s), epochOf(s, "notes"), epochOf(s, "other"), s.bytes
	s.Close()

	again := reopen(t, path)
	if got := state(again); !maps.Equal(got, want) {
		t.Errorf("it has %v, had %v", got, want)
	}
	if epochOf(again, "notes") != epoch || epochOf(again, "other") != other {
		t.Error("the epochs are others")
	}
	again.Writer("notes")
	again.Writer("other")
	if again.bytes != used {
		t.Errorf("it counts %d bytes, counted %d", again.bytes, used)
	}
	if got := write(t, again.Writer("notes"), "c", "5").Revision; got != 7 {
		t.Errorf("revision %d after the delete at 6", got)
	}
	if r, ok := get(again, "other", "\xff\xfe"); !ok || r.Revision != 4 {
		t.Errorf("a key that is not text: %v, %t", r, ok)
	}
}

// TestClientsResumeAcrossARestart: a client that was at the head gets the changes since then, deletes
// too, and no reset.
func TestClientsResumeAcrossARestart(t *testing.T) {
	path := newFile(t)
	s := reopen(t, path)
	r := streamwatch.NewRegistry()
	w := servedBy(t, r, s)
	writer := s.Writer("notes")
	for i := range 500 {
		write(t, writer, fmt.Sprint("k", i), "1")
	}
	sub := subscribe(t, w)
	sub.until(atRevision(500))
	position, _ := sub.sub.Position()
	for i := range 20 {
		write(t, writer, fmt.Sprint("k", i), "2")
		if _, err := writer.Delete(background, stream.DeleteRequest{Key: fmt.Sprint("k", 100+i)}); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	s.Close()

	again := reopen(t, path)
	later := served(t, again)
	resumed := &subscriber{t: t, sub: later.Subscribe(log.SubscribeOptions{Resume: &position})}
	t.Cleanup(resumed.sub.Close)
	events := resumed.until(func(e stream.Event) bool { return e.Type == stream.EndOfSnapshot })
	count := map[stream.EventType]int{}
	for _, e := range events {
		count[e.Type]++
	}
	if count[stream.Reset] != 0 || count[stream.Upsert] != 20 || count[stream.Delete] != 20 || resumed.sub.Outcome() != log.OutcomeExact {
		t.Errorf("%d resets, %d upserts, %d deletes (%s); want 0, 20, 20", count[stream.Reset], count[stream.Upsert], count[stream.Delete], resumed.sub.Outcome())
	}
	write(t, again.Writer("notes"), "live", "3")
	resumed.until(atRevision(541))
}

// TestForgottenDeletesRaiseTheHorizon: a client from before them is not left with what was deleted.
func TestForgottenDeletesRaiseTheHorizon(t *testing.T) {
	c := Config{Path: newFile(t), History: log.Retention{MaxDeletes: 10}}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	w := s.Writer("notes")
	for i := range 30 {
		write(t, w, fmt.Sprint("k", i), "1")
	}
	for i := range 30 {
		if _, err := w.Delete(background, stream.DeleteRequest{Key: fmt.Sprint("k", i)}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	again, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if v := again.find("notes").log.Snapshot(); v.Tombstones() != 10 {
		t.Errorf("%d deletes are remembered, want 10", v.Tombstones())
	}
	if horizon, _ := again.find("notes").log.Snapshot().Horizon(); horizon != 50 {
		t.Errorf("the horizon is %d, want 50", horizon)
	}
}

// TestWritersShareTheDisk: those that arrive while the disk is waited for are written together.
func TestWritersShareTheDisk(t *testing.T) {
	s := reopen(t, newFile(t))
	w := s.Writer("notes")
	write(t, w, "first", "1")
	before := s.Disk().Commits
	s.turn.Lock() // as during a wait for the disk
	var done sync.WaitGroup
	for i := range 64 {
		done.Go(func() { write(t, w, fmt.Sprint("k", i), "1") })
	}
	for waiting := 0; waiting < 64; {
		s.queue.mu.Lock()
		waiting = len(s.queue.ops)
		s.queue.mu.Unlock()
	}
	s.turn.Unlock()
	done.Wait()
	if n := s.Disk().Commits - before; n != 1 {
		t.Errorf("64 writes in %d commits, want 1", n)
	}
	if n := len(state(s)); n != 65 {
		t.Errorf("%d resources, want 65", n)
	}
}

// TestConditionsSeeWritesOfTheSameCommit: of several creations of one key, one succeeds.
func TestConditionsSeeWritesOfTheSameCommit(t *testing.T) {
	s := reopen(t, newFile(t))
	w := s.Writer("notes")
	s.turn.Lock()
	var done sync.WaitGroup
	results := make(chan error, 8)
	for i := range 8 {
		done.Go(func() {
			_, _, err := w.Put(background, stream.PutRequest{Key: "k", Value: fmt.Append(nil, i), IfRevision: ptr(0)})
			results <- err
		})
	}
	for waiting := 0; waiting < 8; {
		s.queue.mu.Lock()
		waiting = len(s.queue.ops)
		s.queue.mu.Unlock()
	}
	s.turn.Unlock()
	done.Wait()
	close(results)
	made := 0
	for err := range results {
		var conflict *stream.ConflictError
		switch {
		case err == nil:
			made++
		case !errors.As(err, &conflict) || conflict.Got != 1:
			t.Errorf("error %v, want a conflict with revision 1", err)
		}
	}
	if made != 1 {
		t.Errorf("%d creations succeeded", made)
	}
}

// TestAFailedDisk: the write that failed and all after it are refused, what was answered is read, and
// nothing else is ever seen.
func TestAFailedDisk(t *testing.T) {
	path := newFile(t)
	s := reopen(t, path)
	w := s.Writer("notes")
	write(t, w, "a", "1")
	s.disk.fail(errors.New("input/output error"))
	for range 2 {
		_, created, err := w.Put(background, stream.PutRequest{Key: "b", Value: []byte("2")})
		var unable *stream.UnavailableError
		if !errors.As(err, &unable) || created || !strings.Contains(err.Error(), "its disk has failed") || strings.Contains(err.Error(), path) {
			t.Errorf("created %t, error %v", created, err)
		}
		if deleted, err := w.Delete(background, stream.DeleteRequest{Key: "a"}); deleted || !errors.As(err, &unable) {
			t.Errorf("deleted %t, error %v", deleted, err)
		}
	}
	if got := state(s); !maps.Equal(got, map[string]string{"a": "1@1"}) || !s.Disk().Failed {
		t.Errorf("it has %v; failed: %t", got, s.Disk().Failed)
	}
	s.Close()
	again := reopen(t, path)
	if got := write(t, again.Writer("notes"), "b", "2").Revision; got != 2 {
		t.Errorf("revision %d, want 2", got)
	}
}

// TestARestoredCopyBeginsNewEpochs, so that clients that are ahead of it, or of another history, do
// not believe that they are up to date.
func TestARestoredCopyBeginsNewEpochs(t *testing.T) {
	path := newFile(t)
	s := reopen(t, path)
	write(t, s.Writer("notes"), "a", "1")
	s.Close()
	copied, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path)
	write(t, s.Writer("notes"), "a", "2")
	epoch := epochOf(s, "notes")
	s.Close()
	if err := os.WriteFile(path, copied, 0o600); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, path)
	renewed := epochOf(again, "notes")
	if renewed == epoch || !maps.Equal(state(again), map[string]string{"a": "1@1"}) {
		t.Errorf("epoch %s, then %s; it has %v", epoch, renewed, state(again))
	}
	again.Close()
	if last := reopen(t, path); epochOf(last, "notes") != renewed {
		t.Error("another epoch again")
	}
}

// TestReleasedWatchesLeaveTheFile, and one that is made again is another.
func TestReleasedWatchesLeaveTheFile(t *testing.T) {
	path := newFile(t)
	s := reopen(t, path)
	w := use(s, "a")
	putOne(t, w, "k")
	if _, err := w.Delete(background, stream.DeleteRequest{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	epoch := epochOf(s, "a")
	s.Release("a")
	putOne(t, use(s, "b"), "k")
	s.Close()
	s = reopen(t, path)
	if s.find("a") != nil || s.find("b") == nil {
		t.Errorf("a: %v, b: %v", s.find("a"), s.find("b"))
	}
	again := use(s, "a")
	putOne(t, again, "k")
	if epochOf(s, "a") == epoch {
		t.Error("the watch that was made again has the epoch of the former one")
	}
	s.Close()
	s = reopen(t, path)
	if r, ok := get(s, "a", "k"); !ok || r.Revision != 4 {
		t.Errorf("got %v, %t", r, ok)
	}
}

// TestAWatchThatIsEmptiedAndFilledWhileNobodyUsesIt keeps what was written last.
func TestAWatchThatIsEmptiedAndFilledWhileNobodyUsesIt(t *testing.T) {
	path := newFile(t)
	s := reopen(t, path)
	w := use(s, "a")
	putOne(t, w, "k")
	s.Release("a")
	s.turn.Lock()
	var done sync.WaitGroup
	add := func(f func() error) {
		s.queue.mu.Lock()
		before := len(s.queue.ops)
		s.queue.mu.Unlock()
		done.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
		for waiting := before; waiting == before; {
			s.queue.mu.Lock()
			waiting = len(s.queue.ops)
			s.queue.mu.Unlock()
		}
	}
	add(func() error { _, err := w.Delete(background, stream.DeleteRequest{Key: "k"}); return err })
	add(func() error {
		_, _, err := w.Put(background, stream.PutRequest{Key: "late", Value: []byte("1")})
		return err
	})
	s.turn.Unlock()
	done.Wait()
	putOne(t, use(s, "b"), "k") // the next commit
	s.Close()
	s = reopen(t, path)
	if r, ok := get(s, "a", "late"); !ok || r.Revision != 3 {
		t.Errorf("got %v, %t", r, ok)
	}
}

// TestRecordsAreJSON: what is written without reflection is what encoding/json writes.
func TestRecordsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
		r := record{Epoch: rapid.StringMatching(`[a-z0-9"\\_é]{1,9}`).Draw(t, "epoch"), Horizon: number("horizon")}
		r.Entries, r.Deletes = tally{number("entries"), number("sum")}, tally{number("deletes"), number("of deletes")}
		want, err := json.Marshal(&r)
		if got := r.append(nil); err != nil || string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestDurableStoreIsItsModel: whatever is written, and however often it is opened again, it has what
// a map would have, and revisions only rise.
func TestDurableStoreIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &model{path: dir + "/a.db", has: map[string]string{}}
		m.open(t)
		defer func() { m.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"put":    m.put,
			"delete": m.delete,
			"reopen": func(t *rapid.T) {
				m.store.Close()
				m.open(t)
			},
			"": m.check,
		})
	})
}

// model is a store of one watch, and what it must have.
type model struct {
	path   string
	store  *Store
	has    map[string]string
	newest uint64
	epoch  string
}

func (m *model) open(t *rapid.T) {
	var err error
	if m.store, err = Open(Config{Path: m.path, History: log.Retention{MaxDeletes: 5}}); err != nil {
		t.Fatal(err)
	}
	use(m.store, "notes")
}

func (m *model) put(t *rapid.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")
	value := fmt.Sprintf("%q", strings.Repeat("x", rapid.IntRange(0, 9000).Draw(t, "length")))
	stored, _, err := m.store.Writer("notes").Put(background, stream.PutRequest{Key: key, Value: []byte(value)})
	if err != nil {
		t.Fatal(err)
	}
	if stored.Revision != m.newest+1 {
		t.Fatalf("revision %d after %d", stored.Revision, m.newest)
	}
	m.newest = stored.Revision
	m.has[key] = fmt.Sprintf("%s@%d", value, stored.Revision)
	if m.epoch == "" {
		m.epoch = epochOf(m.store, "notes")
	}
}

func (m *model) delete(t *rapid.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")
	deleted, err := m.store.Writer("notes").Delete(background, stream.DeleteRequest{Key: key})
	if _, had := m.has[key]; err != nil || deleted != had {
		t.Fatalf("deleted %t, error %v; it was there: %t", deleted, err, had)
	}
	if deleted {
		m.newest++
		delete(m.has, key)
	}
}

func (m *model) check(t *rapid.T) {
	if got := state(m.store); !maps.Equal(got, m.has) {
		t.Fatalf("it has %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(m.has)))
	}
	if m.epoch != "" && epochOf(m.store, "notes") != m.epoch {
		t.Fatal("another epoch")
	}
}

// TestReadersGoOnWhileTheDiskIsWaitedFor.
func TestReadersGoOnWhileTheDiskIsWaitedFor(t *testing.T) {
	s := reopen(t, newFile(t))
	w := served(t, s)
	write(t, s.Writer("notes"), "a", "1")
	s.turn.Lock()
	defer s.turn.Unlock()
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	for w.Snapshot().Revision() < 1 && ctx.Err() == nil {
		select {
		case <-w.Changed():
		case <-ctx.Done():
		}
	}
	if _, ok := w.Snapshot().Get("a"); !ok || s.find("notes") == nil {
		t.Error("a read waits for the disk")
	}
}
