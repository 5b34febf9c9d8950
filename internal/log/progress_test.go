package log

import (
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestLag checks what is left to deliver at each step of a slow reader.
func TestLag(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	s := l.Subscribe(SubscribeOptions{})
	defer s.Close()
	want := func(when string, lag uint64) {
		t.Helper()
		if got := s.Progress().Lag(); got != lag {
			t.Errorf("%s: lag %d, want %d", when, got, lag)
		}
	}
	want("before there is a snapshot", 0)
	var all []stream.Resource
	const resources = 1000
	value := []byte(`"` + strings.Repeat("x", 300) + `"`)
	for i := range uint64(resources) {
		all = append(all, stream.Resource{Key: fmt.Sprint("k", i), Revision: i + 1, Value: value})
	}
	if _, err := l.Replace("e", all, resources); err != nil {
		t.Fatal(err)
	}
	want("before anything was read", resources)
	commit := func(revision uint64) {
		t.Helper()
		if _, err := l.Commit([]Change{{Resource: stream.Resource{Key: "k", Revision: revision, Value: value}}}, revision); err != nil {
			t.Fatal(err)
		}
	}
	var b Batch
	s.Next(&b) // reset
	want("after reset", resources)
	s.Next(&b)
	seen := uint64(b.Count(stream.Upsert))
	commit(resources + 1)
	want("in the snapshot, with a change meanwhile", resources-seen+1)
	kept := s.Progress()
	for b.Count(stream.EndOfSnapshot) == 0 {
		s.Next(&b)
	}
	for s.Next(&b) {
	}
	want("with everything", 0)
	for i := range uint64(10) {
		commit(resources + 2 + i)
	}
	want("ten changes behind", 10)
	if got := kept.Lag(); got != resources-seen+11 {
		t.Errorf("what was kept lags by %d, want %d", got, resources-seen+11)
	}
	for s.Next(&b) {
	}
	p := s.Progress()
	if p.Lag() != 0 || p.CatchingUp || p.Position.String() != fmt.Sprintf("w@e-%d", resources+11) {
		t.Errorf("%+v", p)
	}
	l.Discard(stream.Status{State: stream.Priming})
	want("after everything was let go", 0)
}
