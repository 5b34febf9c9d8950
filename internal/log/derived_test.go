package log

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestDerivedReflects: a derived log whose other log has no new entry has its newest revision when it is
// read, but what its readers must be told waits for Publish, which wakes them.
func TestDerivedReflects(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 2, upsert("a", 1), upsert("b", 2))
	d := NewDerived(w.Log, Config{Watch: "w"})
	d.Begin(w.Snapshot(), "d")
	d.Upsert(stream.Resource{Key: "g", Revision: 2, Value: []byte("2")})
	d.EndTransaction()
	d.Publish(w.Snapshot())
	if _, err := w.Commit(nil, 5); err != nil {
		t.Fatal(err)
	}
	if got := d.Log().Snapshot(); got.Revision() != 5 || got.Count() != 1 {
		t.Errorf("at %d with %d resources, want 5 with 1", got.Revision(), got.Count())
	}
	changed := d.Log().Changed()
	w.SetStatus(stream.Status{State: stream.Stale, Reason: "lost"})
	if got := d.Log().Status().State; got == stream.Stale {
		t.Error("a freshness was taken over that nobody was told of")
	}
	d.Publish(w.Snapshot())
	select {
	case <-changed:
	default:
		t.Error("the readers were not told of the freshness")
	}
	if got := d.Log().Status().State; got != stream.Stale {
		t.Errorf("the state is %v", got)
	}
	if _, err := w.Commit([]Change{upsert("a", 6)}, 6); err != nil {
		t.Fatal(err)
	}
	if got := d.Log().Snapshot().Revision(); got != 5 {
		t.Errorf("at %d without what has changed since, want 5", got)
	}
	d.Stall(stream.Status{State: stream.Stale, Reason: "too many"})
	if got := d.Log().Status().Reason; got != "too many" {
		t.Errorf("the reason is %q", got)
	}
}

// TestDerivedLacks: no reader from before a step over states that were not seen resumes.
func TestDerivedLacks(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 2, upsert("a", 1))
	d := NewDerived(w.Log, Config{Watch: "w"})
	d.Begin(w.Snapshot(), "d")
	d.Publish(w.Snapshot())
	at := d.Log().Snapshot().Position()
	for _, lacks := range []bool{false, true} {
		revision := w.Snapshot().Revision() + 1
		if _, err := w.Commit([]Change{upsert("a", revision)}, revision); err != nil {
			t.Fatal(err)
		}
		d.Upsert(stream.Resource{Key: "g", Revision: revision, Value: []byte("1")})
		if lacks {
			d.Lacks(revision)
		}
		d.EndTransaction()
		d.Publish(w.Snapshot())
		if resumable := d.Log().newest().Resumable(at, "d"); resumable == lacks {
			t.Errorf("after a step that lacks states, %v: a position before it is resumed, %v", lacks, resumable)
		}
	}
}
