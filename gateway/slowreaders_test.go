package gateway

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// slowReaders is a watch of n resources under a ceiling, which are rewritten in turn,
// and clients that stop reading during a snapshot.
type slowReaders struct {
	*rig
	n        int
	value    string
	revision uint64
	clients  []*rawConn
}

func newSlowReaders(t *testing.T, ceiling int64, n, size int, c Config) *slowReaders {
	r := &slowReaders{rig: newRig(t, c), n: n, value: `"` + strings.Repeat("x", size) + `"`, revision: uint64(n)}
	r.Add(watch.Config{Name: "a", Memory: memory.NewCeiling(ceiling)})
	var all []stream.Resource
	for i := range n {
		all = append(all, r.resource(i, uint64(i+1)))
	}
	r.Prime("a", r.revision, all...)
	return r
}

func (r *slowReaders) resource(i int, revision uint64) stream.Resource {
	return gatewaytest.Resource(fmt.Sprintf("k%05d", i), revision, r.value)
}

// rewrite changes each resource in a transaction of its own.
func (r *slowReaders) rewrite() {
	for i := range r.n {
		r.revision++
		r.Commit("a", r.revision, r.resource(i, r.revision))
	}
}

// begin opens a stream, and reads its reset.
func (r *slowReaders) begin(request string) {
	r.t.Helper()
	c := r.dial(request)
	for line := ""; !strings.Contains(line, `"type":"reset"`); {
		var err error
		if line, err = c.ReadString('\n'); err != nil {
			r.t.Fatal(err)
		}
	}
	r.clients = append(r.clients, c)
	synctest.Wait()
}

// superseded returns the value of the metric of that name.
func (r *slowReaders) superseded() float64 {
	families, err := r.gateway.metrics.Registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "watchtide_watch_superseded_bytes" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// finish reads to the end of the snapshot, and checks it. It reports whether the
// client continued with a newer state.
func (r *slowReaders) finish(c *rawConn) (renewed bool) {
	r.t.Helper()
	state := map[string]uint64{}
	for {
		line, err := c.ReadString('\n')
		if err != nil {
			r.t.Fatal(err)
		}
		text, ok := strings.CutPrefix(line, "data: ")
		if !ok && !strings.HasPrefix(line, "{") {
			continue
		}
		var e struct {
			Type, Key, Revision, State string
			Count                      int
			Resumed                    bool
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			continue // a chunk ends here
		}
		revision, _ := strconv.ParseUint(e.Revision, 10, 64)
		switch e.Type {
		case "upsert":
			state[e.Key] = revision
		case "status":
			renewed = renewed || e.State == "catching_up"
		case "end_of_snapshot":
			if e.Resumed != renewed || e.Count != r.n {
				r.t.Errorf("catching_up %t: %s", renewed, line)
			}
			r.check(state, revision)
			return renewed
		}
	}
}

// check compares a state with the expected one at a revision.
func (r *slowReaders) check(state map[string]uint64, at uint64) {
	r.t.Helper()
	n := uint64(r.n)
	for i := range n {
		key := fmt.Sprintf("k%05d", i)
		if want := (at-i-1)/n*n + i + 1; state[key] != want {
			r.t.Fatalf("%s as of %d at %d, want %d", key, state[key], at, want)
		}
	}
}

// TestSlowReadersStayWithinTheCeiling checks that clients that stop reading during a
// snapshot, each in another state of the watch, hold little, and that they reach the
// end of the snapshot when they continue.
func TestSlowReadersStayWithinTheCeiling(t *testing.T) {
	const ceiling, n, size = 8 << 20, 300, 8000
	readers := gatewaytest.Length(20, 8)
	for name, request := range map[string]string{
		"sse":    rawGet("/v1/events?watch=a"),
		"ndjson": rawGet("/v1/events?watch=a&format=ndjson"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newSlowReaders(t, ceiling, n, size, Config{StreamSettings: StreamSettings{WriteTimeout: time.Hour}})
				before := heapInUse()
				for range readers {
					r.begin(request)
					r.rewrite()
				}
				synctest.Wait()
				used := heapInUse() - before
				t.Logf("%d readers hold %.1f MiB", readers, float64(used)/(1<<20))
				if most := int64(ceiling + readers*256<<10); used > most {
					t.Errorf("%d readers hold %d MiB under a ceiling of %d MiB", readers, used>>20, ceiling>>20)
				}
				if got := r.superseded(); got == 0 || got > ceiling {
					t.Errorf("watchtide_watch_superseded_bytes is %v", got)
				}
				for _, c := range r.clients[:3] {
					if !r.finish(c) {
						t.Error("it did not continue with a newer state")
					}
				}
			})
		})
	}
}
