package log

import (
	"fmt"
	"maps"
	"testing"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// manyDeletes returns a log at 2010 from which 1500 of 2000 resources were deleted since 10, one by
// one, and another one that is still at 10.
func manyDeletes(t *testing.T) (ahead, behind *Writer) {
	t.Helper()
	var all []Change
	for i := range 2000 {
		all = append(all, upsert(fmt.Sprintf("k%04d", i), 5))
	}
	ahead, behind = newSyncedLog(t, "e", 10, all...), newSyncedLog(t, "e", 10, all...)
	return ahead, behind
}

func deleteMany(t *testing.T, l *Writer) {
	t.Helper()
	for i := range uint64(1500) {
		mustCommit(t, l, 11+i, remove(fmt.Sprintf("k%04d", i), 11+i))
	}
	mustCommit(t, l, 2010, large("new", 2010, storage.ReplaySize)) // too much for a replay
}

// TestNoIDAmongDeletes: the position among the deletes of a catch-up is the one from before, and
// does not cover them: a reader that is cut off there may come to a replica that is at that
// position. Once all were sent, the position says so.
func TestNoIDAmongDeletes(t *testing.T) {
	at10 := stream.Position{Watch: "w", Epoch: "e", Upserts: 10, AsOf: 10}
	for name, resumes := range map[string]bool{"after a resume": true, "of a slow reader": false} {
		ahead, behind := manyDeletes(t)
		r := &follower{state: map[string]uint64{}}
		if resumes {
			for i := range 2000 {
				r.state[fmt.Sprintf("k%04d", i)] = 5
			}
			deleteMany(t, ahead)
			r.s = ahead.Subscribe(SubscribeOptions{Resume: &at10})
		} else {
			r.s = ahead.Subscribe(SubscribeOptions{})
			for r.flush() {
			}
			deleteMany(t, ahead)
		}
		among, ids := 0, 0
		for r.flush() {
			position, _ := r.s.Position()
			if r.s.Uncovered() == r.b.Boundary() {
				t.Errorf("%s: uncovered is %t, boundary %t", name, r.s.Uncovered(), r.b.Boundary())
			}
			if !r.b.Boundary() {
				among++
				continue
			}
			ids++
			if len(r.state) > 501 {
				t.Errorf("%s: an id %v after %d of 1500 deletes", name, position, 2000-len(r.state))
			}
			wantCountAt(t, behind, r.state, position)
		}
		if position, _ := r.s.Position(); among < 1 || ids < 1 || len(r.state) != 501 || position.String() != "w@e-2010" {
			t.Errorf("%s: %d flushes without an id, %d with one, %d resources at %v", name, among, ids, len(r.state), position)
		}
		r.s.Close()
	}
}

// wantCountAt resumes with a state at a position, and checks that what is said of it at the end is
// true.
func wantCountAt(t *testing.T, l *Writer, state map[string]uint64, position stream.Position) {
	t.Helper()
	r := &follower{s: l.Subscribe(SubscribeOptions{Resume: &position, AheadWait: 1}), state: maps.Clone(state)}
	defer r.s.Close()
	for r.flush() {
	}
	if got := len(r.state); got != 2000 {
		t.Errorf("at a replica that is behind: %q with %d resources, want 2000", r.events, got)
	}
}

// TestNoIDAmongDeletesOfANewerState: a reader that loses the version of its snapshot is sent the
// deletes since, which its position does not cover either.
func TestNoIDAmongDeletesOfANewerState(t *testing.T) {
	l, _ := manyDeletes(t)
	r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
	defer r.s.Close()
	for range 2 {
		r.flush()
	}
	deleteMany(t, l)
	l.pins.TakeAll()
	deletes := 0
	for r.flush() {
		position, _ := r.s.Position()
		if deletes += r.b.Count(stream.Delete); deletes > 0 && r.b.Boundary() && position.AsOf != 2010 {
			t.Errorf("an id %v after %d deletes of the state at 2010", position, deletes)
		}
	}
	if deletes < 1000 || len(r.state) != 501 {
		t.Errorf("%d deletes, %d resources", deletes, len(r.state))
	}
}

// TestFlushEndsWithAWalk: what follows a snapshot may have no id for long, so the end of the
// snapshot has its own.
func TestFlushEndsWithAWalk(t *testing.T) {
	l := newSyncedLog(t, "e", 10, large("a", 1, storage.FlushSize), upsert("b", 2))
	r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
	defer r.s.Close()
	r.flush()
	r.flush()
	mustCommit(t, l, 11, large("c", 11, storage.ReplaySize), large("d", 11, storage.ReplaySize))
	for r.flush() {
		if r.b.Count(stream.EndOfSnapshot) > 0 && !r.b.Boundary() {
			t.Error("the end of a snapshot has no id")
		}
	}
	if len(r.state) != 4 {
		t.Errorf("%d resources", len(r.state))
	}
}
