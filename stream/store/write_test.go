package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

var background = context.Background()

// write puts a value and fails the test if it cannot.
func write(t testing.TB, w stream.Writer, key, value string) stream.Resource {
	t.Helper()
	stored, _, err := w.Put(background, stream.PutRequest{Key: key, Value: []byte(value)})
	if err != nil {
		t.Fatalf("Put(%q): %v", key, err)
	}
	return stored
}

// get reads from the store's own log.
func get(s *Store, watch, key string) (stream.Resource, bool) {
	return s.find(watch).log.Snapshot().Get(key)
}

func ptr(n uint64) *uint64 { return &n }

func TestPut(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	stored, created, err := w.Put(background, stream.PutRequest{Key: "a", Value: []byte("{\n\"n\": 1.00 }")})
	if err != nil || !created {
		t.Fatalf("created %t, error %v", created, err)
	}
	if stored.Key != "a" || stored.Revision != 1 || string(stored.Value) != `{"n":1.00}` || stored.Encoding != "" {
		t.Errorf("stored %+v with value %s", stored, stored.Value)
	}
	if got, ok := get(s, "notes", "a"); !ok || got.Revision != 1 || string(got.Value) != `{"n":1.00}` {
		t.Errorf("the store has %+v, %t right after Put", got, ok)
	}
	if _, created, _ = w.Put(background, stream.PutRequest{Key: "a", Value: []byte("2")}); created {
		t.Error("the second Put of a key says that it created it")
	}
}

// The same bytes again are a change: they were written.
func TestPutOfTheSameIsAChange(t *testing.T) {
	w := New(Config{}).Writer("notes")
	if first, second := write(t, w, "a", "1"), write(t, w, "a", "1"); second.Revision != first.Revision+1 {
		t.Errorf("revision %d, then %d", first.Revision, second.Revision)
	}
}

func TestRevisionsAreOneSequenceForAllWatches(t *testing.T) {
	s := New(Config{})
	for i, watch := range []string{"a", "b", "a", "c"} {
		if got := write(t, s.Writer(watch), "k", "1").Revision; got != uint64(i+1) {
			t.Errorf("write %d, to %s: revision %d", i+1, watch, got)
		}
	}
	if s.find("a").log.Snapshot().Epoch() == s.find("b").log.Snapshot().Epoch() {
		t.Error("two watches have the same epoch: a position of one could be taken for one of the other")
	}
}

