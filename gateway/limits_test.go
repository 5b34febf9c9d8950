package gateway

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream/watch"
)

// behindProxy is a configuration for the in-memory network, whose clients all come
// through one proxy.
func behindProxy(c Config) Config {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	return c
}

const pollNow = "/v1/watches/a/changes?wait=0s"

// TestOneClientTooMany checks for a 429, except for a browser, which would give up on
// it.
func TestOneClientTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, behindProxy(Config{StreamSettings: StreamSettings{MaxSubscribersPerClient: 2}}), "a")
		r.Prime("a", 1)
		const me, you = "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.1, 192.0.2.2"
		first := r.get("/v1/events?watch=a", me)
		r.get("/v1/events?watch=a", me)
		synctest.Wait()

		const text = "client 192.0.2.1 has 2 streams open, of 2 at most"
		for _, path := range []string{"/v1/events?watch=a", pollNow} {
			x := r.get(path, me)
			if x.StatusCode != 429 || x.Header.Get("Retry-After") == "" || !strings.Contains(x.Text(), text) {
				t.Errorf("%s: %d %v %s", path, x.StatusCode, x.Header, x.Text())
			}
		}
		browser := r.get("/v1/events?watch=a", me, eventStream)
		if got := browser.Text(); browser.StatusCode != 200 || !strings.Contains(got, `"reason":"overloaded"`) || !strings.Contains(got, ": "+text) {
			t.Errorf("a browser: %d %s", browser.StatusCode, got)
		}
		for transport, want := range map[string]float64{"sse": 2, "poll": 1} {
			if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", transport, "reason", "client"); n != want {
				t.Errorf("%s: %v refusals are counted, want %v", transport, n, want)
			}
		}
		if x := r.get(pollNow, you); x.StatusCode != 200 {
			t.Errorf("another client: %d", x.StatusCode)
		}
		first.Cancel()
		synctest.Wait()
		if x := r.get(pollNow, me); x.StatusCode != 200 {
			t.Errorf("after one has ended: %d", x.StatusCode)
		}
	})
}

// TestOneWatchTooMany checks for a 503 that names the watch.
func TestOneWatchTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{MaxSubscribersPerWatch: 1}}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		both := r.get("/v1/events?watch=b&watch=a")
		synctest.Wait()
		x := r.get(pollNow)
		if got := x.Text(); x.StatusCode != 503 || !strings.Contains(got, `"watch":"a"`) || !strings.Contains(got, `watch \"a\" has 1 streams, of 1 at most`) {
			t.Errorf("%d %s", x.StatusCode, got)
		}
		both.Cancel()
		synctest.Wait()
		if x := r.get(pollNow); x.StatusCode != 200 {
			t.Errorf("after it has ended: %d", x.StatusCode)
		}
	})
}

// TestEveryEndIsCounted checks that however a stream ends, in either pump, its client
// may open another one, and nothing about it is remembered.
func TestEveryEndIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, behindProxy(Config{StreamSettings: StreamSettings{MaxAge: time.Minute, WriteTimeout: 10 * time.Second}}), "a", "gone")
		r.Prime("a", 1, gatewaytest.Resource("big", 1, `"`+strings.Repeat("x", 1<<20)+`"`))
		r.Prime("gone", 1)
		ends := map[string]string{ // by client
			"192.0.2.1": "/v1/events?watch=a", // too old
			"192.0.2.2": "/v1/events?watch=a&until=end_of_snapshot",
			"192.0.2.3": "/v1/events?watch=gone&watch=a", // removed
			"192.0.2.4": "/v1/events?watch=a",            // the client disconnects
			"192.0.2.5": "/v1/watches/a/changes?wait=5s",
		}
		streams := map[string]*gatewaytest.Exchange{}
		for who, path := range ends {
			streams[who] = r.get(path, "X-Forwarded-For: "+who)
		}
		stuck := strings.Replace(rawGet("/v1/events?watch=a"), "Accept", "X-Forwarded-For: 192.0.2.6\r\nAccept", 1)
		r.dial(stuck) // it does not read
		synctest.Wait()
		streams["192.0.2.4"].Cancel()
		r.Registry.Remove("gone")
		time.Sleep(2*time.Minute + slack())
		synctest.Wait()
		a := r.gateway.admission
		if a.Count() != 0 || a.ClientCount() != 0 {
			t.Errorf("not released: %d streams of %d clients", a.Count(), a.ClientCount())
		}
	})
}

