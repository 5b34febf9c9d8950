package client

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// apply applies events that are written as in a stream, without their names.
func apply(t *testing.T, r *Replica, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		r.Apply(e)
	}
}

const snapshotOfTwo = `{"type":"hello","heartbeat_ms":15000}
{"type":"reset","watch":"w","reason":"initial"}
{"type":"upsert","watch":"w","key":"b","revision":"1","value":1}
{"type":"upsert","watch":"w","key":"a","revision":"2","value":2}
`

const endOfTwo = `{"type":"end_of_snapshot","watch":"w","revision":"2","count":2}
`

func TestReplicaIsConsistentFromEndOfSnapshot(t *testing.T) {
	r := NewReplica()
	apply(t, r, snapshotOfTwo)
	if r.Consistent() || r.Synced() {
		t.Error("consistent in the middle of a snapshot")
	}
	apply(t, r, endOfTwo)
	if !r.Consistent() || !r.Synced() || r.Count() != 2 || r.Revision() != "2" || !slices.Equal(r.IDs(), []string{"a", "b"}) {
		t.Errorf("got %+v", r)
	}
}

func TestReplicaAppliesChanges(t *testing.T) {
	r := NewReplica()
	apply(t, r, snapshotOfTwo+endOfTwo+
		`{"type":"upsert","watch":"w","key":"a","revision":"3","value":{"x":1}}
{"type":"delete","watch":"w","key":"b","revision":"4"}
{"type":"delete","watch":"w","key":"never there","revision":"4"}
{"type":"something new","watch":"w","key":"a"}
{"type":"upsert","watch":"w","key":"c/d","revision":"5","value":null}
`)
	a, _ := r.Resource("a")
	if string(a.Value) != `{"x":1}` || !slices.Equal(r.IDs(), []string{"a", "c/d"}) || r.Revision() != "5" {
		t.Errorf("got %q, %q, revision %s", a.Value, r.IDs(), r.Revision())
	}
	apply(t, r, `{"type":"bookmark","watch":"w","revision":"9"}`)
	if r.Revision() != "9" || !r.Consistent() {
		t.Errorf("after a bookmark: %+v", r)
	}
}

func TestReplicaIsClearedByReset(t *testing.T) {
	r := NewReplica()
	apply(t, r, snapshotOfTwo+endOfTwo+`{"type":"reset","watch":"w","reason":"expired"}`)
	if r.Count() != 0 || len(r.IDs()) != 0 || r.Consistent() || r.Synced() {
		t.Errorf("got %+v", r)
	}
}

func TestReplicaIsNotConsistentWhileItCatchesUp(t *testing.T) {
	r := NewReplica()
	apply(t, r, snapshotOfTwo+endOfTwo+`{"type":"status","watch":"w","state":"catching_up"}
{"type":"upsert","watch":"w","key":"c","revision":"9","value":0}`)
	if r.Consistent() {
		t.Error("consistent while catching up")
	}
	apply(t, r, `{"type":"bookmark","watch":"w","revision":"12","skipped":3}`)
	if !r.Consistent() {
		t.Error("not consistent after the bookmark")
	}
}

func TestReplicaKeepsItsStateOverAResume(t *testing.T) {
	r := NewReplica()
	apply(t, r, snapshotOfTwo+endOfTwo)
	r.Disconnected(time.Unix(1, 0), "gone")
	apply(t, r, `{"type":"hello","heartbeat_ms":15000}
{"type":"delete","watch":"w","key":"a","revision":"3"}`)
	if r.Consistent() || r.Count() != 1 {
		t.Errorf("in the middle of a resume: %+v", r)
	}
	apply(t, r, `{"type":"end_of_snapshot","watch":"w","revision":"7","count":1,"resumed":true}`)
	if !r.Consistent() || r.Count() != 1 {
		t.Errorf("after it: %+v", r)
	}
}

