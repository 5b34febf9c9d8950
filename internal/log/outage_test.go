package log

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/internal/log/internal/listing"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// reading is a subscriber of a log that has everything.
type reading struct {
	client
	s *Subscription
}

func readAll(l *Writer) *reading {
	r := &reading{s: l.Subscribe(SubscribeOptions{})}
	r.drain(r.s)
	r.take()
	return r
}

func (r *reading) wants(t *testing.T, want ...string) {
	t.Helper()
	r.drain(r.s)
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// wantResumes fails unless positions are resumed from a revision on, and none
// below it.
func wantResumes(t *testing.T, l *Writer, from uint64) {
	t.Helper()
	for revision, want := range map[uint64]ResumeOutcome{from - 1: OutcomeExpired, from: OutcomeExact} {
		var b Batch
		s := l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: l.Snapshot().Epoch(), Upserts: revision, AsOf: revision}})
		if s.Next(&b); s.Outcome() != want && revision <= l.Snapshot().Revision() {
			t.Errorf("position %d is answered with %q, want %q", revision, s.Outcome(), want)
		}
	}
}

func newSyncedLog(t *testing.T, epoch string, revision uint64, changes ...Change) *Writer {
	t.Helper()
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, epoch, revision, changes...)
	inSync(l)
	return l
}

// TestOutageIsTold: a reader learns that changes may be missing before it gets any
// change from after the outage, even if there is none.
func TestOutageIsTold(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	r := readAll(l)
	mustReplace(t, l, "e", 20, upsert("a", 1))
	r.wants(t, "bookmark 20 skipped=0 horizon=20")
	mustReplace(t, l, "e", 20, upsert("a", 1))
	mustReplace(t, l, "e", 21, upsert("a", 21)) // there was no revision between
	r.wants(t, "upsert a@21")
	wantResumes(t, l, 20)
	mustReplace(t, l, "e", 30, upsert("b", 25))
	r.wants(t, "bookmark 21 skipped=0 horizon=30", "upsert b@25", "delete a@30")
	wantResumes(t, l, 30)
	readAll(l).wants(t) // a later reader needs no bookmark
}

// TestOutageIsToldWithAPosition: the bookmark on its own carries an id, or a client
// that came back would be where it was before.
func TestOutageIsToldWithAPosition(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	r := readAll(l)
	mustReplace(t, l, "e", 20, upsert("a", 1))
	var b Batch
	if !r.s.Next(&b) || !b.Boundary() {
		t.Error("a bookmark without an id")
	}
	if p, _ := r.s.Position(); p.AsOf != 20 {
		t.Errorf("at %v, want 20", p)
	}
	if r.s.Bookmark(&b) {
		t.Error("the same progress was sent twice")
	}
}

// TestNoIDWithinAnOutage: the upstream tells of an outage, and then what it has left
// behind as one transaction, whose newest change is older than its end.
func TestNoIDWithinAnOutage(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 2, upsert("a", 2))
	s := l.Subscribe(SubscribeOptions{})
	defer s.Close()
	var b Batch
	for s.Next(&b) {
	}
	if err := l.RaiseHorizon(23); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, l, 23, upsert("b", 3), large("c", 22, 2*storage.FlushSize))
	mustCommit(t, l, 24, upsert("d", 24))
	for s.Next(&b) {
		if p, _ := s.Position(); b.Boundary() && p.AsOf > 2 && p.AsOf < 23 {
			t.Errorf("an id at %v: the upstream was never in this state", p)
		}
	}
	if p, _ := s.Position(); p.String() != "w@e-24" {
		t.Errorf("at %v in the end", p)
	}
}

// TestOutageIsToldByAHeartbeat that comes before Next has looked.
func TestOutageIsToldByAHeartbeat(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	r := readAll(l)
	if err := l.RaiseHorizon(15); err != nil {
		t.Fatal(err)
	}
	var b Batch
	if !r.s.Bookmark(&b) {
		t.Fatal("no bookmark, want one with a horizon")
	}
	r.apply(&b)
	r.wants(t, "bookmark 10 skipped=0 horizon=15")
}

// TestOutageIsToldToASlowReader before it catches up.
func TestOutageIsToldToASlowReader(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	r := readAll(l)
	mustReplace(t, l, "e", 20, upsert("a", 1))
	for i := range uint64(3000) {
		c := upsert("a", 21+i)
		c.Value = value(fmt.Sprintf("%0400d", i))
		mustCommit(t, l, 21+i, c)
	}
	r.drain(r.s)
	if got := r.take(); got[0] != "bookmark 10 skipped=0 horizon=20" || got[1] != "status catching_up" {
		t.Errorf("begins with %q, want the horizon, then catching_up", got[:2])
	}
}

