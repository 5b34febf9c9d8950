package log

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// toldShort reads everything there is now, and returns it in short form: each flush by itself, with * where
// it may be resumed.
func toldShort(s *Subscription) string {
	var flushes []string
	for b := new(Batch); s.Next(b); {
		var events []string
		for e := range b.Events() {
			switch e.Type {
			case stream.Upsert:
				events = append(events, fmt.Sprintf("+%s:%d", e.Resource.Key, e.Resource.Revision))
			case stream.Delete:
				events = append(events, fmt.Sprintf("-%s:%d", e.Resource.Key, e.Resource.Revision))
			case stream.Bookmark:
				events = append(events, fmt.Sprintf("bookmark:%d skipped:%d", e.Revision, e.Skipped))
			case stream.StatusChange:
				events = append(events, e.State.String())
			default:
				events = append(events, e.Type.String())
			}
		}
		text := strings.Join(events, " ")
		if b.Boundary() {
			text += "*"
		}
		flushes = append(flushes, text)
		b.Release()
	}
	return strings.Join(flushes, " | ")
}

func wantTold(t *testing.T, s *Subscription, want string) {
	t.Helper()
	if got := toldShort(s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func small(key string, revision uint64) Change {
	return Change{Resource: stream.Resource{Key: key, Revision: revision, Value: value("x")}}
}

// TestRelease: a change after a quiet time is sent at once, what follows in the same tick with the next
// one, and of each key the newest value.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, "e", 1, small("a", 1), small("b", 1))
		inSync(l)
		s := l.Subscribe(SubscribeOptions{Interval: time.Second})
		defer s.Close()
		wantTold(t, s, "reset* | +a:1 +b:1 end_of_snapshot*")
		mustCommit(t, l, 2, small("a", 2))
		wantTold(t, s, "+a:2*")
		for i := uint64(3); i < 10; i++ {
			mustCommit(t, l, i, small("a", i))
		}
		mustCommit(t, l, 10, small("c", 10), Change{Resource: stream.Resource{Key: "b", Revision: 10}, Deleted: true})
		wantTold(t, s, "")
		if wait := time.Until(s.Deadline()); wait <= 0 || wait > time.Second {
			t.Errorf("the next tick is in %v", wait)
		}
		if !s.CaughtUp() {
			t.Error("what waits for a tick counts as a lag")
		}
		time.Sleep(time.Until(s.Deadline()))
		wantTold(t, s, "-b:10 +a:9 +c:10 bookmark:10 skipped:6*")
		if !s.Deadline().IsZero() {
			t.Error("there is a deadline, and nothing waits")
		}
		if s.Skipped() != 6 {
			t.Errorf("skipped %d", s.Skipped())
		}
	})
}

// TestReleaseOfWhatCameAndWent: of a key that came and went in one tick nothing is sent, and a delete of one that the reader
// had.
func TestReleaseOfWhatCameAndWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, "e", 1, small("a", 1), small("b", 1), small("c", 1))
		inSync(l)
		s := l.Subscribe(SubscribeOptions{Interval: time.Second})
		defer s.Close()
		toldShort(s)
		revision := uint64(1)
		commit := func(changes ...string) {
			for _, c := range changes {
				revision++
				of := small(c[1:], revision)
				if of.Deleted = c[0] == '-'; of.Deleted {
					of.Value = nil
				}
				mustCommit(t, l, revision, of)
			}
		}
		// atOnce commits in a tick of its own.
		atOnce := func(change string) {
			time.Sleep(2 * time.Second)
			commit(change)
			toldShort(s)
		}
		wantNext := func(want string) {
			t.Helper()
			wantTold(t, s, "")
			time.Sleep(time.Until(s.Deadline()))
			wantTold(t, s, fmt.Sprintf(want, revision))
		}
		atOnce("+d")
		commit("+x", "-x") // it came and went
		commit("-a")
		commit("-b", "+b", "-b", "+b") // it is there
		commit("-c", "+c", "-c")
		wantNext("-a:5 -c:12 +b:9 bookmark:%d skipped:7*")
		atOnce("-d")
		commit("+d", "-d") // the reader does not have it any more
		wantNext("bookmark:%d skipped:2*")
		atOnce("+d")
		for range mostBefore { // too often to be followed
			commit("+y", "-y")
		}
		wantNext("-y:%[1]d bookmark:%[1]d skipped:15*")
	})
}

// TestReleaseIsShared: readers at different places are at the same one after a tick, whatever is
// committed while they are served, and no state is kept longer than its tick.
func TestReleaseIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, "e", 1, small("a", 1))
		inSync(l)
		var readers []*Subscription
		for i := range uint64(5) {
			s := l.Subscribe(SubscribeOptions{Interval: time.Second})
			defer s.Close()
			toldShort(s)
			readers = append(readers, s)
			mustCommit(t, l, 2+i, small("a", 2+i))
		}
		time.Sleep(2 * time.Second)
		for i, s := range readers {
			toldShort(s)
			mustCommit(t, l, 10+uint64(i), small("a", 10+uint64(i)))
		}
		for _, s := range readers[1:] {
			if !NewCohort(readers[0]).Admits(s) {
				t.Errorf("readers are at %v and %v", readers[0].position, s.position)
			}
		}
		if l.releases.kept.Load() != 1 {
			t.Errorf("%d states are kept", l.releases.kept.Load())
		}
		time.Sleep(time.Second)
		mustCommit(t, l, 20, small("a", 20))
		if l.releases.kept.Load() != 0 || l.pins.Held() != 0 {
			t.Errorf("%d states and %d bytes are kept after the tick", l.releases.kept.Load(), l.pins.Held())
		}
	})
}

// TestReleaseWaitsForNoStatus: that a watch is stale is told at once, and that it is in sync with what
// came before it.
func TestReleaseWaitsForNoStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, "e", 1, small("a", 1))
		inSync(l)
		s := l.Subscribe(SubscribeOptions{Interval: time.Second})
		defer s.Close()
		toldShort(s)
		mustCommit(t, l, 2, small("a", 2))
		toldShort(s)
		mustCommit(t, l, 3, small("a", 3))
		l.SetStatus(stream.Status{State: stream.Stale, Since: time.Now()})
		wantTold(t, s, "stale")
		inSync(l)
		wantTold(t, s, "")
		time.Sleep(time.Until(s.Deadline()))
		wantTold(t, s, "+a:3 in_sync*")
	})
}

// TestLargeRelease: a release of many flushes has one place to resume from, its end, and a reader whose
// state is taken away in the middle of it catches up.
func TestLargeRelease(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%t", taken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := pendingLog(t)
				s := l.Subscribe(SubscribeOptions{Interval: time.Second})
				defer s.Close()
				toldShort(s)
				time.Sleep(time.Second)
				changeAll(t, l, 1001, 5000)
				if bytes, _ := s.Pending(1 << 30); bytes != 0 {
					t.Errorf("%d bytes count as a large read", bytes)
				}
				b, flushes := new(Batch), 0
				for ; s.Next(b); flushes++ {
					if b.Boundary() != (s.walk == nil) && !taken {
						t.Fatalf("flush %d: boundary %t", flushes, b.Boundary())
					}
					b.Release()
					if taken && flushes == 2 {
						l.pins.TakeAll()
					}
				}
				if flushes < 10 || s.Skipped() != 3000 || !s.CaughtUp() {
					t.Errorf("%d flushes, %d skipped, caught up: %t", flushes, s.Skipped(), s.CaughtUp())
				}
			})
		})
	}
}
