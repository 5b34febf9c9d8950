package shard

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
)

// turnPoller takes all bytes at once, slowly, and records the writes to each handle.
type turnPoller struct {
	countingPoller
	written []turnTaken
}

type turnTaken struct {
	handle epoll.Handle
	bytes  int
}

// writeTakes is how long one write takes.
const writeTakes = 10 * time.Microsecond

func (p *turnPoller) Write(h epoll.Handle, b []byte) (int, error) {
	time.Sleep(writeTakes)
	p.written = append(p.written, turnTaken{h, len(b)})
	return len(b), nil
}

func (p *turnPoller) WriteAll(h epoll.Handle, bs [][]byte, _ bool) (int, error) {
	time.Sleep(writeTakes)
	p.written = append(p.written, turnTaken{h, wire.LengthOf(bs)})
	return wire.LengthOf(bs), nil
}

func (p *turnPoller) Send(h epoll.Handle, f *epoll.File, from int) (int, error) {
	time.Sleep(writeTakes)
	p.written = append(p.written, turnTaken{h, f.Size() - from})
	return f.Size() - from, nil
}

// turns is a shard that a test runs turn by turn.
type turns struct {
	*shard
	t       *testing.T
	p       *turnPoller
	streams epoll.Handle
	rig     *gatewaytest.Watches
}

func newTurns(t *testing.T, watches ...string) *turns {
	t.Helper()
	r := gatewaytest.NewWatches(t, watches...)
	d := gatewaytest.NewDeps(r)
	d.MaxAge, d.Heartbeat = -1, time.Hour
	p := &turnPoller{countingPoller: countingPoller{countingSockets: newCountingSockets(), waker: make(chan struct{}, 1)}}
	s := newShard(d, newMultiplexed(p.countingSockets), newStretches(stretchesBudget, 512))
	s.poll, s.p, s.wheel = p, p, newWheel(time.Now())
	t.Cleanup(s.closeAll)
	return &turns{shard: s, t: t, p: p, rig: r}
}

// open lets n streams of a watch arrive.
func (s *turns) open(n int, watch string) (first epoll.Handle) {
	s.t.Helper()
	return s.openNarrow(n, watch, func(int) string { return "" })
}

// openNarrow is like open, with a prefix for each stream.
func (s *turns) openNarrow(n int, watch string, prefix func(i int) string) (first epoll.Handle) {
	s.t.Helper()
	first = s.streams
	for i := range n {
		req := session.Request{Format: frame.SSE, Watches: []session.Choice{{Name: watch}}}
		c := gatewaytest.OpenNarrow(s.t, s.rig, s.deps, gatewaytest.ClientNumber(int(s.streams)), req, prefix(i))
		l := newUnsharedStream(s.shard, c, s.streams)
		l.Hello(&l.text)
		l.out.seal()
		s.deps.Metrics.StreamOpened(c.Transport())
		s.welcome(l)
		s.streams++
	}
	return first
}

// turn lets the shard serve every stream once, and returns what was written.
func (s *turns) turn() []turnTaken {
	synctest.Wait() // for the watch wakers
	s.p.written = nil
	s.admit()
	s.serve(time.Now())
	return s.p.written
}

// settle serves until no stream has anything left to write.
func (s *turns) settle() {
	s.t.Helper()
	for range 10_000 {
		if len(s.turn()) == 0 && len(s.ready) == 0 {
			return
		}
	}
	s.t.Fatal("there is no end")
}

func count(written []turnTaken, from, to epoll.Handle) (n int) {
	for _, w := range written {
		if w.handle >= from && w.handle < to {
			n++
		}
	}
	return n
}

// TestLongSnapshotsTakeTurns checks that one subscriber, however fast its connection
// is, gets only a limited amount before all others have had their turn.
func TestLongSnapshotsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "a")
		s.rig.Prime("a", 1, gatewaytest.LargeOnes(2000, 1)...)
		s.open(5, "a")
		total := map[epoll.Handle]int{}
		for len(s.ready) > 0 || len(total) == 0 {
			inTurn := map[epoll.Handle]int{}
			for _, w := range s.turn() {
				inTurn[w.handle] += w.bytes
				total[w.handle] += w.bytes
			}
			for h, bytes := range inTurn {
				if bytes > turnBytes+outboxFull+64<<10+8<<10 {
					t.Fatalf("subscriber %d got %d bytes in one turn", h, bytes)
				}
			}
			least, most := total[0], total[0]
			for _, bytes := range total {
				least, most = min(least, bytes), max(most, bytes)
			}
			if len(total) == 5 && most-least > 2*turnBytes {
				t.Fatalf("one got %d bytes more than another", most-least)
			}
		}
		if total[0] < 2000*4<<10 {
			t.Errorf("%d bytes are not the snapshot", total[0])
		}
	})
}

// TestQuietWatchBesideABusyOne checks that the one change of a quiet watch reaches
// its readers after one turn, although the other watch always has more to write.
func TestQuietWatchBesideABusyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "wild", "quiet")
		s.rig.Prime("wild", 1)
		s.rig.Prime("quiet", 1)
		busy, quiet := s.open(3000, "wild"), s.open(10, "quiet")
		s.settle()
		for revision := uint64(2); revision < 50; revision++ {
			s.rig.Commit("wild", revision, gatewaytest.Resource("k", revision, `"`+strings.Repeat("x", 9000)+`"`))
			if revision%10 == 0 {
				s.rig.Commit("quiet", revision, gatewaytest.Resource("k", revision, "1"))
			}
			written := s.turn()
			if n := count(written, busy, quiet); n > passMembers {
				t.Fatalf("%d members of one group were written in one turn", n)
			}
			if n := count(written, quiet, s.streams); revision%10 == 0 && n != 10 {
				t.Fatalf("revision %d: %d of 10 readers of the quiet watch were written", revision, n)
			}
		}
		s.settle()
	})
}

