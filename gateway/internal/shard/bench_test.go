package shard

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
)

// BenchmarkPass measures one chunk that is written to all members of a group: the
// overhead of a shard over the system calls.
func BenchmarkPass(b *testing.B) {
	const members = 10_000
	sockets := newCountingSockets()
	p, err := sockets.NewPoller()
	if err != nil {
		b.Fatal(err)
	}
	s := newShard(nil, newMultiplexed(sockets), newStretches(stretchesBudget, 512))
	s.p = p
	g := &group{room: s.room}
	for range members {
		g.enroll(&s.table, s.table.add(0, limits.Ref{}))
	}
	event := bytes.Repeat([]byte("x"), 300)
	b.ReportAllocs()
	for b.Loop() {
		g.Write(event)
		g.seal()
		sockets.expect(members+1, nil) // nothing waits for the last
		for g.behind > 0 {
			s.pass(g)
		}
	}
	if left := sockets.missing.Load(); left != 1 {
		b.Fatalf("%d of %d members were not written to", left-1, members)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/members, "ns/member")
}

// BenchmarkWheel measures a deadline that is added, found due and put off again, like
// that of a stream that continues. 100,000 others wait.
func BenchmarkWheel(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	w := newWheel(now)
	const waiting = 100_000
	for i := range waiting {
		w.add(uint64(i), now.Add(time.Duration(i)*time.Minute/waiting))
	}
	var keys []uint64
	looked := 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(wheelTick)
		keys = w.due(keys[:0], now)
		for _, key := range keys {
			w.add(key, now.Add(time.Minute))
		}
		looked += len(keys)
	}
	if w.waiting != waiting {
		b.Fatalf("%d wait, want %d", w.waiting, waiting)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(looked, 1)), "ns/deadline")
}

// BenchmarkOutbox measures the output of one stream: it is added to the outbox,
// becomes a chunk, and is written.
func BenchmarkOutbox(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"event", 300}, {"batch", 64 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			var o outbox
			said := bytes.Repeat([]byte("x"), c.size)
			b.ReportAllocs()
			for b.Loop() {
				o.Write(said)
				o.seal()
				o.sent(wire.LengthOf(o.slices))
			}
			if !o.empty() {
				b.Fatal("something is left")
			}
		})
	}
}

// BenchmarkTable measures adding, finding and removing one connection among
// 100,000.
func BenchmarkTable(b *testing.B) {
	var t table
	for range 100_000 {
		t.add(0, limits.Ref{})
	}
	b.ReportAllocs()
	for b.Loop() {
		at := t.add(7, limits.Ref{})
		if found, there := t.find(t.key(at)); !there || found != at {
			b.Fatalf("%d is found as %d", at, found)
		}
		t.remove(at)
	}
}

// BenchmarkManyPrefixes measures a wake-up of a shard with 5,000 streams of a watch
// that each have a prefix: without news for them, and with a commit that concerns
// none of them.
func BenchmarkManyPrefixes(b *testing.B) {
	const narrow = 5000
	c := newCrowd(b, 1, 1)
	s := c.shards.all[0]
	for i := range narrow {
		c.arriveNarrow(b, i+1, session.Request{Format: frame.SSE, Watches: []session.Choice{{Name: "watch-0"}}}, fmt.Sprint(i, "/"))
	}
	for groups := 0; groups <= narrow; runtime.Gosched() {
		s.ask(func() { groups = len(s.named) })
	}
	b.Run("wake-up", func(b *testing.B) {
		s.ask(func() {
			for b.Loop() {
				s.serve(time.Now())
				s.patience()
			}
		})
	})
	b.Run("commit", func(b *testing.B) {
		b.ReportAllocs()
		s.ask(func() {
			for b.Loop() {
				c.revision++
				c.Commit("watch-0", c.revision)
				for seen := false; !seen; runtime.Gosched() {
					s.serve(time.Now())
					position, _ := s.groups[0].Follows[0].Sub.Position()
					seen = position.Upserts == c.revision
				}
			}
		})
	})
}
