package shard

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream"
)

// TestGroupSplitsInTurns checks members that all need a snapshot: they get it one
// after the other. The waiting ones remain members, get the reason of the wait and
// all other news, and are members of one group again at the end.
func TestGroupSplitsInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *session.Deps) {
			d.Heartbeat, d.WriteTimeout = 500*time.Millisecond, time.Minute
			d.Snapshots.Size = 1
		}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		var members []*gatewaytest.Exchange
		for range 12 {
			members = append(members, r.get("/v1/events?watch=a&watch=b"))
		}
		for _, x := range members {
			x.Take()
		}
		// All need it at the same time; a slow stream has the only lease.
		slow := &limits.SnapshotClaim{Granted: func() {}}
		r.deps.Snapshots.Ask(slow, 1, 1, true)
		r.Do("a", func(s stream.Sink) error {
			return errors.Join(s.Reset("e2"), gatewaytest.UpsertAll(s, gatewaytest.LargeOnes(100, 7)), s.Commit(7))
		})
		time.Sleep(600 * time.Millisecond)
		r.Commit("b", 2, gatewaytest.Resource("k", 2, `"news"`))
		synctest.Wait()
		if n := unsharedOf(r); n != 0 {
			t.Errorf("%d streams are unshared while all wait", n)
		}
		time.Sleep(5 * time.Second)
		told := 0
		for i, x := range members {
			got := x.Text()
			if strings.Count(got, "event: upsert") != 101 || strings.Count(got, `"reason":"epoch_changed"`) != 1 || strings.Count(got, `"news"`) != 1 {
				t.Errorf("member %d got %.600q", i, got)
			}
			told += strings.Count(got, `"state":"resyncing"`)
		}
		if told == 0 {
			t.Error("no stream was told that it waits")
		}
		if b := r.deps.Snapshots; b.Waiting() != 0 || b.Used != 0 {
			t.Errorf("%d wait, and %d bytes are taken", b.Waiting(), b.Used)
		}
		if n := unsharedOf(r); n != 0 {
			t.Errorf("%d streams are still unshared", n)
		}
	})
}

// unsharedOf returns how many streams are not members of a group.
func unsharedOf(r *rig) (n int) {
	synctest.Wait()
	for _, s := range r.shards.all {
		s.mu.Lock() // it continues only after this
		n += len(s.unshared)
		s.mu.Unlock()
	}
	return n
}

// TestGroupThatAskedBeforeItSplits checks a snapshot that arrives between the check
// for news and the next turn of the group. The group then asks for a lease as a stream
// would, and must still be resumed when its turn has come.
func TestGroupThatAskedBeforeItSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "a")
		s.deps.Snapshots.Size = 1
		s.rig.Prime("a", 1)
		s.open(12, "a")
		s.settle()
		slow := &limits.SnapshotClaim{Granted: func() {}}
		s.deps.Snapshots.Ask(slow, 1, 1, true)
		s.rig.Do("a", func(sink stream.Sink) error {
			return errors.Join(sink.Reset("e2"), gatewaytest.UpsertAll(sink, gatewaytest.LargeOnes(100, 7)), sink.Commit(7))
		})
		synctest.Wait()
		g := s.groups[0]
		g.Turn(g.encoder)
		s.settle()
		if len(g.members) != 12 {
			t.Fatalf("%d of 12 wait", len(g.members))
		}
		select {
		case <-s.p.waker:
		default:
		}
		s.deps.Snapshots.Release(slow)
		select {
		case <-s.p.waker:
		default:
			t.Error("the shard is not told that there is room")
		}
		s.settle()
		if len(s.unshared) > 0 || len(g.members) > 0 {
			t.Errorf("%d are unshared, %d wait", len(s.unshared), len(g.members))
		}
	})
}

// TestSplitGroupKeepsItsHeartbeat checks that a group that must split, but cannot
// begin since there are already very many unshared streams, still gets its
// heartbeats.
func TestSplitGroupKeepsItsHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "a", "b")
		s.rig.Prime("a", 1)
		s.rig.Prime("b", 1)
		members := s.open(12, "a")
		s.settle()
		unshared := s.open(5000, "b")
		s.rig.Do("a", func(sink stream.Sink) error {
			return errors.Join(sink.Reset("e2"), gatewaytest.UpsertAll(sink, gatewaytest.LargeOnes(100, 7)), sink.Commit(7))
		})
		s.turn()
		time.Sleep(s.deps.Heartbeat)
		n := count(s.turn(), members, unshared)
		if len(s.ready) < passMembers || len(s.groups[0].members) != 12 {
			t.Fatalf("%d are ready, %d wait", len(s.ready), len(s.groups[0].members))
		}
		if n != 12 {
			t.Errorf("%d of 12 are sent a heartbeat", n)
		}
		s.settle()
	})
}
