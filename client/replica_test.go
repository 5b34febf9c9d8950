package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// apply applies events that are written as in a stream, without their names. Each has an id, unless it is a status.
func apply(t *testing.T, r *Replica[Resource], lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Watch != "" && e.Type != Status {
			e.ID = "w@e-1"
		}
		if err := r.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
}

// shown returns the IDs that a replica shows, and its revision.
func shown(r *Replica[Resource]) string {
	text := r.Revision() + ":"
	for id := range r.All() {
		text += " " + id
	}
	return text
}

const snapshotOfTwo = `{"type":"hello","heartbeat_ms":15000}
{"type":"reset","watch":"w","reason":"initial"}
{"type":"upsert","watch":"w","key":"b","revision":"1","value":1}
{"type":"upsert","watch":"w","key":"a","revision":"2","value":2}
`

const endOfTwo = `{"type":"end_of_snapshot","watch":"w","revision":"2","count":2}
`

// expect checks what a replica shows, and whether more has arrived.
func expect(t *testing.T, r *Replica[Resource], when, want string, pending bool) {
	t.Helper()
	if got := shown(r); got != want || r.Progress().Pending != pending {
		t.Errorf("%s: shows %q, pending %t, want %q, %t", when, got, r.Progress().Pending, want, pending)
	}
}

func TestReplicaShowsASnapshotAtItsEnd(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, snapshotOfTwo)
	expect(t, r, "in a snapshot", ":", true)
	if p := r.Progress(); p.Complete || p.Arrived != 2 {
		t.Errorf("in a snapshot: %+v", p)
	}
	apply(t, r, endOfTwo)
	expect(t, r, "after it", "2: a b", false)
	if p := r.Progress(); !p.Complete || p.Arrived != 0 || r.Len() != 2 {
		t.Errorf("after it: %+v", p)
	}
}

func TestReplicaAppliesChanges(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, snapshotOfTwo+endOfTwo+
		`{"type":"upsert","watch":"w","key":"a","revision":"3","value":{"x":1}}
{"type":"delete","watch":"w","key":"b","revision":"4"}
{"type":"delete","watch":"w","key":"never there","revision":"4"}
{"type":"something new","watch":"w","key":"a"}
{"type":"upsert","watch":"w","key":"c/d","revision":"5","value":null}
`)
	a, _ := r.Get("a")
	if string(a.Value) != `{"x":1}` {
		t.Errorf("got %q", a.Value)
	}
	expect(t, r, "after changes", "5: a c/d", false)
	apply(t, r, `{"type":"bookmark","watch":"w","revision":"9"}`)
	expect(t, r, "after a bookmark", "9: a c/d", false)
}

// The changes of a transaction become visible together, whichever watch of the stream has its id.
func TestReplicaShowsATransactionAtItsEnd(t *testing.T) {
	for _, last := range []Event{
		{Type: Upsert, Watch: "w", Resource: Resource{Key: "d", Revision: "3"}, ID: "w@e-3"},
		{Type: Upsert, Watch: "other", Resource: Resource{Key: "x", Revision: "7"}, ID: "w@e-3,other@e-7"},
	} {
		r := NewReplica("w")
		apply(t, r, snapshotOfTwo+endOfTwo)
		_ = r.Apply(Event{Type: Delete, Watch: "w", Resource: Resource{Key: "a", Revision: "3"}})
		_ = r.Apply(Event{Type: Upsert, Watch: "w", Resource: Resource{Key: "c", Revision: "3"}})
		expect(t, r, "in a transaction", "2: a b", true)
		_ = r.Apply(last)
		want := "3: b c"
		if last.Watch == "w" {
			want += " d"
		}
		expect(t, r, "after it", want, false)
	}
}

