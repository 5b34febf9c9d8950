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

// TestDerivedAgain: where positions name the run, since another process goes on with the log, one of a derived log is
// not resumed by another one that was begun later.
func TestDerivedAgain(t *testing.T) {
	w := NewWriter(Config{Watch: "w", GoesOn: true})
	mustReplace(t, w, "e", 2, upsert("a", 1))
	begin := func() *Derived {
		d := NewDerived(w.Log, Config{Watch: "w"})
		d.Begin(w.Snapshot(), "d")
		d.Upsert(stream.Resource{Key: "g", Revision: w.Snapshot().Revision(), Value: []byte("1")})
		d.EndTransaction()
		d.Publish(w.Snapshot())
		return d
	}
	outcome := func(d *Derived, at stream.Position) ResumeOutcome {
		s := d.Log().Subscribe(SubscribeOptions{Resume: &at})
		defer s.Close()
		var b Batch
		s.Next(&b)
		return s.Outcome()
	}
	d := begin()
	at := d.Log().Snapshot().Position()
	if got := outcome(d, at); at.Run == 0 || got != OutcomeExact {
		t.Errorf("%v is answered with %q, want it to be resumed", at, got)
	}
	mustCommit(t, w, 3, upsert("b", 3))
	again := begin()
	if got := outcome(again, at); got != OutcomeExpired {
		t.Errorf("%v is answered by another one with %q", at, got)
	}
	at = again.Log().Snapshot().Position()
	again.Lacks(4)
	mustCommit(t, w, 4, upsert("b", 4))
	again.Publish(w.Snapshot())
	if got := outcome(again, at); got != OutcomeExpired {
		t.Errorf("%v is answered with %q after a step over states that were not seen", at, got)
	}
}
