package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// moveTo makes a subscriber of a window go on with another one.
func (s *subscriber) moveTo(w *watch.Watch, number uint64) {
	former := s.Subscription
	s.Subscription = w.Subscribe(log.SubscribeOptions{Former: former, Keep: true, Move: number})
	former.Close()
}

// moves is the number of the last move that a subscriber was told of, after what it reads.
func (s *subscriber) moves() (last uint64) {
	for s.Next(&s.batch) {
		for e := range s.batch.Events() {
			last = max(last, e.Move)
		}
	}
	return last
}

// TestWindowMove: only what is new in the window is sent, and the position is one of the new window.
func TestWindowMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`, `d={"n":4}`, `e={"n":5}`)
		s := subscribe(t, f.open(ordered(t, "n", 3, 0), "c"), nil)
		s.lines()
		s.moveTo(f.open(ordered(t, "n", 3, 1), "c"), 1)
		wantLines(t, "moved by one", s.lines(), "-a@2 left", `d={"n":4}@2`, "bookmark@2 of 5")
		s.moveTo(f.open(ordered(t, "n", 2, 3), "c"), 2)
		wantLines(t, "moved and narrowed", s.lines(), "-b@2 left", "-c@2 left", `e={"n":5}@2`, "bookmark@2 of 5")
		f.commit(`d={"n":0}`)
		wantLines(t, "a change of the new window", s.lines(), "-d@3 left", `c={"n":3}@2`)
		at, _ := s.Position()
		s.moveTo(f.open(ordered(t, "n", 2, 3), "c"), 3)
		wantLines(t, "moved to where it is", s.lines(), "bookmark@3 of 5")
		again := subscribe(t, f.open(ordered(t, "n", 2, 3), "c"), &at)
		wantLines(t, "a resume", again.lines(), "end@3 of 5")
	})
}

// TestWindowMoveOfAReaderThatIsBehind: what the reader was not sent of the former window is taken as unknown.
func TestWindowMoveOfAReaderThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`, `d={"n":4}`)
		s := subscribe(t, f.open(ordered(t, "n", 2, 0), "c"), nil)
		s.lines()
		f.commit(`b={"n":2,"x":1}`)
		f.commit(`a=`)
		s.moveTo(f.open(ordered(t, "n", 2, 0), "c"), 1)
		wantLines(t, "the newest", s.lines(), "-a@4", `b={"n":2,"x":1}@3`, `c={"n":3}@2`, "bookmark@4 of 3")
	})
}

// TestWindowMoveBeforeTheSnapshot: a reader that has nothing begins, and is told of the move.
func TestWindowMoveBeforeTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		s := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), nil)
		s.moveTo(f.open(ordered(t, "n", 1, 1), "c"), 1)
		s.moveTo(f.open(ordered(t, "n", 1, 0), "c"), 2)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `a={"n":1}@2`, "end@2 of 2")
		s.moveTo(f.open(ordered(t, "n", 1, 1), "c"), 3)
		s.moveTo(f.open(ordered(t, "n", 1, 0), "c"), 4)
		if got := s.moves(); got != 4 {
			t.Errorf("the reader was told of move %d, want 4", got)
		}
	})
}

// move makes the reader go on with another window of its view, if it can at this moment.
func (r *windowReader) move() {
	if r.sub == nil || !r.sub.CanMove() {
		return
	}
	c := r.windowCase
	c.limit, c.offset, c.after = 1+r.world.random.IntN(5), r.world.random.IntN(3)*r.world.random.IntN(4), nil
	c.params.Limit, c.params.Offset, c.params.After = fmt.Sprint(c.limit), fmt.Sprint(c.offset), ""
	if r.world.random.IntN(3) == 0 {
		c.begin(r.world.t, r.world.row(fmt.Sprintf("k%d", r.world.random.IntN(12))))
	}
	r.target, r.definition = c, definition(r.world.t, c.params)
	r.number++
	r.keeps = r.sub.Synced() && r.sub.Progress().Lag() == 0
	r.sub.moveTo(r.fixture.open(r.definition, "c"), r.number)
}

// arrive records that the reader has the window to which it moved last.
func (r *windowReader) arrive(move uint64) {
	if move == 0 {
		return
	}
	if r.windowCase = r.target; r.keeps {
		r.world.moved++
	}
	r.keeps = false
}

// got checks that a reader that has moved is not sent what it has.
func (r *windowReader) got(x stream.Resource) {
	r.world.t.Helper()
	if r.keeps && r.pending[x.Key] == string(x.Value) && r.revisions[x.Key] == x.Revision {
		r.world.t.Fatalf("%+v is sent %s@%d again with move %d", r.target.params, x.Key, x.Revision, r.number)
	}
	r.pending[x.Key], r.revisions[x.Key] = string(x.Value), x.Revision
}

// TestWindowMoveInANewEpoch: what a reader has from before says nothing of the new order of revisions.
func TestWindowMoveInANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`)
		f.commit(`c={"n":4}`)
		first, second := f.open(ordered(t, "n", 2, 0), "c"), f.open(ordered(t, "n", 2, 1), "c")
		s, other := subscribe(t, first, nil), subscribe(t, second, nil)
		s.lines()
		other.lines()
		f.upstream.Restore("e2", 2)
		f.endpoint.Move()
		time.Sleep(time.Minute)
		s.moveTo(second, 1)
		wantLines(t, "the new epoch", s.lines(), "reset epoch_changed", `b={"n":2}@2`, `c={"n":3}@2`, "end@2 of 3")
	})
}

// TestWindowMoveOfAnOrderMadeAgain: the numbers of the entries of a window that is made again say nothing of what a
// reader has from before.
func TestWindowMoveOfAnOrderMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxBytes: 300 << 10, Linger: time.Hour})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		first, second := f.open(ordered(t, "n", 1, 0), "c"), f.open(ordered(t, "n", 1, 1), "c")
		s, other := subscribe(t, first, nil), subscribe(t, second, nil)
		s.lines()
		other.lines()
		var texts, gone []string
		for i := range 2000 {
			texts = append(texts, fmt.Sprintf(`%s%d={"n":%d}`, strings.Repeat("k", 200), i, i+9))
			gone = append(gone, fmt.Sprintf("%s%d=", strings.Repeat("k", 200), i))
		}
		f.commit(texts...)
		f.commit(`a=`)
		if state := first.Status(); state.Reason != noRoom {
			t.Fatalf("the window is %v: %q", state.State, state.Reason)
		}
		f.commit(append(gone, `c={"n":3}`)...)
		time.Sleep(time.Minute)
		other.lines()
		s.moveTo(second, 1)
		if got := s.lines(); !slices.Contains(got, `c={"n":3}@5`) || got[0] != "reset epoch_changed" {
			t.Errorf("read %q, want a reset and the new window", got)
		}
	})
}