func TestReplicaShowsTheStateBeforeAReset(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, snapshotOfTwo+endOfTwo+`{"type":"reset","watch":"w","reason":"expired"}
{"type":"upsert","watch":"w","key":"z","revision":"1","value":1}`)
	expect(t, r, "after a reset", "2: a b", true)
	if p := r.Progress(); p.Complete || p.Arrived != 1 {
		t.Errorf("got %+v", p)
	}
	apply(t, r, `{"type":"end_of_snapshot","watch":"w","revision":"1","count":1}`)
	expect(t, r, "after the next snapshot", "1: z", false)
}

func TestReplicaShowsNothingOfACatchUpBeforeItsEnd(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, snapshotOfTwo+endOfTwo+`{"type":"status","watch":"w","state":"catching_up"}
{"type":"upsert","watch":"w","key":"c","revision":"9","value":0}`)
	expect(t, r, "catching up", "2: a b", true)
	apply(t, r, `{"type":"bookmark","watch":"w","revision":"12","skipped":3}`)
	expect(t, r, "after the bookmark", "12: a b c", false)
}

func TestReplicaKeepsItsStateOverAResume(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, snapshotOfTwo+endOfTwo)
	_ = r.Apply(offline(1, "gone"))
	apply(t, r, `{"type":"hello","heartbeat_ms":15000}
{"type":"delete","watch":"w","key":"a","revision":"3"}`)
	expect(t, r, "in a resume", "2: a b", true)
	apply(t, r, `{"type":"end_of_snapshot","watch":"w","revision":"7","count":1,"resumed":true}`)
	expect(t, r, "after it", "7: b", false)
}

// A resume can begin with a bookmark: the position without the name of the run, where deletes have no
// revision, or a horizon. Only its end_of_snapshot makes the state consistent.
func TestReplicaShowsNothingAtABookmarkInAResume(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, snapshotOfTwo+endOfTwo+`{"type":"hello","heartbeat_ms":15000}
{"type":"bookmark","watch":"w","revision":"2"}
{"type":"delete","watch":"w","key":"a","revision":"5"}`)
	expect(t, r, "in a resume", "2: a b", true)
	apply(t, r, `{"type":"status","watch":"w","state":"catching_up"}
{"type":"bookmark","watch":"w","revision":"5"}`)
	expect(t, r, "at a bookmark after catching_up, in a resume", "2: a b", true)
	apply(t, r, `{"type":"end_of_snapshot","watch":"w","revision":"6","count":1,"resumed":true}`)
	expect(t, r, "after it", "6: b", false)
}

// Where deletes have no revision of their own, a delete may show that of the resource's last version.
// The state after it is not of that old revision.
func TestReplicaRevisionDoesNotGoBack(t *testing.T) {
	r := NewReplica("w")
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
	expect("18446744073709551615", `{"type":"reset","watch":"w","reason":"epoch_changed"}`) // it shows the state before
	expect("3", `{"type":"end_of_snapshot","watch":"w","revision":"3","count":0}`)
}

func TestReplicaContinuesAnInterruptedSnapshot(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, snapshotOfTwo+`{"type":"hello"}
{"type":"upsert","watch":"w","key":"c","revision":"4","value":0}
{"type":"bookmark","watch":"w","revision":"4"}`)
	expect(t, r, "at a bookmark, which is not the end of a snapshot", ":", true)
	apply(t, r, `{"type":"end_of_snapshot","watch":"w","revision":"4","count":3,"resumed":true}`)
	expect(t, r, "after it", "4: a b c", false)
}

// offline is the event for a lost connection.
func offline(at int64, why string) Event {
	return Event{Type: Status, State: Offline, Since: time.Unix(at, 0), Reason: Reason(why), Err: errors.New(why)}
}