func TestKeysMayHoldAnything(t *testing.T) {
	s := New(Config{})
	for _, key := range []string{"a/b c", "line\nbreak\r", "nul\x00", "\xff\xfe", "\u2028", `"\`, strings.Repeat("k", MaxKeyBytes)} {
		write(t, s.Writer("notes"), key, `"v"`)
		if got, ok := get(s, "notes", key); !ok || got.Key != key {
			t.Errorf("key %q: got %q, %t", key, got.Key, ok)
		}
	}
}

func TestDelete(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	write(t, w, "a", "1")
	if deleted, err := w.Delete(background, stream.DeleteRequest{Key: "a"}); err != nil || !deleted {
		t.Errorf("deleted %t, error %v", deleted, err)
	}
	if _, ok := get(s, "notes", "a"); ok {
		t.Error("the key is still there")
	}
	if deleted, err := w.Delete(background, stream.DeleteRequest{Key: "a"}); err != nil || deleted {
		t.Errorf("again: deleted %t, error %v", deleted, err)
	}
	if got := write(t, w, "b", "1").Revision; got != 3 {
		t.Errorf("revision %d after a put, a delete and a delete of nothing; want 3", got)
	}
}

func TestCompareAndSet(t *testing.T) {
	w := New(Config{}).Writer("notes")
	write(t, w, "other", "1")
	write(t, w, "a", "1") // revision 2
	tests := map[string]struct {
		key      string
		expected *uint64
		conflict string // empty: none
	}{
		"always":                 {"a", nil, ""},
		"as it is":               {"a", ptr(2), ""},
		"older":                  {"a", ptr(1), `key "a" is at revision 2, 1 was expected`},
		"newer":                  {"a", ptr(3), `key "a" is at revision 2, 3 was expected`},
		"none, and there is one": {"a", ptr(0), `key "a" exists at revision 2, none was expected`},
		"none, and there is":     {"b", ptr(0), ""},
		"some, and there is":     {"b", ptr(2), `key "b" does not exist, revision 2 was expected`},
	}
	for name, test := range tests {
		_, _, putErr := w.Put(background, stream.PutRequest{
			Key: test.key, Value: []byte("2"), IfRevision: test.expected, ValidateOnly: true})
		_, deleteErr := w.Delete(background, stream.DeleteRequest{
			Key: test.key, IfRevision: test.expected, ValidateOnly: true})
		for what, err := range map[string]error{"put": putErr, "delete": deleteErr} {
			var conflict *stream.ConflictError
			if got := errors.As(err, &conflict); got != (test.conflict != "") || got && err.Error() != test.conflict {
				t.Errorf("%s, %s: error %v, want %q", name, what, err, test.conflict)
			}
		}
	}
}

func TestValidateOnlyChangesNothing(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	write(t, w, "a", "1")
	raw := []byte(`"new"`)
	stored, created, err := w.Put(background, stream.PutRequest{Key: "b", Value: raw, ValidateOnly: true})
	if err != nil || !created || stored.Revision != 2 || string(stored.Value) != `"new"` {
		t.Errorf("answer %+v, %t, %v: want that of a write", stored, created, err)
	}
	if raw[1] = 'X'; string(stored.Value) != `"new"` {
		t.Error("the answer aliases the writer's buffer")
	}
	if deleted, err := w.Delete(background, stream.DeleteRequest{Key: "a", ValidateOnly: true}); err != nil || !deleted {
		t.Errorf("deleted %t, error %v: want the answer of a delete", deleted, err)
	}
	state := s.find("notes").log.Snapshot()
	if state.Revision() != 1 || state.Count() != 1 || s.bytes != 2 {
		t.Errorf("revision %d, %d resources, %d bytes after validation alone; want 1, 1 and 2",
			state.Revision(), state.Count(), s.bytes)
	}
	_, _, err = w.Put(background, stream.PutRequest{Key: "b", Value: []byte("{"), ValidateOnly: true})
	if err == nil {
		t.Error("a value that is not JSON passes validation")
	}
}

func TestBadWrites(t *testing.T) {
	s := New(Config{MaxValueBytes: 8})
	w := s.Writer("notes")
	tests := map[string]struct{ key, value, want string }{
		"no key":          {"", "1", `key "": want at least one byte`},
		"long key":        {strings.Repeat("k", MaxKeyBytes+1), "1", "key of 4097 bytes is too large, the limit is 4096"},
		"not JSON":        {"a", "{", `value "{": want JSON text in UTF-8`},
		"no value":        {"a", "", `value "": want JSON text in UTF-8`},
		"not UTF-8":       {"a", "\"\xff\"", "want JSON text in UTF-8"},
		"two values":      {"a", "1 2", `value "1 2": want JSON text in UTF-8`},
		"large value":     {"a", `"1234567"`, "value of 9 bytes is too large, the limit is 8"},
		"large with gaps": {"a", "1        ", "value of 9 bytes is too large, the limit is 8"},
	}
	for name, test := range tests {
		_, _, err := w.Put(background, stream.PutRequest{Key: test.key, Value: []byte(test.value)})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", name, err, test.want)
		}
	}
	write(t, w, "a", `"123456"`)
	if got := s.find("notes").log.Snapshot().Revision(); got != 1 {
		t.Errorf("revision %d after refused writes and one of exactly the limit, want 1", got)
	}
}

func TestWritesEndWithTheirContext(t *testing.T) {
	w := New(Config{}).Writer("notes")
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, _, err := w.Put(ctx, stream.PutRequest{Key: "a", Value: []byte("1")})
	_, deleteErr := w.Delete(ctx, stream.DeleteRequest{Key: "a"})
	if !errors.Is(err, context.Canceled) || !errors.Is(deleteErr, context.Canceled) {
		t.Errorf("errors %v and %v", err, deleteErr)
	}
}

func TestInvalidName(t *testing.T) {
	s := New(Config{})
	const want = `watch name "a b": want`
	_, _, putErr := s.Writer("a b").Put(background, stream.PutRequest{Key: "a", Value: []byte("1")})
	_, deleteErr := s.Writer("a b").Delete(background, stream.DeleteRequest{Key: "a"})
	watchErr := s.Source("a b").Watch(background, stream.Resume{}, nil)
	for _, err := range []error{putErr, deleteErr, watchErr} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Keys and values of all watches count; replaced or deleted ones do not.
func TestSizeLimitInAll(t *testing.T) {
	s := New(Config{MaxBytes: 10})
	a, b := s.Writer("a"), s.Writer("b")
	write(t, a, "k", "1234") // 5
	write(t, b, "k", "1234") // 10
	_, _, err := a.Put(background, stream.PutRequest{Key: "x", Value: []byte("1")})
	if want := "the store is full, the limit is 10 bytes"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	write(t, a, "k", "4321") // as large as before
	write(t, a, "k", "12")   // 8
	write(t, a, "x", "1")    // 10
	if _, err := b.Delete(background, stream.DeleteRequest{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	write(t, a, "y", "1234") // 10
	if s.bytes != 10 {
		t.Errorf("the store counts %d bytes, want 10", s.bytes)
	}
}

// The limit may be below the current size after a change of configuration: a write
// that makes the store smaller is accepted.
func TestSizeLimitLetsShrink(t *testing.T) {
	s := New(Config{MaxBytes: 10})
	w := s.Writer("notes")
	write(t, w, "k", `"1234567"`)
	s.Reconfigure(Config{MaxBytes: 5})
	write(t, w, "k", `"12345"`)
}

// Many writers count up by compare-and-set: no increment is lost, none is made
// twice, and revisions rise with the count.
func TestCompareAndSetUnderContention(t *testing.T) {
	const writers, increments = 8, 50
	s := New(Config{})
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			w := s.Writer("notes")
			for range increments {
				increment(t, s, w)
			}
		})
	}
	all.Wait()
	got, _ := get(s, "notes", "counter")
	if want := fmt.Sprint(writers * increments); string(got.Value) != want || fmt.Sprint(got.Revision) != want {
		t.Errorf("counter %s at revision %d, want %s at %s", got.Value, got.Revision, want, want)
	}
}

// increment reads and writes until no other write came in between.
func increment(t *testing.T, s *Store, w stream.Writer) {
	for {
		old, _ := get(s, "notes", "counter")
		n := 0
		_, _ = fmt.Sscan(string(old.Value), &n)
		_, _, err := w.Put(background, stream.PutRequest{
			Key: "counter", Value: fmt.Appendf(nil, "%d", n+1), IfRevision: &old.Revision})
		var conflict *stream.ConflictError
		switch {
		case err == nil:
			return
		case !errors.As(err, &conflict):
			t.Error(err)
			return
		case conflict.Got == old.Revision:
			t.Errorf("conflict with the expected revision: %v", conflict)
			return
		}
	}
}

func BenchmarkPut(b *testing.B) {
	value := []byte(`{"text":"` + string(bytes.Repeat([]byte("x"), 280)) + `"}`)
	w := New(Config{}).Writer("notes")
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%06d", i)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(value)))
	for i := 0; b.Loop(); i++ {
		if _, _, err := w.Put(background, stream.PutRequest{Key: keys[i%len(keys)], Value: value}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestJudge: a judge sees what the write replaces, whatever is written at the same time,
// and before anything tells that it exists.
func TestJudge(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	write(t, w, "n", "0")
	var written atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				_, _, err := w.Put(background, stream.PutRequest{Key: "n", Value: []byte(strconv.Itoa(i)), Condition: func(old *stream.Resource, value []byte) error {
					if before, err := strconv.Atoi(string(old.Value)); err != nil || strconv.Itoa(before+1) != string(value) {
						return errRefused
					}
					return nil
				}})
				if err == nil {
					written.Add(1)
				}
			}
		})
	}
	all.Wait()
	last, _ := get(s, "notes", "n")
	if got := strconv.FormatInt(written.Load(), 10); got == "0" || got != string(last.Value) {
		t.Errorf("%s writes were let through, each larger by one, and the value is %s", got, last.Value)
	}
}

var errRefused = errors.New("refused")

// TestJudgeComesFirst: a refused write tells nothing about what is there.
func TestJudgeComesFirst(t *testing.T) {
	w := New(Config{}).Writer("notes")
	write(t, w, "a", "1")
	var seen []string
	for _, key := range []string{"a", "b"} {
		_, _, putErr := w.Put(background, stream.PutRequest{Key: key, Value: []byte("2"), IfRevision: ptr(7), Condition: func(old *stream.Resource, value []byte) error {
			seen = append(seen, fmt.Sprint(key, " there ", old != nil, ", new ", string(value)))
			return errRefused
		}})
		_, deleteErr := w.Delete(background, stream.DeleteRequest{Key: key, IfRevision: ptr(7), Condition: func(old *stream.Resource) error {
			seen = append(seen, fmt.Sprint(key, " there ", old != nil))
			return errRefused
		}})
		if putErr != errRefused || deleteErr != errRefused {
			t.Errorf("%s: got %v and %v, want the judge's error", key, putErr, deleteErr)
		}
	}
	want := []string{"a there true, new 2", "a there true", "b there false, new 2", "b there false"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

// TestFullStoreTellsNothing checks that the refusal of a write that does not fit is the same,
// however long the values are that its writer may not read.
func TestFullStoreTellsNothing(t *testing.T) {
	refusal := func(hidden int) string {
		s := New(Config{MaxBytes: 1000})
		secret, mine := s.Writer("secret"), s.Writer("mine")
		for _, r := range []stream.PutRequest{
			{Key: "a", Value: []byte(`"` + strings.Repeat("x", hidden) + `"`)},
			{Key: "b", Value: []byte("1")},
		} {
			if _, _, err := secret.Put(background, r); err != nil {
				t.Fatal(err)
			}
		}
		for _, validate := range []bool{true, false} {
			_, _, err := mine.Put(background, stream.PutRequest{Key: "k", Value: []byte(`"` + strings.Repeat("y", 1000) + `"`), ValidateOnly: validate})
			if err == nil {
				t.Fatal("it fits")
			}
			if !validate {
				return err.Error() + withCode(err).Error()
			}
		}
		return ""
	}
	want := refusal(100)
	for _, hidden := range []int{0, 101, 500} {
		if got := refusal(hidden); got != want {
			t.Errorf("with %d hidden bytes: %s, with 100: %s", hidden, got, want)
		}
	}
}
