package shard

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/conversation"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/poll"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/stream/watch"
)

// countingSockets simulate very many connections that take everything at once: they
// count writes.
type countingSockets struct {
	marker  atomic.Pointer[[]byte] // only writes that contain it count; nil: all
	missing atomic.Int64           // writes until done is signalled
	done    chan struct{}
}

func newCountingSockets() *countingSockets { return &countingSockets{done: make(chan struct{}, 1)} }

// expect counts writes from now on, and signals done after that many.
func (s *countingSockets) expect(writes int, marker []byte) {
	if marker == nil {
		s.marker.Store(nil)
	} else {
		s.marker.Store(&marker)
	}
	s.missing.Store(int64(writes))
}

func (s *countingSockets) NewPoller() (poll.Poller, error) {
	return &countingPoller{countingSockets: s, waker: make(chan struct{}, 1)}, nil
}

func (s *countingSockets) Take(net.Conn) (poll.Handle, error) {
	return 0, errors.New("not a connection")
}
func (s *countingSockets) Close(poll.Handle) {}

type countingPoller struct {
	*countingSockets
	waker chan struct{}
}

func (p *countingPoller) Write(_ poll.Handle, b []byte) (int, error) {
	if marker := p.marker.Load(); marker != nil && !bytes.Contains(b, *marker) {
		return len(b), nil
	}
	if p.missing.Add(-1) == 0 {
		p.done <- struct{}{}
	}
	return len(b), nil
}

func (p *countingPoller) WriteAll(h poll.Handle, bs [][]byte) (int, error) {
	return p.Write(h, bytes.Join(bs, nil))
}

func (p *countingPoller) Ring() {
	select {
	case p.waker <- struct{}{}:
	default:
	}
}

func (p *countingPoller) Wait(dst []poll.Notice, timeout time.Duration) ([]poll.Notice, error) {
	var after <-chan time.Time
	switch {
	case timeout == 0:
		return dst, nil
	case timeout > 0:
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-p.waker:
	case <-after:
	}
	return dst, nil
}

func (p *countingPoller) Watch(poll.Handle, uint64) error       { return nil }
func (p *countingPoller) Await(poll.Handle, uint64, bool) error { return nil }
func (p *countingPoller) Finish(poll.Handle, uint64) error      { return nil }
func (p *countingPoller) Discard(poll.Handle) bool              { return true }
func (p *countingPoller) Shut()                                 {}

// crowd is very many subscribers of some watches, in one shard.
type crowd struct {
	*gatewaytest.Watches
	deps     *conversation.Deps
	shards   *Pump
	sockets  *countingSockets
	names    []conversation.Choice
	size     int
	revision uint64
}

// newCrowd opens the streams, and waits until all have their snapshots.
func newCrowd(tb testing.TB, size, watches int) *crowd {
	tb.Helper()
	c := &crowd{Watches: gatewaytest.NewWatches(tb), sockets: newCountingSockets(), size: size, revision: 1}
	for i := range watches {
		name := fmt.Sprint("watch-", i)
		c.Add(watch.Config{Name: name})
		c.Prime(name, 1)
		c.names = append(c.names, conversation.Choice{Name: name})
	}
	c.deps = gatewaytest.NewDeps(c.Watches)
	c.shards = New(c.deps, c.sockets, 1, nil)
	tb.Cleanup(func() {
		c.shards.Abort()
		for c.deps.Admission.Count() > 0 {
			runtime.Gosched()
		}
	})
	c.open(tb)
	return c
}

func (c *crowd) open(tb testing.TB) {
	c.sockets.expect(c.size, []byte(`"watch":"watch-0","revision":"1","count":0`))
	for i := range c.size {
		c.arrive(tb, i, conversation.Request{Format: wire.SSE, Watches: c.names})
	}
	<-c.sockets.done
	c.change(nil)
}

// arrive opens one stream.
func (c *crowd) arrive(tb testing.TB, i int, req conversation.Request) {
	client := gatewaytest.ClientNumber(i)
	one := gatewaytest.Open(tb, c.Watches, c.deps, client, req)
	one.Identity = c.deps.Subscribers.Enter(netip.AddrPortFrom(netip.AddrFrom16(client), 1), "crowd/1")
	if err := c.shards.arrive(poll.Handle(i), nil, one); err != nil {
		tb.Fatal(err)
	}
}

// change makes one change of one watch, and waits until it was written to all, with
// one write each.
func (c *crowd) change(marker []byte) {
	c.revision++
	c.sockets.expect(c.size, marker)
	c.Commit("watch-0", c.revision, gatewaytest.Resource("key", c.revision, `"a value"`))
	<-c.sockets.done
}

// TestCrowdMemory checks that a subscriber that has everything costs a shard less
// than 200 bytes, with one watch or three.
func TestCrowdMemory(t *testing.T) {
	for _, watches := range []int{1, 3} {
		const size = 50_000
		before := liveBytes()
		c := newCrowd(t, size, watches)
		c.change([]byte(`"revision":"3"`))
		if each := (liveBytes() - before) / size; each > 200 {
			t.Errorf("%d watches: %d bytes for each subscriber: want 200 at most", watches, each)
		}
	}
}

// liveBytes returns the memory in use by the heap and by stacks.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC() // the second collection sweeps the garbage that the first one found
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkCrowd measures one change that is written to a million subscribers, and
// the memory of each of them.
func BenchmarkCrowd(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			before := liveBytes()
			c := newCrowd(b, size, 1)
			each := float64(liveBytes()-before) / float64(size)
			for b.Loop() {
				c.change(nil)
			}
			b.ReportMetric(each, "B/subscriber")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/subscriber")
		})
	}
}
