package log

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
)

// entriesOf returns entries as Recall takes them.
func entriesOf(all iter.Seq[Recorded]) (of RecordedEntries) {
	of.All = all
	for r := range all {
		of.Count++
		of.Bytes += int64(len(r.Resource.Key) + len(r.Resource.Value))
	}
	return of
}

// recorded returns the entries of a log that count.
func recorded(l *Log) iter.Seq[Recorded] {
	s := l.Snapshot()
	return func(yield func(Recorded) bool) {
		for e := range s.Entries(0) {
			r := Recorded{Seq: e.Seq(), Place: e.Place(), Resource: e.Resource(), Deleted: e.Deleted(), Unnumbered: e.Unnumbered(), At: time.Now()}
			if s.Counts(e) && !yield(r) {
				return
			}
		}
	}
}

func recalled(t *testing.T, l *Log) *Writer {
	t.Helper()
	next := NewWriter(Config{Watch: "w", GoesOn: true})
	if err := next.Recall(l.Snapshot().Record(), entriesOf(recorded(l))); err != nil {
		t.Fatal(err)
	}
	return next
}

// TestRecall: a log goes on where another one ended, also several times.
func TestRecall(t *testing.T) {
	l := NewWriter(Config{Watch: "w", GoesOn: true})
	mustReplace(t, l, "e", 5, upsert("a", 3), upsert("gone", 4))
	first := l.Snapshot().Position()
	mustCommit(t, l, 7, remove("gone", 6), upsert("b", 7))
	for range 3 {
		next := recalled(t, l.Log)
		if before, after := l.Snapshot(), next.Snapshot(); !maps.Equal(stateOf(before), stateOf(after)) || before.Position().At(1) != after.Position().At(1) || after.Revision() != 7 {
			t.Fatalf("it is at %s, want %s", after.Position(), before.Position())
		}
		l = next
		inSync(l)
	}
	s := l.Subscribe(SubscribeOptions{Resume: &first})
	defer s.Close()
	var c client
	c.state = map[string]string{}
	c.drain(s)
	// The bookmark has the name of the run that the reader is of from then on.
	if want := []string{"bookmark 5 skipped=0", "delete gone@6", "upsert b@7", "end_of_snapshot 7 count=2 resumed=true"}; !slices.Equal(c.log, want) || s.Outcome() != OutcomeExact {
		t.Errorf("%s: %q, want %q", s.Outcome(), c.log, want)
	}
	if p, _ := s.Position(); p != l.Snapshot().Position() {
		t.Errorf("it is at %s, want %s", p, l.Snapshot().Position())
	}
	mustReplace(t, l, "e", 20, upsert("a", 3))
	s = l.Subscribe(SubscribeOptions{Resume: &first})
	c.drain(s)
	if s.Outcome() != OutcomeExact {
		t.Errorf("after the next snapshot: %s", s.Outcome())
	}
	first.AsOf, first.Upserts = 8, 8 // the run had ended by then
	s = l.Subscribe(SubscribeOptions{Resume: &first})
	c.drain(s)
	if s.Outcome() != OutcomeExpired {
		t.Errorf("beyond the end of the run: %s", s.Outcome())
	}
}

// TestRecallForgetsOldDeletes as the log itself does.
func TestRecallForgetsOldDeletes(t *testing.T) {
	l := NewWriter(Config{Watch: "w", GoesOn: true})
	mustReplace(t, l, "e", 5, upsert("a", 3), upsert("gone", 4))
	first := l.Snapshot().Position()
	mustCommit(t, l, 7, remove("gone", 6), upsert("b", 7))
	next := NewWriter(Config{Watch: "w", GoesOn: true})
	if err := next.Recall(l.Snapshot().Record(), entriesOf(func(yield func(Recorded) bool) {
		for r := range recorded(l.Log) {
			r.At = r.At.Add(-time.Hour)
			if !yield(r) {
				return
			}
		}
	})); err != nil {
		t.Fatal(err)
	}
	s := next.Subscribe(SubscribeOptions{Resume: &first})
	defer s.Close()
	var c client
	if c.drain(s); s.Outcome() != OutcomeExpired {
		t.Errorf("%s, although the delete is forgotten", s.Outcome())
	}
}

// TestRecallRefuses what is not the log of the record; the log is as it was.
func TestRecallRefuses(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 5, upsert("a", 3), upsert("b", 4))
	all := slices.Collect(recorded(l.Log))
	swapped := []Recorded{all[1], all[0]}
	beyond := slices.Clone(all)
	beyond[1].Place = 6
	other := slices.Clone(all)
	other[1].Resource.Value = []byte(`1`)
	for name, entries := range map[string][]Recorded{"one is missing": all[:1], "the order": swapped, "a later one": beyond, "another value": other} {
		next := NewWriter(Config{Watch: "w"})
		if err := next.Recall(l.Snapshot().Record(), entriesOf(slices.Values(entries))); err == nil || next.Snapshot().Primed() {
			t.Errorf("%s: taken", name)
		}
		mustReplace(t, next, "e", 5, upsert("a", 3))
		if got := stateOf(next.Snapshot()); len(got) != 1 {
			t.Errorf("%s: then the log has %v", name, got)
		}
	}
	unknown, next := l.Snapshot().Record(), NewWriter(Config{Watch: "w"})
	unknown.Digest = ""
	if err := next.Recall(unknown, entriesOf(slices.Values(other))); err != nil || next.Snapshot().Count() != 2 {
		t.Errorf("a record that does not know the digest: %v", err)
	}
	next = NewWriter(Config{Watch: "w"})
	if err := next.Recall(Record{Digest: "0-00000000000000000000000000000000"}, entriesOf(slices.Values[[]Recorded](nil))); err == nil {
		t.Error("a record without an epoch is taken")
	}
	full := NewWriter(Config{Watch: "w", Account: memory.NewAccount(1<<10, nil)})
	if err := full.Recall(l.Snapshot().Record(), entriesOf(slices.Values(all))); !errors.Is(err, memory.ErrExceeded) {
		t.Errorf("a log that does not fit: %v", err)
	}
}
