package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

var errRefused = errors.New("sink refuses")

// transcriptSink records every call in one word or two, keeps the committed
// state, and fails the call with the number failAt (1 is the first).
type transcriptSink struct {
	stream.PlainSink
	mu     sync.Mutex // guards all; Watch calls from a goroutine of its own
	calls  []string
	failAt int

	resume    stream.Resume
	staged    map[string]string
	committed map[string]string
}

// call records a call, and does it even if it then reports failure.
func (s *transcriptSink) call(do func(), format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
	if len(s.calls) == s.failAt {
		return errRefused
	}
	return nil
}

func (s *transcriptSink) Reset(epoch string) error {
	return s.call(func() { s.resume.Epoch, s.staged = epoch, map[string]string{} }, "reset")
}

func (s *transcriptSink) Upsert(r stream.Resource) error {
	return s.call(func() { s.staged[r.Key] = string(r.Value) }, "%s=%s@%d", r.Key, r.Value, r.Revision)
}

func (s *transcriptSink) Delete(key string, revision uint64) error {
	return s.call(func() { delete(s.staged, key) }, "-%s@%d", key, revision)
}

func (s *transcriptSink) Commit(revision uint64) error {
	return s.call(func() { s.resume.Revision, s.committed = revision, maps.Clone(s.staged) }, "commit@%d", revision)
}

func (s *transcriptSink) Status(state stream.State, reason string) error {
	return s.call(func() {}, "status %s %s", state, reason)
}

// take returns the calls since the last take.
func (s *transcriptSink) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := strings.Join(s.calls, " ")
	s.calls = nil
	return calls
}

// fail makes the n-th call from now on fail; 0: none.
func (s *transcriptSink) fail(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.failAt = nil, n
}

// fakeReader lists the resources that a test sets.
type fakeReader struct {
	delay time.Duration // how long a read takes

	mu      sync.Mutex // guards what follows
	listing []item
	err     error
	reads   int
}

func newFakeReader(words ...string) *fakeReader { return &fakeReader{listing: list(words...)} }

func (f *fakeReader) read(context.Context) ([]item, error) {
	time.Sleep(f.delay) // in a bubble, or 0
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	return f.listing, f.err
}

// set defines what the next reads return.
func (f *fakeReader) set(err error, words ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listing, f.err = list(words...), err
}

// list makes a listing of "key=value" words. Each has its own bytes.
func list(words ...string) []item {
	items := make([]item, len(words))
	for i, w := range words {
		key, value, _ := strings.Cut(w, "=")
		items[i] = item{key: key, value: []byte(value)}
	}
	return items
}

// mustNew returns a source of this machine.
func mustNew(t testing.TB, collection string) *Source {
	t.Helper()
	s, err := New(Config{Collection: collection})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// snapshotOf returns the values of a fresh source of this machine.
func snapshotOf(t testing.TB, collection string) map[string]string {
	t.Helper()
	sink := &transcriptSink{}
	if err := mustNew(t, collection).catchUp(t.Context(), stream.Resume{}, sink); err != nil {
		t.Fatal(err)
	}
	return sink.committed
}

// fieldsOf returns the members of a value.
func fieldsOf(t testing.TB, value string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(value), &fields); err != nil {
		t.Fatalf("value %q: %v", value, err)
	}
	return fields
}
