package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

// TestStoreIsCounted: the logs of a store count under the ceiling that their watches share. A
// full ceiling refuses writes, and the watch goes on: it is never refused what the store has.
func TestStoreIsCounted(t *testing.T) {
	const ceiling, size = 40 << 20, 100_000
	total := memory.NewCeiling(ceiling)
	s := New(Config{Memory: total, MaxBytes: 1 << 30})
	r := streamwatch.NewRegistry()
	w, err := r.Add(streamwatch.Config{Name: "notes", Source: s.Source("notes"), Memory: total})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	sub := subscribe(t, w)
	writer := s.Writer("notes")
	put := func(i int) error {
		stored, _, err := writer.Put(background, stream.PutRequest{Key: fmt.Sprint("k", i), Value: []byte(`"` + strings.Repeat("x", size) + `"`)})
		if err == nil {
			sub.until(atRevision(stored.Revision))
		}
		return err
	}
	n := 0
	for err = put(0); err == nil; err = put(n) {
		n++
	}
	var full *stream.TooLargeError
	if !errors.As(err, &full) || full.Limit != ceiling || full.Size != 0 {
		t.Errorf("a write that does not fit: %v", err)
	}
	mine, copied := s.find("notes").log.Snapshot().Bytes(), w.Snapshot().Bytes()
	if logs := total.Logs(); logs < int64(2*n*size) || logs > ceiling/5*2 || logs > mine+copied {
		t.Errorf("%d bytes are counted of %d resources, in logs of %d and %d bytes", logs, n, mine, copied)
	}
	if least := ceiling / 5 * 2 * 4 / 5 / 2 / size; n < least {
		t.Errorf("the store is full at %d resources, want at least %d", n, least)
	}
	if state := w.Snapshot().Status().State; state != stream.InSync {
		t.Errorf("the watch is %v", state)
	}
	for i := range n {
		if _, err := writer.Delete(background, stream.DeleteRequest{Key: fmt.Sprint("k", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n / 2 {
		if err := put(i); err != nil {
			t.Fatalf("there is no room after everything was deleted: %v", err)
		}
	}
}

// TestNothingIsCountedOfWhatIsGone: a watch that was forgotten, and a store that was closed.
func TestNothingIsCountedOfWhatIsGone(t *testing.T) {
	total := memory.NewCeiling(40 << 20)
	s := New(Config{Memory: total})
	w := use(s, "a")
	s.Release("a")
	if n := total.Held(); n != 0 || s.find("a") != nil {
		t.Errorf("%d bytes are counted of a watch that was forgotten", n)
	}
	putOne(t, w, "late") // whose request began before
	if n, held := total.Logs(), s.find("a").log.Snapshot().Bytes(); n != held {
		t.Errorf("%d bytes are counted of %d", n, held)
	}
	s.Close()
	putOne(t, w, "later")
	if n := total.Held(); n != 0 {
		t.Errorf("%d bytes are counted of a store that was closed", n)
	}
}
