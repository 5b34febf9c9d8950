package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/watchtide/watchtide/stream"
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
	gateway  *Gateway
	sockets  *countingSockets
	watches  []*watch.Watch
	sources  []*gatewaytest.Script
	size     int
	revision uint64
}

// newCrowd opens the streams, and waits until all have their snapshots.
func newCrowd(tb testing.TB, size, watches int) *crowd {
	tb.Helper()
	registry := watch.NewRegistry()
	c := &crowd{sockets: newCountingSockets(), size: size, revision: 1}
	for i := range watches {
		c.add(tb, registry, fmt.Sprint("watch-", i))
	}
	var err error
	if c.gateway, err = New(Config{Registry: registry, DrainDelay: -1, Drain: -1, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		tb.Fatal(err)
	}
	c.gateway.shards = newShards(c.gateway.deps, c.sockets, 1, nil)
	tb.Cleanup(func() {
		c.gateway.shards.abort()
		registry.Close()
		for c.gateway.admission.Count() > 0 {
			runtime.Gosched()
		}
	})
	c.open()
	return c
}

func (c *crowd) add(tb testing.TB, registry *watch.Registry, name string) {
	source := gatewaytest.NewScript()
	w, err := registry.Add(watch.Config{Name: name, Source: source, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	source.Steps <- func(s stream.Sink) error { return errors.Join(s.Reset("e1"), s.Commit(1)) }
	if err := w.Prime(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	c.watches, c.sources = append(c.watches, w), append(c.sources, source)
}

func (c *crowd) open() {
	req := conversation.Request{Format: wire.SSE}
	for _, w := range c.watches {
		req.Watches = append(req.Watches, conversation.Choice{Name: w.Name()})
	}
	c.sockets.expect(c.size, []byte(`"watch":"watch-0","revision":"1","count":0`))
	for i := range c.size {
		one := conversation.New(c.gateway.deps, req, c.watches)
		one.AdmissionRef, _ = c.gateway.deps.Admit(gatewaytest.ClientNumber(i), c.watches...)
		one.Identity = c.gateway.subscribers.Enter(netip.AddrPortFrom(netip.AddrFrom16(gatewaytest.ClientNumber(i)), 1), "crowd/1")
		c.gateway.shards.arrive(poll.Handle(i), nil, one)
	}
	<-c.sockets.done
	c.change(nil)
}

// change makes one change of one watch, and waits until it was written to all, with
// one write each.
func (c *crowd) change(marker []byte) {
	c.revision++
	c.sockets.expect(c.size, marker)
	revision := c.revision
	c.sources[0].Steps <- func(s stream.Sink) error {
		return errors.Join(s.Upsert(gatewaytest.Resource("key", revision, `"a value"`)), s.Commit(revision))
	}
	<-c.sockets.done
}

// TestCrowdMemory checks that a subscriber that has everything costs a shard less
// than 200 bytes, with one watch or three.
func TestCrowdMemory(t *testing.T) {
	onShards(t)
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
	onShards(b)
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
