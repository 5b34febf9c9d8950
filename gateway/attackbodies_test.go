package gateway

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// heap returns how many bytes of the heap are in use or not yet collected.
func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// addStore adds a watch of the embedded store.
func (r *rig) addStore(name string, c store.Config) {
	r.t.Helper()
	s := store.New(c)
	w, err := r.Registry.Add(watch.Config{Name: name, SourceName: "embedded", Source: s.Source(name), Writer: s.Writer(name)})
	if err == nil {
		err = w.Prime(r.t.Context())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func announcedPut(key string, size int) string {
	return announced("PUT", "/v1/watches/drafts/resources/"+key, fmt.Sprintf("Content-Length: %d", size))
}

// TestAttackTooLargeBodies checks that a body that is too large for the source is
// refused as soon as it is announced.
func TestAttackTooLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.addStore("drafts", store.Config{MaxValueBytes: 1 << 20})
		before := heap()
		for i := range 128 {
			res, body, took := r.dial(announcedPut(fmt.Sprint(i), authz.MaxValue)).answer(t)
			if res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close || took != 0 || !strings.Contains(body, "the limit is 1048576") {
				t.Fatalf("16 MiB, announced for a store of 1 MiB: %s after %s: %s", res.Status, took, body)
			}
		}
		if grown := heap() - before; grown > 32<<20 {
			t.Errorf("128 bodies that were refused took %d MiB", grown>>20)
		}
	})
}

// TestAttackTrickledBodies checks that bodies that arrive slowly share a budget, of
// which one client has a quarter, and that each has its deadline.
func TestAttackTrickledBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 256 << 10
		r := newRig(t, Config{HTTPSettings: HTTPSettings{BodyBudget: 16 * size}})
		r.addStore("drafts", store.Config{})
		before := heap()
		var held []*rawConn
		var trickled sync.WaitGroup
		refused := 0
		for i := range 128 {
			c := r.dial(announcedPut(fmt.Sprint(i), size))
			synctest.Wait()
			if taken, _ := r.gateway.now.Load().unary.Bodies.Bytes.Now(); taken == int64(len(held)+1)*size {
				held = append(held, c)
				trickled.Go(func() { trickle(c) })
				continue
			}
			res, body, took := c.answer(t)
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !res.Close || took != 0 {
				t.Fatalf("a body beyond the budget: %s after %s: %s", res.Status, took, body)
			}
			refused++
		}
		if len(held) != 4 || counter(t, r.gateway, metrics.Namespace+"budget_refusals_total", "budget", "bodies") != float64(refused) {
			t.Errorf("%d bodies are being read, of four at most; %d were refused", len(held), refused)
		}
		for _, c := range held {
			if res, _, took := c.answer(t); res.StatusCode != http.StatusRequestTimeout || took > unary.BodyTimeout {
				t.Errorf("a trickled body: %s after %s", res.Status, took)
			}
			c.Close()
		}
		trickled.Wait()
		synctest.Wait()
		if taken, _ := r.gateway.now.Load().unary.Bodies.Bytes.Now(); taken != 0 {
			t.Errorf("%d bytes of the budget are still taken", taken)
		}
		if grown := heap() - before; grown > 64<<20 {
			t.Errorf("trickled bodies took %d MiB", grown>>20)
		}
	})
}

// trickle sends a byte per second while the peer reads them.
func trickle(c io.Writer) {
	for {
		time.Sleep(time.Second)
		if _, err := c.Write([]byte(" ")); err != nil {
			return
		}
	}
}

// TestBodyBudgetIsReleased checks that the budget is released however a write
// ends.
func TestBodyBudgetIsReleased(t *testing.T) {
	r := newAPIRig(t, Config{HTTPSettings: HTTPSettings{BodyBudget: 1 << 20}})
	r.addStore("drafts")
	const path = "/v1/watches/drafts/resources/k"
	for _, body := range []string{`{"n":1}`, "no JSON", "", "\xff", `"` + strings.Repeat("x", 200<<10) + `"`} {
		r.send("PUT", path, body)
		// The end of a long answer may arrive before its handler returns.
		for deadline := time.Now().Add(10 * time.Second); ; <-time.After(time.Millisecond) {
			taken, _ := r.gateway.now.Load().unary.Bodies.Bytes.Now()
			if taken == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%.10q: %d bytes of the budget are still taken", body, taken)
			}
		}
	}
}
