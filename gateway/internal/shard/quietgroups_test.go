package shard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// TestAttackManyPrefixes checks streams that each have a prefix and are each a group.
// A shard checks those that a commit may concern, and those whose heartbeat is due.
func TestAttackManyPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "a", "b")
		s.rig.Prime("a", 1)
		s.rig.Prime("b", 1)
		const narrow = 1000
		from := s.openNarrow(narrow, "a", func(i int) string { return fmt.Sprint("p", i, "/") })
		to := s.open(3, "b")
		s.settle()
		if n := len(s.named); n != narrow+1 {
			t.Fatalf("%d groups, want %d", n, narrow+1)
		}
		looked := func() int {
			synctest.Wait()
			s.wakeGroups()
			return len(s.due)
		}
		if n := looked(); n != 0 {
			t.Errorf("without news a turn checks %d groups", n)
		}
		s.rig.Commit("b", 2, gatewaytest.Resource("k", 2, "1"))
		if n := looked(); n != 1 {
			t.Errorf("for a commit of another watch a turn checks %d groups, want 1", n)
		}
		if n := count(s.turn(), to, to+3); n != 3 {
			t.Errorf("%d of 3 get the changes that concern them", n)
		}
		s.rig.Commit("a", 2, gatewaytest.Resource("p7/k", 2, "1"))
		if n := count(s.turn(), from, to); n != 1 {
			t.Errorf("%d get a change that concerns one", n)
		}
		// Each gets its heartbeat when it is due, and none earlier. Others have their turn
		// meanwhile.
		time.Sleep(s.deps.Heartbeat - time.Minute)
		if n := len(s.turn()); n != 0 {
			t.Errorf("%d writes before anything is due", n)
		}
		time.Sleep(time.Minute)
		n := count(s.turn(), from, to)
		if n > passMembers {
			t.Errorf("%d get a heartbeat in one turn, want at most %d", n, passMembers)
		}
		for range narrow / passMembers {
			n += count(s.turn(), from, to)
		}
		if n != narrow {
			t.Errorf("%d of %d get a heartbeat", n, narrow)
		}
		if n := len(s.turn()); n != 0 {
			t.Errorf("%d writes right after it", n)
		}
		if s.patience() <= 0 {
			t.Error("the shard does not rest")
		}
		for _, g := range s.groups {
			if g != nil && g.buffer != nil {
				t.Fatalf("a group without news holds %d bytes", cap(g.buffer))
			}
		}
		if s.room.spare == nil {
			t.Error("the buffer that they wrote from is not used again")
		}
	})
}

// TestQuietGroups checks that the groups are found in the order in which they are
// due, whatever has changed meanwhile.
func TestQuietGroups(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d := &session.Deps{Settings: session.Settings{Heartbeat: 10 * time.Second}}
	var q quietGroups
	var groups []*group
	for i := range 100 {
		one := &group{Session: session.Session{Deps: d, QuietSince: now.Add(time.Duration(i*37%100) * time.Second)}, index: int32(i)}
		groups = append(groups, one)
		q.put(one)
		q.put(one)
	}
	for i := range 50 { // every other one ends, or writes something
		if i%2 == 0 {
			q.remove(groups[i])
			q.remove(groups[i])
		} else {
			groups[i].QuietSince = now.Add(time.Hour)
		}
	}
	var found []*group
	for at := now; !q.next().IsZero() && at.Before(now.Add(time.Hour)); at = at.Add(time.Second) {
		q.due(at, func(one *group) {
			if one.HeartbeatAt().Sub(at) > one.early() || at.Sub(one.HeartbeatAt()) >= time.Second {
				t.Errorf("group %d is found at %s, and is due at %s", one.index, at, one.HeartbeatAt())
			}
			found = append(found, one)
		})
	}
	if len(found) != 50 || len(q.heap) != 25 {
		t.Errorf("%d found, %d left, want 50 and 25", len(found), len(q.heap))
	}
	for _, one := range groups[50:] {
		if one.looked != 0 {
			t.Errorf("group %d is still there", one.index)
		}
	}
}

// TestHeartbeatsInRounds checks that a heartbeat that is due takes others with it that are
// due soon, and that none is sent early on its own.
func TestHeartbeatsInRounds(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var q quietGroups
	add := func(heartbeat time.Duration, dueIn ...time.Duration) {
		d := &session.Deps{Settings: session.Settings{Heartbeat: heartbeat}}
		for _, in := range dueIn {
			q.put(&group{Session: session.Session{Deps: d, QuietSince: now.Add(in - heartbeat)}})
		}
	}
	found := func(at time.Time) (n int) {
		q.due(at, func(g *group) {
			n++
			g.QuietSince = at
			q.put(g)
		})
		return n
	}
	add(10*time.Second, 0, 400*time.Millisecond, time.Second, 1100*time.Millisecond, 3*time.Second)
	for _, step := range []struct {
		at   time.Duration
		want int
	}{
		{-1, 0},
		{0, 3}, // with those due within a second
		{1100*time.Millisecond - 1, 0},
		{1100 * time.Millisecond, 1},
		{3 * time.Second, 1},
		{10*time.Second - 1, 0},
		{10 * time.Second, 3}, // together from now on
		{10*time.Second + 1, 0},
		{11100 * time.Millisecond, 1},
		{13 * time.Second, 1},
	} {
		if n := found(now.Add(step.at)); n != step.want {
			t.Errorf("after %v a turn finds %d groups, want %d", step.at, n, step.want)
		}
		if q.round {
			t.Errorf("after %v a round has no end", step.at)
		}
	}
	add(time.Second, 20*time.Second+50*time.Millisecond)
	if n := found(now.Add(20 * time.Second)); n != 4 || q.round {
		t.Errorf("%d groups, and the round goes on: %t; want 4, one of them with a short heartbeat, once", n, q.round)
	}
}

// TestRoundTakesTurns checks that a round of very many heartbeats lets others have their turn.
func TestRoundTakesTurns(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d := &session.Deps{Settings: session.Settings{Heartbeat: 10 * time.Second}}
	var q quietGroups
	const groups = 2*passMembers + passMembers/2
	for i := range groups {
		q.put(&group{Session: session.Session{Deps: d, QuietSince: now.Add(time.Duration(i) * time.Microsecond)}})
	}
	total := 0
	for turn := range 3 {
		n := 0
		q.due(now.Add(10*time.Second), func(*group) { n++ })
		if total += n; n > passMembers {
			t.Errorf("turn %d has %d groups, want at most %d", turn, n, passMembers)
		}
		if more := total < groups; q.round != more {
			t.Errorf("after turn %d a round is under way: %t, want %t", turn, q.round, more)
		}
	}
	if total != groups {
		t.Errorf("%d of %d groups in three turns", total, groups)
	}
}