func TestConfigOfLimits(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	for want, c := range map[string]Config{
		"MaxSubscribersPerClient is -1":  {StreamSettings: StreamSettings{MaxSubscribersPerClient: -1}},
		"MaxSubscribersPerWatch is -1":   {StreamSettings: StreamSettings{MaxSubscribersPerWatch: -1}},
		"TrustedProxies":                 {HTTPSettings: HTTPSettings{TrustedProxies: make([]netip.Prefix, 1)}},
		`ForwardedHeader is "X-Real-Ip"`: {HTTPSettings: HTTPSettings{ForwardedHeader: "X-Real-Ip"}},
	} {
		c.Registry = registry
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestWatchOverItsMemory checks that such a watch reports it everywhere,
// refuses new subscribers, keeps those that it has, and recovers.
func TestWatchOverItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{StaleAllowed: time.Nanosecond}})
		r.Add(watch.Config{Name: "a", Required: true, MaxBytes: 1 << 20})
		r.Prime("a", 1, gatewaytest.Resource("k", 1, `"old"`))
		x := r.get("/v1/events?watch=a")
		synctest.Wait()
		x.Take()
		r.Commit("a", 2, gatewaytest.Resource("k", 2, `"`+strings.Repeat("x", 450<<10)+`"`))
		const reason, detail = "too large for", "too large: what is being loaded needs at least"
		if got := x.Take(); !strings.Contains(got, `"state":"stale"`) || !strings.Contains(got, reason) || strings.Contains(got, "upsert") {
			t.Errorf("an open stream gets %q", got)
		}
		if w, _ := r.Registry.Watch("a"); w.Snapshot().Revision() != 1 {
			t.Errorf("revision %d is shown, but none of its content", w.Snapshot().Revision())
		}
		time.Sleep(time.Millisecond)
		for path, want := range map[string]int{"/v1/events?watch=a": 503, pollNow: 503} {
			if got := r.get(path); !strings.Contains(got.Text(), reason) || got.StatusCode != want {
				t.Errorf("%s: %d %s", path, got.StatusCode, got.Text())
			}
		}
		for path, want := range map[string]int{"/readyz": 503, "/v1/watches/a": 200} {
			if got := r.get(path); !strings.Contains(got.Text(), detail) || got.StatusCode != want {
				t.Errorf("%s: %d %s", path, got.StatusCode, got.Text())
			}
		}
		if got := r.get("/v1/events?watch=a", eventStream); got.StatusCode != 200 || !strings.Contains(got.Text(), `"reason":"overloaded"`) {
			t.Errorf("a browser: %d %s", got.StatusCode, got.Text())
		}
		if got := r.get("/v1/watches/a/resources/k"); !strings.Contains(got.Text(), `"old"`) {
			t.Errorf("a reader gets %d %s, want the last consistent state", got.StatusCode, got.Text())
		}
		if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", "sse", "reason", "memory"); n != 2 {
			t.Errorf("%v refusals are counted", n)
		}
		time.Sleep(10 * time.Second)
		r.Prime("a", 3, gatewaytest.Resource("k", 3, `"new"`))
		if got := x.Take(); !strings.Contains(got, `"new"`) || !strings.Contains(got, `"in_sync"`) || strings.Contains(got, "event: reset") {
			t.Errorf("the stream that stayed open gets %q", got)
		}
		if got := r.get(pollNow); got.StatusCode != 200 {
			t.Errorf("afterwards: %d", got.StatusCode)
		}
	})
}
