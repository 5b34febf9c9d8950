package views

import (
	"fmt"
	"testing"
	"testing/synctest"

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
