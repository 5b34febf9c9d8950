package shard

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/internal/frame"
)

// failOnce makes one call of a poller panic: the first one with that name whose bytes
// contain bytesWith.
func failOnce(r *rig, call, bytesWith string) (failed *atomic.Bool) {
	failed = new(atomic.Bool)
	r.sockets.Intercept(func(name string, p []byte) {
		if name == call && bytes.Contains(p, []byte(bytesWith)) && failed.CompareAndSwap(false, true) {
			panic("a fault of the test")
		}
	})
	return failed
}

// TestPanicOfAShard checks that a panic, wherever it happens, ends the streams of
// that shard and no others. Nothing remains of them, and the shard carries streams
// again.
func TestPanicOfAShard(t *testing.T) {
	for _, at := range []struct{ name, call, with string }{
		{"write to a member", "write", "poison"},
		{"write to one that ends", "write", "goodbye"},
		{"write of hello", "write", "HTTP/1.1 200"},
		{"arrival", "watch", ""},
		{"wait", "wait", ""},
		{"wait for room", "await", ""},
		{"end", "finish", ""},
	} {
		t.Run(at.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testPanicOfAShard(t, at.call, at.with) })
		})
	}
}

func testPanicOfAShard(t *testing.T, call, with string) {
	var logged bytes.Buffer
	r := newRig(t, func(d *session.Deps) {
		d.Log, d.MaxAge = slog.New(slog.NewTextHandler(&logged, nil)), time.Hour
	}, "a", "b")
	r.Prime("a", 1)
	r.Prime("b", 1)
	var all []*gatewaytest.Exchange
	for range 10 {
		all = append(all, r.get("/v1/events?watch=a"), r.get("/v1/events?watch=b&prefix=x"))
	}
	for _, x := range all {
		x.Take()
	}
	failed := failOnce(r, call, with)
	newcomer := make(chan error, 1)
	go func() { newcomer <- openUntilSilent(r, "/v1/events?watch=b") }() // may hit the fault
	// More than a connection takes at once, so that there is no room for the rest.
	r.Commit("a", 2, gatewaytest.Resource("k", 2, `"poison`+strings.Repeat("x", 1<<10)+`"`))
	synctest.Wait()
	if !failed.Load() {
		time.Sleep(2 * time.Hour) // they end because of their age
		synctest.Wait()
	}
	if err := <-newcomer; err != nil && !strings.Contains(err.Error(), "EOF") {
		t.Error(err)
	}
	if !failed.Load() {
		t.Fatal("the fault was not met")
	}
	cut, open := 0, 0
	for i, x := range all {
		over, err := x.Over()
		switch {
		case over && err != nil:
			cut++
		case !over:
			open++
			if i%2 == 0 && !strings.Contains(x.Text(), "poison") {
				t.Errorf("stream %d of another shard got %q", i, x.Text())
			}
		}
	}
	if cut == 0 || cut > len(all)/2 {
		t.Errorf("%d of %d streams were cut: want those of one of two shards", cut, len(all))
	}
	wantOpen(t, r, open)
	if text := logged.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "a fault of the test") || !strings.Contains(text, "shard.go") {
		t.Errorf("logged %q", text)
	}
	// Both shards continue.
	var again []*gatewaytest.Exchange
	for range 4 {
		again = append(again, r.get("/v1/events?watch=a"))
	}
	r.Commit("a", 3, gatewaytest.Resource("k", 3, `"later"`))
	for _, x := range again {
		if !strings.Contains(x.Text(), `"later"`) {
			t.Errorf("a stream that came later got %q", x.Text())
		}
	}
	wantOpen(t, r, open+len(again))
}

// openUntilSilent opens a stream, and reads until it ends or has been silent
// for long.
func openUntilSilent(r *rig, path string) error {
	res, err := r.client.Get("http://gateway" + path)
	if err != nil {
		return err
	}
	time.AfterFunc(time.Second, func() { res.Body.Close() })
	for p := make([]byte, 512); err == nil; {
		_, err = res.Body.Read(p)
	}
	if err == http.ErrBodyReadAfterClose || strings.Contains(err.Error(), "closed") {
		return nil
	}
	return err
}

// wantOpen checks that there are that many streams wherever they are counted.
func wantOpen(t *testing.T, r *rig, want int) {
	t.Helper()
	synctest.Wait()
	subscribers := 0
	for _, w := range r.Registry.Watches() {
		subscribers += w.Subscribers()
	}
	list, _ := listOf(r.deps, r.shards, "", 100)
	handles := r.sockets.Count()
	if n := r.deps.Admission.Count(); n != want || subscribers != want || list != want || handles != want {
		t.Errorf("%d streams are admitted, %d are subscribed, %d are listed, %d handles are open; want %d of each",
			n, subscribers, list, handles, want)
	}
	wantSubscribersMetric(t, r, want)
	if clients := r.deps.Subscribers.Clients.Keys(); clients > 1 {
		t.Errorf("%d clients are remembered", clients)
	}
	for _, s := range r.shards.all {
		s.ask(func() {
			if n := len(s.wakers); n > len(r.Sources) || n > 0 && s.table.count == 0 {
				t.Errorf("%d watch wakers for %d streams", n, s.table.count)
			}
		})
	}
}

// wantSubscribersMetric checks the number of streams in the metrics.
func wantSubscribersMetric(t *testing.T, r *rig, want int) {
	t.Helper()
	answer := httptest.NewRecorder()
	r.deps.Metrics.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	line := fmt.Sprintf("watchtide_subscribers{transport=\"sse\"} %d\n", want)
	if !strings.Contains(answer.Body.String(), line) {
		t.Errorf("the metrics do not have %q", line)
	}
}

// TestPanicOfAQuery checks that every query is answered even if one panics.
func TestPanicOfAQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, "a")
		r.Prime("a", 1)
		x := r.get("/v1/events?watch=a")
		x.Take()
		for _, s := range r.shards.all {
			s.ask(func() { panic("a fault of the test") })
			answered := 0
			s.ask(func() { answered++ })
		}
		if over, err := x.Over(); !over || err == nil {
			t.Error("the stream continues")
		}
		wantOpen(t, r, 0)
	})
}

// TestNoStreamAfterAbort checks that a stream that arrives while the gateway closes
// all streams is not carried by a shard that has already ended.
func TestNoStreamAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, "a")
		r.Prime("a", 1)
		r.shards.Abort() // there was no stream yet
		w, _ := r.Registry.Watch("a")
		sockets := newCountingSockets()
		c := gatewaytest.Open(t, r.Watches, r.deps, gatewaytest.ClientNumber(1), session.Request{Format: frame.SSE, Watches: []session.Choice{{Name: "a"}}})
		late := &Pump{sockets: newMultiplexed(sockets), all: []*shard{newShard(r.deps, newMultiplexed(sockets), newStretches(stretchesBudget, 512))}}
		late.all[0].abort()
		if err := late.arrive(1, nil, c); err != errAborted {
			t.Errorf("arrive: %v", err)
		}
		if n := w.Subscribers(); n != 0 {
			t.Errorf("%d subscribers are left", n)
		}
		r.deps.Admission.Leave(c.AdmissionRef)
		x := r.get("/v1/events?watch=a")
		if x.StatusCode != http.StatusServiceUnavailable || unsharedOf(r) != 0 {
			t.Error("it does not stay with net/http")
		}
	})
}
