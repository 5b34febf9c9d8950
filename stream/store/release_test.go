package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// use makes a source and a writer of a watch, as whoever declares it does.
func use(s *Store, name string) stream.Writer {
	s.Source(name)
	return s.Writer(name)
}

func putOne(t *testing.T, w stream.Writer, key string) {
	t.Helper()
	if _, _, err := w.Put(background, stream.PutRequest{Key: key, Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
}

// TestReleasedWatchesAreForgotten checks that watches without resources leave nothing
// behind, and that no resource is lost.
func TestReleasedWatchesAreForgotten(t *testing.T) {
	s := New(Config{})
	s.Release("unknown")
	w := use(s, "a")
	putOne(t, w, "k")
	before := epochOf(s, "a")
	s.Release("a")
	if s.find("a") == nil || s.bytes != 2+unusedWatchBytes {
		t.Fatalf("a watch with a resource was forgotten, or is counted as %d bytes", s.bytes)
	}
	again := use(s, "a")
	if epochOf(s, "a") != before || s.bytes != 2 {
		t.Errorf("another epoch, or %d bytes", s.bytes)
	}
	if deleted, err := again.Delete(background, stream.DeleteRequest{Key: "k"}); !deleted || err != nil {
		t.Fatal(deleted, err)
	}
	other := use(s, "a")
	s.Release("a")
	if s.find("a") == nil {
		t.Error("a watch was forgotten that is in use")
	}
	s.Release("a")
	if s.find("a") != nil || s.bytes != 0 || len(s.watches) != 0 {
		t.Errorf("an empty watch is kept, and %d bytes", s.bytes)
	}
	putOne(t, other, "late") // whose request began before
	if r, ok := s.find("a").log.Snapshot().Get("late"); !ok || s.bytes != 5+unusedWatchBytes {
		t.Errorf("got %v, %d bytes", r, s.bytes)
	}
	use(s, "a")
	putOne(t, w, "later") // into the watch that has the name now
	if n := s.find("a").log.Snapshot().Count(); n != 2 {
		t.Errorf("%d resources, want 2", n)
	}
	s.Release("a")
	for _, key := range []string{"late", "later"} {
		if _, err := other.Delete(background, stream.DeleteRequest{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.watches) != 0 || s.bytes != 0 {
		t.Errorf("after the last delete: %d watches, %d bytes", len(s.watches), s.bytes)
	}
}

func epochOf(s *Store, name string) string { return s.find(name).log.Snapshot().Epoch() }

// TestReleasedWatchesAreBounded checks that many small watches fill the store.
func TestReleasedWatchesAreBounded(t *testing.T) {
	s := New(Config{MaxBytes: 100 * unusedWatchBytes})
	for i := range 1000 {
		name := fmt.Sprint("w", i)
		_, _, err := use(s, name).Put(background, stream.PutRequest{Key: "k", Value: []byte("1")})
		var full *stream.TooLargeError
		if err != nil && !errors.As(err, &full) {
			t.Fatal(err)
		}
		s.Release(name)
	}
	if n := len(s.watches); n < 50 || n > 101 {
		t.Errorf("%d watches", n)
	}
}
