package log

import (
	"fmt"
	"maps"
	"testing"

	"github.com/watchtide/watchtide/internal/storage"
)

// TestCohortAdmission: of two readers at one place, one may have been sent the horizon
// after an outage, and the other not yet.
func TestCohortAdmission(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	r := readAll(l)
	c := NewCohort(r.s)
	defer c.Cursor().Close()
	if !c.Admits(r.s) {
		t.Error("a cohort does not admit the reader at whose place it began")
	}
	if err := l.RaiseHorizon(15); err != nil {
		t.Fatal(err)
	}
	r.wants(t, "bookmark 10 skipped=0 horizon=15")
	if c.Admits(r.s) || NewCohort(r.s).Admits(c.Cursor()) {
		t.Error("a cohort admits a reader that was sent another horizon")
	}
	(&reading{s: c.Cursor()}).wants(t, "bookmark 10 skipped=0 horizon=15")
	if !c.Admits(r.s) {
		t.Error("a cohort does not admit a reader that was sent the same horizon")
	}
}

// TestCohortNearHead: a cohort is near the head while only single changes are new.
func TestCohortNearHead(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	c := NewCohort(readAll(l).s)
	defer c.Cursor().Close()
	if !c.NearHead() {
		t.Error("nothing is new, and the cohort is not near the head")
	}
	mustCommit(t, l, 11, upsert("a", 11))
	if !c.NearHead() {
		t.Error("one change is new, and the cohort is not near the head")
	}
	mustReplace(t, l, "other", 5, upsert("a", 1))
	if c.NearHead() {
		t.Error("a snapshot is new, and the cohort is near the head")
	}
}

// TestCohortMembersCount as subscribers, for as long as the cursor is open.
func TestCohortMembersCount(t *testing.T) {
	subscriptions, readers := 0, 0
	l := NewWriter(Config{Watch: "w", Counted: func(s, r int) { subscriptions, readers = subscriptions+s, readers+r }})
	wants := func(s, r int) {
		t.Helper()
		if subscriptions != s || readers != r {
			t.Errorf("%d subscriptions of %d readers are counted, want %d of %d", subscriptions, readers, s, r)
		}
	}
	c := NewCohort(l.Subscribe(SubscribeOptions{}))
	wants(2, 2)
	c.SetMembers(40)
	wants(2, 41)
	one := c.Fork()
	c.SetMembers(39)
	wants(3, 41)
	one.Close()
	c.Cursor().Close()
	c.SetMembers(7)
	wants(1, 1)
}

// TestForkInAWalk: a member that leaves while its cohort is between two flushes of one walk
// goes on by itself, and the others do: each is sent everything, and counts what it missed.
func TestForkInAWalk(t *testing.T) {
	for name, interrupt := range map[string]func(l *Writer){
		"undisturbed":                    func(*Writer) {},
		"with its version taken away":    func(l *Writer) { l.pins.TakeAll() },
		"with superseded values dropped": func(l *Writer) { mustCommit(t, l, 201, large("k0", 201, storage.ReplaySize)) },
	} {
		for _, forkFirst := range []bool{true, false} {
			l := newSyncedLog(t, "e", 1)
			c := NewCohort(readAll(l).s)
			for i := range uint64(30) {
				mustCommit(t, l, 2+i, large(fmt.Sprint("k", i), 2+i, 8<<10))
			}
			first := &follower{s: c.Cursor(), state: map[string]uint64{}}
			if first.flush(); first.s.CaughtUp() {
				t.Fatal("all is sent in one flush")
			}
			second := &follower{s: c.Fork(), state: maps.Clone(first.state)}
			interrupt(l)
			if forkFirst {
				first, second = second, first
			}
			for more := true; more; {
				more = first.flush()
				more = second.flush() || more
			}
			for _, r := range []*follower{first, second} {
				if want := revisionsOf(l.Snapshot()); !maps.Equal(r.state, want) {
					t.Errorf("%s, the fork first %t: a reader has %d of %d resources: %q", name, forkFirst, len(r.state), len(want), r.events)
				}
				r.s.Close()
			}
			if held := l.pins.Held(); held != 0 {
				t.Errorf("%s: %d bytes are pinned at the end", name, held)
			}
		}
	}
}

// TestForkCountsWhatItMissed: each change of a watch is sent to a reader, or counted.
func TestForkCountsWhatItMissed(t *testing.T) {
	l := newSyncedLog(t, "e", 1)
	c := NewCohort(readAll(l).s)
	for i := range uint64(30) {
		mustCommit(t, l, 2+i, large("k", 2+i, 8<<10))
	}
	cursor := &follower{s: c.Cursor(), state: map[string]uint64{}}
	cursor.flush()
	fork := &follower{s: c.Fork(), state: map[string]uint64{}}
	fork.upserts = cursor.upserts
	for i := range uint64(200) {
		mustCommit(t, l, 32+i, large("k", 32+i, 8<<10))
	}
	l.pins.TakeAll()
	for _, r := range []*follower{fork, cursor} {
		for r.flush() {
		}
		if got := r.upserts + int(r.s.Skipped()); got != 230 {
			t.Errorf("%d changes were sent, and %d counted as skipped: want 230 together; %q", r.upserts, r.s.Skipped(), r.events)
		}
	}
}

func revisionsOf(v Snapshot) map[string]uint64 {
	state := map[string]uint64{}
	for r := range v.Resources() {
		state[r.Key] = r.Revision
	}
	return state
}