func TestReplicaKnowsHowFreshItIs(t *testing.T) {
	r := NewReplica("w")
	expect := func(state State, reason string, since time.Time) {
		t.Helper()
		if got, want := r.Freshness(), (Freshness{state, since, reason}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	expect(Connecting, "", time.Time{})
	apply(t, r, `{"type":"hello"}`)
	expect(InSync, "", time.Time{})
	apply(t, r, `{"type":"status","watch":"other","state":"stale"}`)
	expect(InSync, "", time.Time{})
	apply(t, r, `{"type":"status","watch":"w","state":"stale","since":"2026-01-02T03:04:05Z","reason":"lost"}`)
	expect(Stale, "lost", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	_ = r.Apply(offline(5, "refused"))
	_ = r.Apply(offline(9, "refused again"))
	expect(Offline, "refused again", time.Unix(5, 0))
	r.Close()
	if got := r.Freshness().State; got != Closed {
		t.Errorf("after its end: %s", got)
	}
}

func TestReplicaDistinguishesEncodedKeys(t *testing.T) {
	r := NewReplica("w")
	apply(t, r, `{"type":"hello"}
{"type":"end_of_snapshot","watch":"w"}
{"type":"upsert","watch":"w","key":"/w==","key_encoding":"base64","revision":"1","value":1}
{"type":"upsert","watch":"w","key":"/w==","revision":"2","value":2}
{"type":"delete","watch":"w","key":"/w==","key_encoding":"base64","revision":"3"}`)
	if got, ok := r.Get("/w=="); !ok || r.Len() != 1 || got.Revision != "2" {
		t.Errorf("got %+v", got)
	}
}

// A replica follows its stream over a lost connection, tells of each change, and ends when it is closed.
func TestReplicaFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{
			replies(hello + reset + upsert("a", 1, false) + endOfSnapshot(1, 1) + upsert("half", 2, false)),
			stalls(hello + upsert("b", 3, false) + endOfSnapshot(3, 2)),
		}}
		c, stop := serve(t, s.ServeHTTP)
		defer stop()
		r := ReplicaOf[struct{ N int }](t.Context(), c, "w")
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		for r.Freshness().State != Offline {
			<-r.Changed()
		}
		if a, ok := r.Get("a"); !ok || a.N != 1 || r.Len() != 1 {
			t.Errorf("after the first connection: %v, %d resources", a, r.Len())
		}
		for r.Len() < 2 {
			<-r.Changed()
		}
		if b, _ := r.Get("b"); b.N != 3 || r.Freshness().State != InSync || r.Err() != nil {
			t.Errorf("after the second: %v, %+v, %v", b, r.Freshness(), r.Err())
		}
		changed := r.Changed()
		r.Close()
		<-changed
		if r.Freshness().State != Closed || r.Len() != 2 || !errors.Is(r.Err(), context.Canceled) {
			t.Errorf("at the end: %+v, %d resources, %v", r.Freshness(), r.Len(), r.Err())
		}
	})
}

// A replica that has nothing to show, and never will, says why.
func TestReplicaEnds(t *testing.T) {
	for name, c := range map[string]struct {
		turn turn
		want string
	}{
		"a refusal":               {refuses(404), "404 Not Found: so it is"},
		"a value of another type": {replies(hello + reset + upsert("a", 1, true)), `watch w: the value of "a": json: cannot unmarshal object into Go value of type int`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, stop := serve(t, (&script{turns: []turn{c.turn}}).ServeHTTP)
				defer stop()
				r := ReplicaOf[int](t.Context(), server, "w")
				defer r.Close()
				if err := r.Ready(t.Context()); err == nil || err.Error() != c.want || r.Freshness().Reason != c.want {
					t.Errorf("got %v, %+v, want %s", err, r.Freshness(), c.want)
				}
			})
		})
	}
}

func TestReplicaIsNotReadyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, stop := serve(t, http.HandlerFunc(stalls(hello+reset)))
		defer stop()
		r := server.Replica(t.Context(), "w")
		defer r.Close()
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, over)
		defer cancel()
		if err := r.Ready(ctx); !errors.Is(err, over) || r.Err() != nil {
			t.Errorf("got %v, %v", err, r.Err())
		}
	})
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