// A resume can begin with a bookmark: the position without the name of the run, where deletes have no
// revision, or a horizon. Only its end_of_snapshot makes the state consistent.
func TestReplicaIsNotConsistentAtABookmarkInAResume(t *testing.T) {
	r := NewReplica()
	apply(t, r, snapshotOfTwo+endOfTwo+`{"type":"hello","heartbeat_ms":15000}
{"type":"bookmark","watch":"w","revision":"2"}
{"type":"delete","watch":"w","key":"a","revision":"5"}`)
	if r.Consistent() {
		t.Errorf("consistent in the middle of a resume: %q at %s", r.IDs(), r.Revision())
	}
	apply(t, r, `{"type":"status","watch":"w","state":"catching_up"}
{"type":"bookmark","watch":"w","revision":"5"}`)
	if r.Consistent() {
		t.Error("consistent at a bookmark after catching_up, in the middle of a resume")
	}
	apply(t, r, `{"type":"end_of_snapshot","watch":"w","revision":"6","count":1,"resumed":true}`)
	if !r.Consistent() {
		t.Error("not consistent after the resume")
	}
}

// Where deletes have no revision of their own, a delete may show that of the resource's last version.
// The state after it is not of that old revision.
func TestReplicaRevisionDoesNotGoBack(t *testing.T) {
	r := NewReplica()
	expect := func(want, lines string) {
		t.Helper()
		if apply(t, r, lines); r.Revision() != want {
			t.Errorf("the revision is %q, want %q, after %s", r.Revision(), want, lines)
		}
	}
	expect("100", `{"type":"hello"}
{"type":"reset","watch":"w","reason":"initial"}
{"type":"upsert","watch":"w","key":"x","revision":"7","value":1}
{"type":"upsert","watch":"w","key":"y","revision":"100","value":1}
{"type":"end_of_snapshot","watch":"w","revision":"100","count":2}`)
	expect("100", `{"type":"delete","watch":"w","key":"x","revision":"7"}`)
	expect("100", `{"type":"upsert","watch":"w","key":"z","revision":"99","value":1}`) // of another view
	expect("18446744073709551615", `{"type":"upsert","watch":"w","key":"z","revision":"18446744073709551615","value":1}`)
	expect("", `{"type":"reset","watch":"w","reason":"epoch_changed"}`)
	expect("3", `{"type":"end_of_snapshot","watch":"w","revision":"3","count":0}`)
}

func TestReplicaContinuesAnInterruptedSnapshot(t *testing.T) {
	r := NewReplica()
	apply(t, r, snapshotOfTwo+`{"type":"hello"}
{"type":"upsert","watch":"w","key":"c","revision":"4","value":0}
{"type":"bookmark","watch":"w","revision":"4"}`)
	if r.Consistent() {
		t.Error("a bookmark is not the end of a snapshot")
	}
	apply(t, r, `{"type":"end_of_snapshot","watch":"w","revision":"4","count":3,"resumed":true}`)
	if !r.Consistent() || r.Count() != 3 {
		t.Errorf("got %+v", r)
	}
}

func TestReplicaKnowsHowFreshItIs(t *testing.T) {
	r := NewReplica()
	expect := func(want, wantReason string, wantSince time.Time) {
		t.Helper()
		if state, since, reason := r.State(); state != want || reason != wantReason || !since.Equal(wantSince) {
			t.Errorf("got %s since %v: %s, want %s since %v: %s", state, since, reason, want, wantSince, wantReason)
		}
	}
	expect("connecting", "", time.Time{})
	apply(t, r, `{"type":"hello"}`)
	expect("in_sync", "", time.Time{})
	apply(t, r, `{"type":"status","watch":"w","state":"stale","since":"2026-01-02T03:04:05Z","reason":"lost"}`)
	expect("stale", "lost", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r.Disconnected(time.Unix(5, 0), "refused")
	r.Disconnected(time.Unix(9, 0), "refused again")
	expect("disconnected", "refused again", time.Unix(5, 0))
}

func TestReplicaDistinguishesEncodedKeys(t *testing.T) {
	r := NewReplica()
	apply(t, r, `{"type":"upsert","watch":"w","key":"/w==","key_encoding":"base64","revision":"1","value":1}
{"type":"upsert","watch":"w","key":"/w==","revision":"2","value":2}
{"type":"delete","watch":"w","key":"/w==","key_encoding":"base64","revision":"3"}`)
	if got, ok := r.Resource("/w=="); !ok || r.Count() != 1 || got.Revision != "2" {
		t.Errorf("got %+v", r)
	}
}

func TestCompareIDs(t *testing.T) {
	want := []string{"0", "9", "10", "14369", "100000000000000000000", "", "007", "1a", "A", "a", "é"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareIDs)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
