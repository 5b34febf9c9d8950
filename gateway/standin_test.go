package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"net"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/watchtide/watchtide/gateway/internal/conversation"
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

func (s *countingSockets) newPoller() (poller, error) {
	return &countingPoller{countingSockets: s, waker: make(chan struct{}, 1)}, nil
}

func (s *countingSockets) take(net.Conn) (handle, error) { return 0, errors.New("not a connection") }
func (s *countingSockets) close(handle)                  {}

type countingPoller struct {
	*countingSockets
	waker chan struct{}
}

func (p *countingPoller) write(_ handle, b []byte) (int, error) {
	if marker := p.marker.Load(); marker != nil && !bytes.Contains(b, *marker) {
		return len(b), nil
	}
	if p.missing.Add(-1) == 0 {
		p.done <- struct{}{}
	}
	return len(b), nil
}

func (p *countingPoller) writeAll(h handle, bs [][]byte) (int, error) {
	return p.write(h, bytes.Join(bs, nil))
}

func (p *countingPoller) ring() {
	select {
	case p.waker <- struct{}{}:
	default:
	}
}

func (p *countingPoller) wait(dst []notice, timeout time.Duration) ([]notice, error) {
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

func (p *countingPoller) watch(handle, uint64) error       { return nil }
func (p *countingPoller) await(handle, uint64, bool) error { return nil }
func (p *countingPoller) finish(handle, uint64) error      { return nil }
func (p *countingPoller) discard(handle) bool              { return true }
func (p *countingPoller) shut()                            {}

// crowd is very many subscribers of some watches, in one shard.
type crowd struct {
	gateway  *Gateway
	sockets  *countingSockets
	watches  []*watch.Watch
	sources  []*script
	size     int
	revision uint64
	close    func() // once, at the end of the test at the latest
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
	c.close = sync.OnceFunc(func() {
		c.gateway.shards.abort()
		registry.Close()
		for c.gateway.admission.Count() > 0 {
			runtime.Gosched()
		}
	})
	tb.Cleanup(c.close)
	c.open()
	return c
}

func (c *crowd) add(tb testing.TB, registry *watch.Registry, name string) {
	source := &script{steps: make(chan func(stream.Sink) error)}
	w, err := registry.Add(watch.Config{Name: name, Source: source, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	source.steps <- func(s stream.Sink) error { return errors.Join(s.Reset("e1"), s.Commit(1)) }
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
		one.AdmissionRef, _ = c.gateway.deps.Admit(clientNumber(i), c.watches...)
		one.Identity = c.gateway.subscribers.Enter(netip.AddrPortFrom(netip.AddrFrom16(clientNumber(i)), 1), "crowd/1")
		c.gateway.shards.arrive(handle(i), nil, one)
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
	c.sources[0].steps <- func(s stream.Sink) error {
		return errors.Join(s.Upsert(resource("key", revision, `"a value"`)), s.Commit(revision))
	}
	<-c.sockets.done
}

// TestCrowdMemory checks that a subscriber that has everything costs a shard less
// than 200 bytes, with one watch or three, and no goroutine.
func TestCrowdMemory(t *testing.T) {
	onShards(t)
	for _, watches := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			few, many := length(5000, 1000), length(50_000, 7000) // which fill their tables well
			less, goroutines := crowdBytes(t, few, watches)
			more, later := crowdBytes(t, many, watches)
			each := (more - less) / (many - few)
			t.Logf("%d watches: %d bytes for each subscriber", watches, each)
			if each < int(unsafe.Sizeof(slot{})) || each > 200 {
				t.Errorf("%d watches: %d bytes for each subscriber: want 200 at most, and more than its slot", watches, each)
			}
			if goroutines != later {
				t.Errorf("%d watches: %d goroutines with %d subscribers, %d with %d", watches, goroutines, few, later, many)
			}
		})
	}
}

// crowdBytes returns the memory and the goroutines of a gateway with so many
// subscribers that have everything.
func crowdBytes(t *testing.T, size, watches int) (bytes, goroutines int) {
	t.Helper()
	c := newCrowd(t, size, watches)
	c.change([]byte(`"revision":"3"`))
	synctest.Wait()
	defer c.close()
	// A map that is empty does not say how much room it has.
	if room := c.gateway.shards.all[0].most; room >= rushSize {
		t.Errorf("the room of the %d streams that arrived at once is kept", room)
	}
	return reachable(c.gateway.shards, c.gateway.admission, c.gateway.subscribers), goroutinesIn(gatewayCode)
}

// reachable returns how many bytes can be reached from the fields of some values, in
// types of the gateway. Unlike a figure of the heap it does not depend on what else the
// process does. What a function value or an interface of another package holds is not
// counted.
func reachable(roots ...any) int {
	w := walk{seen: map[unsafe.Pointer]bool{}}
	for _, root := range roots {
		w.value(reflect.ValueOf(root))
	}
	return w.bytes
}

type walk struct {
	seen  map[unsafe.Pointer]bool
	bytes int
}

// value adds what v refers to. The memory of v itself is that of its holder.
func (w *walk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || w.seen[v.UnsafePointer()] || !ofGateway(v.Type().Elem()) {
			return
		}
		w.seen[v.UnsafePointer()] = true
		w.bytes += int(v.Type().Elem().Size())
		w.value(v.Elem())
	case reflect.Interface:
		w.value(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			w.value(v.Field(i))
		}
	case reflect.Slice:
		if v.Cap() == 0 || w.seen[v.UnsafePointer()] {
			return
		}
		w.seen[v.UnsafePointer()] = true
		w.bytes += v.Cap() * int(v.Type().Elem().Size())
		w.elements(v)
	case reflect.Array:
		w.elements(v)
	case reflect.Map:
		// A table is a power of two, and at most seven eighths of it are used.
		if slots := v.Len() * 8 / 7; slots > 0 {
			w.bytes += 1 << bits.Len(uint(slots)) * (int(v.Type().Key().Size()) + int(v.Type().Elem().Size()) + 1)
		}
		for entries := v.MapRange(); entries.Next(); {
			w.value(entries.Key())
			w.value(entries.Value())
		}
	case reflect.String:
		w.bytes += v.Len()
	}
}

func (w *walk) elements(v reflect.Value) {
	if !refers(v.Type().Elem()) {
		return
	}
	for i := range v.Len() {
		w.value(v.Index(i))
	}
}

// refers reports whether a value of the type can refer to memory.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if refers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Array:
		return refers(t.Elem())
	default:
		return t.Kind() > reflect.Complex128
	}
}

// ofGateway reports whether the type is one of the gateway's packages, or has no name.
func ofGateway(t reflect.Type) bool {
	return t.PkgPath() == "" || strings.HasPrefix(t.PkgPath(), "github.com/watchtide/watchtide/gateway")
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
