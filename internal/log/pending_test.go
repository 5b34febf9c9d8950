package log

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// pendingLog is a log of 1,000 resources of about 1,100 bytes, at revision 1,000.
func pendingLog(t *testing.T) *Writer {
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 5}})
	var all []Change
	for i := uint64(1); i <= 1000; i++ {
		all = append(all, largeChange(i))
	}
	mustReplace(t, l, "e", 1000, all...)
	inSync(l)
	return l
}

func largeChange(i uint64) Change {
	return Change{Resource: stream.Resource{Key: fmt.Sprint("k", i%1000), Revision: i, Value: value(strings.Repeat("x", 1000))}}
}

func changeAll(t *testing.T, l *Writer, from, to uint64) {
	for i := from; i <= to; i++ {
		mustCommit(t, l, i, largeChange(i))
	}
}

func wantPending(t *testing.T, s *Subscription, atLeast, atMost int, whole bool) {
	t.Helper()
	got, is := s.Pending(10 << 20)
	if got < atLeast || got > atMost || is != whole {
		t.Errorf("pending: got %d, whole %v; want %d to %d, %v", got, is, atLeast, atMost, whole)
	}
}

// drained reads everything.
func drained(s *Subscription) *Subscription {
	for b := new(Batch); s.Next(b); {
	}
	return s
}

func TestPending(t *testing.T) {
	l := pendingLog(t)
	const each, all = 1000, 1000 * 1000
	fresh := l.Subscribe(SubscribeOptions{})
	wantPending(t, fresh, all, all*2, true)
	b := new(Batch)
	for range 3 { // reset, and two flushes
		fresh.Next(b)
	}
	wantPending(t, fresh, all-200*each, all*2-100*each, true)
	wantPending(t, drained(fresh), 0, 0, false)

	changeAll(t, l, 1001, 1100)
	wantPending(t, fresh, 0, 0, false) // live
	for _, c := range []struct {
		position        stream.Position
		atLeast, atMost int
		whole           bool
	}{
		{stream.Position{Watch: "w", Epoch: "e", Upserts: 1100, AsOf: 1100}, 0, 0, false},
		{stream.Position{Watch: "w", Epoch: "e", Upserts: 1000, AsOf: 1000}, 100 * each, 200 * each, false},
		{stream.Position{Watch: "w", Epoch: "e", Upserts: 500, AsOf: 1000}, 500 * each, 1200 * each, false},
		{stream.Position{Watch: "w", Epoch: "e", Upserts: 0, AsOf: 1000}, all, all * 2, false},
		{stream.Position{Watch: "w", Epoch: "other", Upserts: 1000, AsOf: 1000}, all, all * 2, true},
		{stream.Position{Watch: "w", Epoch: "e", Upserts: 5, AsOf: 2000}, 0, 0, false}, // ahead: held
	} {
		wantPending(t, l.Subscribe(SubscribeOptions{Resume: &c.position}), c.atLeast, c.atMost, c.whole)
	}
	wantPending(t, l.Subscribe(SubscribeOptions{Invalid: true}), all, all*2, true)

	changeAll(t, l, 1101, 4000)
	wantPending(t, fresh, all, all*3, false) // too far behind to be live
	for i := uint64(4001); i < 4020; i++ {
		mustCommit(t, l, i, remove(fmt.Sprint("k", i%1000), i))
	}
	wantPending(t, fresh, all/2, all*3, true) // deletes were forgotten
	drained(fresh)
	mustReplace(t, l, "e2", 1, largeChange(1))
	wantPending(t, fresh, each, 2*each, true)
}

// TestPendingAhead: once a position that is ahead was held for long enough, a
// snapshot follows.
func TestPendingAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pendingLog(t)
		s := drained(l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: 2000, AsOf: 2000}}))
		wantPending(t, s, 0, 0, false)
		time.Sleep(3 * time.Second)
		wantPending(t, s, 1000*1000, 1000*2000, true)
	})
}

// TestPause: a paused subscription says once that it waits, reads nothing, pins
// nothing, and gets everything after its release.
func TestPause(t *testing.T) {
	l := pendingLog(t)
	for _, resume := range []*stream.Position{nil, {Watch: "w", Epoch: "e", Upserts: 900, AsOf: 900}} {
		s, b := l.Subscribe(SubscribeOptions{Resume: resume}), new(Batch)
		s.Pause("it waits")
		want := stream.Priming
		if resume != nil {
			want = stream.Resyncing
		}
		if !s.Next(b) || b.Count(stream.StatusChange) != 1 || b.Boundary() {
			t.Fatalf("got %d statuses, boundary %v", b.Count(stream.StatusChange), b.Boundary())
		}
		for e := range b.Events() {
			if e.State != want || e.Reason != "it waits" {
				t.Errorf("got %v %q", e.State, e.Reason)
			}
		}
		if s.Next(b) || s.walking() || s.CaughtUp() {
			t.Error("it reads while it is held")
		}
		s.Unpause()
		var states []stream.State
		ended := 0
		for s.Next(b) {
			for e := range b.Events() {
				if e.Type == stream.StatusChange {
					states = append(states, e.State)
				}
			}
			ended += b.Count(stream.EndOfSnapshot)
		}
		if ended != 1 || len(states) != 1 || states[0] != stream.InSync || !s.CaughtUp() {
			t.Errorf("after the release: %d ends, states %v", ended, states)
		}
	}
}
