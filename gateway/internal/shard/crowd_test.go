package shard

import (
	"bytes"
	"errors"
	"fmt"
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

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream/watch"
)

// countingSockets simulate very many connections that take all bytes at once, and
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

func (s *countingSockets) NewPoller() (epoll.Poller, error) {
	return &countingPoller{countingSockets: s, waker: make(chan struct{}, 1)}, nil
}

func (s *countingSockets) Take(net.Conn) (epoll.Handle, error) {
	return 0, errors.New("not a connection")
}
func (s *countingSockets) Close(epoll.Handle) {}

type countingPoller struct {
	*countingSockets
	waker chan struct{}
}

func (p *countingPoller) Write(_ epoll.Handle, b []byte) (int, error) {
	if marker := p.marker.Load(); marker != nil && !bytes.Contains(b, *marker) {
		return len(b), nil
	}
	if p.missing.Add(-1) == 0 {
		p.done <- struct{}{}
	}
	return len(b), nil
}

func (p *countingPoller) WriteAll(h epoll.Handle, bs [][]byte, _ bool) (int, error) {
	return p.Write(h, bytes.Join(bs, nil))
}

func (p *countingPoller) Send(h epoll.Handle, f *epoll.File, from int) (int, error) {
	b := make([]byte, f.Size()-from)
	if _, err := f.ReadAt(b, int64(from)); err != nil {
		return 0, err
	}
	return p.Write(h, b)
}

func (p *countingPoller) Ring() {
	select {
	case p.waker <- struct{}{}:
	default:
	}
}

func (p *countingPoller) Wait(dst []epoll.Notice, timeout time.Duration) ([]epoll.Notice, error) {
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

func (p *countingPoller) Watch(epoll.Handle, uint64) error       { return nil }
func (p *countingPoller) Await(epoll.Handle, uint64, bool) error { return nil }
func (p *countingPoller) Finish(epoll.Handle, uint64) error      { return nil }
func (p *countingPoller) Discard(epoll.Handle) bool              { return true }
func (p *countingPoller) Shut()                                  {}

// crowd is very many subscribers of some watches, in one shard.
type crowd struct {
	*gatewaytest.Watches
	deps     *session.Deps
	shards   *Pump
	sockets  *countingSockets
	names    []session.Choice
	size     int
	revision uint64
	close    func() // once, at the end of the test at the latest
}

// newCrowd opens the streams, and waits until all have their snapshots.
func newCrowd(tb testing.TB, size, watches int) *crowd {
	tb.Helper()
	c := &crowd{Watches: gatewaytest.NewWatches(tb), sockets: newCountingSockets(), size: size, revision: 1}
	for i := range watches {
		name := fmt.Sprint("watch-", i)
		c.Add(watch.Config{Name: name})
		c.Prime(name, 1)
		c.names = append(c.names, session.Choice{Name: name})
	}
	c.deps = gatewaytest.NewDeps(c.Watches)
	c.shards = New(c.deps, c.sockets, 1, nil)
	c.close = sync.OnceFunc(func() {
		c.shards.Abort()
		c.Registry.Close()
		for c.deps.Admission.Count() > 0 {
			runtime.Gosched()
		}
	})
	tb.Cleanup(c.close)
	c.open(tb)
	return c
}

func (c *crowd) open(tb testing.TB) {
	c.sockets.expect(c.size, []byte(`"watch":"watch-0","revision":"1","count":0`))
	for i := range c.size {
		c.arrive(tb, i, session.Request{Format: frame.SSE, Watches: c.names})
	}
	<-c.sockets.done
	c.change(nil)
}

// arrive opens one stream.
func (c *crowd) arrive(tb testing.TB, i int, req session.Request) {
	c.arriveNarrow(tb, i, req, "")
}

// arriveNarrow opens one stream of a watch, narrowed to the keys with a prefix.
func (c *crowd) arriveNarrow(tb testing.TB, i int, req session.Request, prefix string) {
	client := gatewaytest.ClientNumber(i)
	one := gatewaytest.OpenNarrow(tb, c.Watches, c.deps, client, req, prefix)
	one.Identity = c.deps.Subscribers.Enter(netip.AddrPortFrom(netip.AddrFrom16(client), 1), "crowd/1", nil)
	if err := c.shards.arrive(epoll.Handle(i), nil, one); err != nil {
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

// TestCrowdMemory checks that a subscriber that is up to date costs a shard less
// than 200 bytes, with one watch or three, and no goroutine.
func TestCrowdMemory(t *testing.T) {
	for _, watches := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			few, many := gatewaytest.Length(5000, 1000), gatewaytest.Length(50_000, 7000) // which fill their tables well
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

// crowdBytes returns the memory and the goroutines of a gateway with that many
// up-to-date subscribers.
func crowdBytes(t *testing.T, size, watches int) (bytes, goroutines int) {
	t.Helper()
	c := newCrowd(t, size, watches)
	c.change([]byte(`"revision":"3"`))
	synctest.Wait()
	defer c.close()
	// An empty map does not show how much memory it keeps.
	if room := c.shards.all[0].most; room >= rushSize {
		t.Errorf("the room of the %d streams that arrived at once is kept", room)
	}
	return reachable(c.shards, c.deps.Admission, c.deps.Subscribers), gatewaytest.GoroutinesIn(gatewaytest.GatewayCode)
}

// reachable returns how many bytes can be reached from the fields of some values, in
// types of the gateway. Unlike heap statistics, it does not depend on the rest of the
// process. Memory held by a function value or an interface of another package is not
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