// TestManyUnsharedLeaveTimeForGroups checks that ten thousand unshared streams are
// served a few milliseconds at a time, and that news of a group goes out in between.
func TestManyUnsharedLeaveTimeForGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "a", "b")
		s.rig.Prime("a", 1)
		s.rig.Prime("b", 1)
		members := s.open(10, "a")
		s.settle()
		unshared := s.open(10_000, "b")
		for revision := uint64(2); len(s.ready) > 0; revision++ {
			s.rig.Commit("a", revision, gatewaytest.Resource("k", revision, "1"))
			began := time.Now()
			written := s.turn()
			if n := count(written, members, unshared); n != 10 {
				t.Fatalf("%d of 10 members were written", n)
			}
			if took := time.Since(began); took > unsharedTurn+20*writeTakes {
				t.Fatalf("a turn took %s", took)
			}
		}
	})
}

// TestLargeTransactionIsNotRenderedForAGroup checks that each member reads it from
// the log, in turns.
func TestLargeTransactionIsNotRenderedForAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "a")
		s.rig.Prime("a", 1)
		s.open(600, "a")
		s.settle()
		s.rig.Commit("a", 2, gatewaytest.LargeOnes(500, 2)...) // 2 MiB in one
		bytes := map[epoll.Handle]int{}
		for quiet := 0; quiet < 2; quiet++ {
			for _, w := range s.turn() {
				bytes[w.handle] += w.bytes
				quiet = 0
			}
			for _, g := range s.groups {
				if g != nil && len(g.buffer)+len(g.room.payload) > turnBytes {
					t.Fatalf("a group holds %d bytes", len(g.buffer)+len(g.room.payload))
				}
			}
		}
		for h, n := range bytes {
			if n < 500*4<<10 {
				t.Errorf("subscriber %d got %d bytes", h, n)
			}
		}
		if len(s.unshared) != 0 {
			t.Error(fmt.Sprint(len(s.unshared), " are still unshared"))
		}
	})
}

// TestManyGroupsLeaveTimeForUnshared checks that a stream that begins makes
// progress however long the groups take.
func TestManyGroupsLeaveTimeForUnshared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "wild", "a")
		s.rig.Prime("wild", 1)
		s.rig.Prime("a", 1)
		s.open(3000, "wild")
		s.settle()
		began := s.open(1, "a")
		for revision := uint64(2); revision < 10; revision++ {
			s.rig.Commit("wild", revision, gatewaytest.Resource("k", revision, `"`+strings.Repeat("x", 9000)+`"`))
			if n := count(s.turn(), began, began+1); n > 0 {
				return
			}
		}
		t.Error("it got nothing while others got much")
	})
}

// TestDetachedMemberKeepsItsDrainTime checks that the time at which it must end
// while the gateway drains is not drawn again.
func TestDetachedMemberKeepsItsDrainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns(t, "a")
		s.deps.Admission = limits.New(limits.Limits{}, time.Hour)
		s.rig.Prime("a", 1)
		s.open(20, "a")
		s.settle()
		s.deps.Admission.Drain()
		s.turn()
		time.Sleep(time.Minute) // some have ended by then
		s.turn()
		for at := range s.table.slots {
			c := &s.table.slots[at]
			if c.kind != memberSlot {
				continue
			}
			due := c.due()
			l := s.detachMember(int32(at))
			s.turn()
			if !l.LeaveAt.Equal(due) {
				t.Errorf("the stream in slot %d ends %s after its time", at, l.LeaveAt.Sub(due))
			}
		}
	})
}

// ceaseless is an encoder that takes so long that there is another change after each batch.
type ceaseless struct {
	session.Encoder
	change func()
}

func (e ceaseless) WriteBatch(c *session.Session, id []byte) {
	e.change()
	e.Encoder.WriteBatch(c, id)
}

// TestGroupIsWrittenWhileChangesKeepComing checks that changes that are made as fast as they are
// rendered neither keep a group from being written, nor let what it holds grow.
func TestGroupIsWrittenWhileChangesKeepComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, most = 9000, 10 * groupFull
		s := newTurns(t, "a")
		s.rig.Prime("a", 1)
		s.open(3, "a")
		s.settle()
		revision := uint64(1)
		change := func() {
			if revision*size > most {
				return // there would be no end otherwise
			}
			revision++
			s.rig.Commit("a", revision, gatewaytest.Resource("k", revision, `"`+strings.Repeat("x", size)+`"`))
			synctest.Wait()
		}
		for _, g := range s.groups {
			g.encoder = ceaseless{g.encoder, change}
		}
		change()
		for turns := 0; revision*size <= most; turns++ {
			written := s.turn()
			if n := count(written, 0, s.streams); n != 3 {
				t.Fatalf("turn %d: %d of 3 are written", turns, n)
			}
			if n := written[0].bytes; n > groupFull+2*size {
				t.Fatalf("turn %d: %d bytes were rendered before they were written", turns, n)
			}
		}
		s.settle()
	})
}
