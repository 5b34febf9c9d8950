package log

import "testing"

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