// TestOutageWithoutRevisionsOfDeletes: a snapshot is as new as the newest resource
// in it. Deletes above that may be unknown until the next upsert.
func TestOutageWithoutRevisionsOfDeletes(t *testing.T) {
	l := newSyncedLog(t, "_e", 10, upsert("a", 1), upsert("b", 10))
	wantResumes(t, l, 11)
	r := readAll(l)
	mustCommit(t, l, 10, remove("a", 0))
	r.wants(t, "delete a@10")
	mustCommit(t, l, 13, upsert("c", 13))
	r.wants(t, "bookmark 10 skipped=0 horizon=13", "upsert c@13")
	wantResumes(t, l, 13)
	mustCommit(t, l, 14, upsert("c", 14))
	r.wants(t, "upsert c@14")

	mustReplace(t, l, "_e", 14, upsert("b", 10), upsert("c", 14)) // one at 15 may have come and gone
	r.wants(t, "bookmark 14 skipped=0 horizon=15")
	wantResumes(t, l, 15)
	mustCommit(t, l, 16, upsert("d", 16))
	r.wants(t, "bookmark 14 skipped=0 horizon=16", "upsert d@16")
	wantResumes(t, l, 16)
}

// TestHorizonOfAnUpstream: what the upstream may have missed, this log may have
// missed too.
func TestHorizonOfAnUpstream(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	if err := l.RaiseHorizon(5); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("a horizon before the first snapshot: %v, want %v", err, stream.ErrInvalid)
	}
	mustReplace(t, l, "e", 10, upsert("a", 1), upsert("b", 2))
	inSync(l)
	r := readAll(l)
	for _, revision := range []uint64{20, 20, 15} {
		if err := l.RaiseHorizon(revision); err != nil {
			t.Fatal(err)
		}
	}
	r.wants(t, "bookmark 10 skipped=0 horizon=20")
	wantResumes(t, l, 11)
	mustCommit(t, l, 21, upsert("a", 21))
	r.wants(t, "upsert a@21")
	wantResumes(t, l, 20)
	for asOf, want := range map[uint64]bool{9: false, 15: false, 20: true, 21: true} {
		if _, _, ok := l.listings.AsOf(listing.Token{Epoch: "e", AsOf: asOf}, l.newest()); ok != want {
			t.Errorf("the state at %d can be put together: %v, want %v", asOf, ok, want)
		}
	}
}

// TestOutageDuringAGivenUpWalk: a reader too slow to be sent the state of one moment
// continues in the newest one. If an outage ended in between, only a whole snapshot
// may span it: a catch-up would bring what is after the outage without reporting the
// outage.
func TestOutageDuringAGivenUpWalk(t *testing.T) {
	for name, c := range map[string]struct {
		resume *stream.Position
		want   string
	}{
		"a snapshot": {nil, "status catching_up"},
		"a resume":   {&stream.Position{Watch: "w", Epoch: "e", Upserts: 1, AsOf: 1}, "reset expired"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSyncedLog(t, "e", 1)
			var all []Change
			for i := range uint64(3000) {
				u := upsert(fmt.Sprint("k", i), 2+i)
				u.Value = value(fmt.Sprintf("%0400d", i))
				all = append(all, u)
			}
			mustCommit(t, l, 3001, all...)
			var b Batch
			r := &reading{s: l.Subscribe(SubscribeOptions{Resume: c.resume}), client: client{state: map[string]string{}}}
			for range 4 {
				r.s.Next(&b)
				r.apply(&b)
			}
			r.take()
			l.pins.TakeAll()
			mustReplace(t, l, "e", 4000, all[1:]...)
			r.drain(r.s)
			got := r.take()
			if got[0] != c.want {
				t.Errorf("goes on with %q, want %q", got[0], c.want)
			}
			if want := stateOf(l.Snapshot()); !maps.Equal(r.state, want) {
				t.Errorf("%d resources, want the %d of the log", len(r.state), len(want))
			}
		})
	}
}

// TestConflatedIsTold: a reader learns that changes may lack values before it gets the
// first of them, and only if it gets them one by one.
func TestConflatedIsTold(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	r := readAll(l)
	mustCommit(t, l, 11, upsert("a", 11))
	r.wants(t, "upsert a@11")
	l.Prepare(true, 0)
	mustCommit(t, l, 20, upsert("b", 15))
	l.Prepare(false, 0)
	mustCommit(t, l, 21, upsert("c", 21))
	r.wants(t, "bookmark 11 skipped=0 conflated=20", "upsert b@15", "upsert c@21")
	mustCommit(t, l, 22, upsert("d", 22))
	r.wants(t, "upsert d@22")
	readAll(l).wants(t) // a snapshot has all values
}
