package shard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/conversation"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
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
		// Each gets its heartbeat when it is due, and none earlier.
		time.Sleep(s.deps.Heartbeat - time.Minute)
		if n := len(s.turn()); n != 0 {
			t.Errorf("%d writes before anything is due", n)
		}
		time.Sleep(time.Minute)
		if n := count(s.turn(), from, to); n != narrow {
			t.Errorf("%d of %d get a heartbeat", n, narrow)
		}
		if n := len(s.turn()); n != 0 {
			t.Errorf("%d writes right after it", n)
		}
		if s.patience() <= 0 {
			t.Error("the shard does not rest")
		}
	})
}

// TestQuietGroups checks that the groups are found in the order in which they are
// due, whatever has changed meanwhile.
func TestQuietGroups(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d := &conversation.Deps{Heartbeat: 10 * time.Second}
	var q quietGroups
	var groups []*group
	for i := range 100 {
		one := &group{Conversation: conversation.Conversation{Deps: d, QuietSince: now.Add(time.Duration(i*37%100) * time.Second)}, index: int32(i)}
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
			if one.HeartbeatAt().After(at) || at.Sub(one.HeartbeatAt()) >= time.Second {
				t.Errorf("group %d is found at %s, and is due at %s", one.index, at, one.HeartbeatAt())
			}
			found = append(found, one)
		})
	}
	if len(found) != 50 || len(q.heap) != 25 {
		t.Errorf("%d found, %d left, want 50 and 25", len(found), len(q.heap))
	}
	for _, one := range groups[50:] {
		if one.waiting != 0 {
			t.Errorf("group %d is still there", one.index)
		}
	}
}
