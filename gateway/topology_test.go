package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/stream"
)

// topologyOf requests the topology from a gateway with metrics.
func (r *rig) topologyOf() (got introspection.Topology) {
	r.t.Helper()
	x := r.get("/v1/topology")
	text := x.Text()
	if err := json.Unmarshal([]byte(text), &got); x.StatusCode != http.StatusOK || err != nil {
		r.t.Fatalf("%s %q: %v", x.Status, text, err)
	}
	return got
}

// TestTopology checks how data flows: from the sources to the groups of subscribers.
func TestTopology(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a", "b")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, `{"n":1}`))
		r.Prime("b", 1)
		for range 3 {
			r.get("/v1/events?watch=a&watch=b", "User-Agent: shop/2.1 (x)")
		}
		r.get("/v1/watches/a/events?prefix=k&format=ndjson", "User-Agent: Mozilla/5.0 (X11) Chrome/140.0 Safari/537.36")
		synctest.Wait()
		got := r.topologyOf()
		if len(got.Watches) != 2 || got.Watches[0].Name != "a" || got.Watches[0].State != stream.InSync.String() || got.Watches[0].Resources != 1 {
			t.Errorf("watches %+v", got.Watches)
		}
		if len(got.Sources) != 1 || got.Sources[0].Watches != 2 || got.Sources[0].Connected != 2 {
			t.Errorf("sources %+v", got.Sources)
		}
		if len(got.Views) != 1 || got.Views[0].Prefix != "k" || got.Views[0].Subscribers != 1 {
			t.Errorf("views %+v", got.Views)
		}
		want := []introspection.TopologyGroup{
			{Application: "shop", Network: "203.0.113.0/24", Transport: "sse", Follows: []introspection.TopologyEdge{{Watch: "a", View: "", Count: 3}, {Watch: "b", View: "", Count: 3}}},
			{Application: "Chrome", Network: "203.0.113.0/24", Transport: "ndjson", Follows: []introspection.TopologyEdge{{Watch: "a", View: got.Views[0].ID, Count: 1}}},
		}
		for i, g := range got.Groups {
			if g.Count == 0 || g.Events == 0 || g.Bytes == 0 {
				t.Errorf("group %d has no figures: %+v", i, g)
			}
			g.Figures = introspection.Figures{}
			if i >= len(want) || fmt.Sprint(g) != fmt.Sprint(want[i]) {
				t.Errorf("group %d: %+v", i, g)
			}
		}
		if got.All.Count != 4 || got.Others != nil {
			t.Errorf("all %+v, others %+v", got.All, got.Others)
		}
	})
}

// TestTopologyIsShared checks that many pages of operators cost one walk a second.
func TestTopologyIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a")
		r.Prime("a", 1)
		first := r.topologyOf()
		time.Sleep(introspection.TopologyFor - time.Millisecond)
		if again := r.topologyOf(); !again.At.Equal(first.At) {
			t.Errorf("made again after %v", again.At.Sub(first.At))
		}
		time.Sleep(time.Millisecond)
		if next := r.topologyOf(); !next.At.After(first.At) {
			t.Error("it is not renewed")
		}
	})
}

// TestTopologyOfLateSource checks that a source without a connection is told from the others.
func TestTopologyOfLateSource(t *testing.T) {
	_, operations, _ := gatewayWithSecrets(t, proxied())
	code, text := getText(t, operations+"/v1/topology")
	var got introspection.Topology
	if err := json.Unmarshal([]byte(text), &got); code != http.StatusOK || err != nil {
		t.Fatal(code, text, err)
	}
	if s := got.Sources[0]; s.Name != "secret" || s.Type != "nats" || s.Watches != 3 || s.Connected == 3 || s.Since.IsZero() || !strings.Contains(s.Reason, "10.9.8.7") {
		t.Errorf("%+v", s)
	}
	lost := got.Watches[slices.IndexFunc(got.Watches, func(w introspection.TopologyWatch) bool { return w.Name == "lost" })]
	if lost.State != stream.Stale.String() || lost.Since.IsZero() || lost.Reason == "" {
		t.Errorf("%+v", lost)
	}
}

// TestTopologyIsForOperators checks that nobody else gets it.
func TestTopologyIsForOperators(t *testing.T) {
	r := newGuarded(t, nil)
	for _, name := range []string{"nobody", "outsider", "ann"} {
		if got := r.get("/v1/topology", r.as(name)...); got.StatusCode < 400 {
			t.Errorf("%s: %s", name, got.text)
		}
	}
	r.get("/v1/topology", r.as("sam")...).want(t, 200, "")
	r.get("/v1/topology?watch=orders", r.as("sam")...).want(t, 400, "")
}

// racing is whether the race detector runs, which has crashed with goroutines of 10,000 connections.
var racing bool

// TestSubscribersAtSize checks that each of 10,000 subscribers is on exactly one page, that they
// are found, and that hostile names stay within bounds.
func TestSubscribersAtSize(t *testing.T) {
	if racing {
		t.Skip("the race detector itself crashes at times with so many connections in a bubble")
	}
	size := 10_000
	if testing.Short() {
		size = 2_000
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true, StreamSettings: StreamSettings{MaxSubscribers: size, MaxSubscribersPerClient: size, MaxSubscribersPerWatch: size}, HTTPSettings: HTTPSettings{MaxConnections: size + 10}}, "a")
		r.Prime("a", 1)
		for i := range size {
			r.dial("GET /v1/events?watch=a HTTP/1.1\r\nHost: gateway\r\nAccept: text/event-stream\r\nUser-Agent: " + hostileAgent(i) + "\r\n\r\n")
		}
		synctest.Wait()
		seen := map[string]bool{}
		for after, pages := "", 0; pages == 0 || after != ""; pages++ {
			query := "?limit=1000"
			if after != "" {
				query += "&after=" + after
			}
			got := r.subscribers(query)
			if got.Count != size || pages > size/1000 {
				t.Fatalf("page %d: %d subscribers", pages, got.Count)
			}
			for _, s := range got.Subscribers {
				seen[s.ID] = true
			}
			after = got.Next
		}
		if len(seen) != size {
			t.Errorf("%d of %d are on a page", len(seen), size)
		}
		if got := r.subscribers("?search=needle"); got.Count != 1 || got.Subscribers[0].UserAgent != "needle/1" {
			t.Errorf("found %d", got.Count)
		}
		got := r.subscribers("?group=application&limit=0")
		if len(got.Groups) != introspection.MaxListedGroups || got.Groups[0].Name != "shop" || got.Groups[0].Count < size/3 || got.Others == nil {
			t.Errorf("%d groups, the first %+v", len(got.Groups), got.Groups[0])
		}
		total := got.Others.Count
		for _, g := range got.Groups {
			total += g.Count
		}
		if total != size {
			t.Errorf("the groups have %d subscribers", total)
		}
		top := r.topologyOf()
		if len(top.Groups) != introspection.MaxListedGroups || top.Groups[0].Application != "shop" || top.Others.Count+totalOf(top.Groups) != size {
			t.Errorf("%d groups, %+v", len(top.Groups), top.Groups[0])
		}
	})
}

// hostileAgent returns the name of one of many clients, half of which have names of their own.
func hostileAgent(i int) string {
	switch {
	case i == 777:
		return "needle/1"
	case i%2 == 0:
		return "shop/" + fmt.Sprint(i)
	default:
		return fmt.Sprintf("x%d-\xff%s/1", i, strings.Repeat("<script>", 30))
	}
}

func totalOf(groups []introspection.TopologyGroup) (n int) {
	for _, g := range groups {
		n += g.Count
	}
	return n
}

// TestSubscribersAreSelected checks each way to select subscribers.
func TestSubscribersAreSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "alpha", "beta")
		r.Prime("alpha", 1)
		r.Prime("beta", 1)
		r.get("/v1/events?watch=alpha", "User-Agent: curl/8.5.0")
		r.get("/v1/events?watch=beta&format=ndjson", "User-Agent: Shop/2")
		r.get("/v1/events?watch=beta&watch=alpha")
		synctest.Wait()
		id := r.subscribers("").Subscribers[0].ID
		for query, want := range map[string]int{
			"": 3, "?search=SHOP": 1, "?search=203.0.113.": 3, "?search=bet": 2, "?search=" + id: 1, "?search=nosuch": 0,
			"?application=curl": 1, "?application=unknown": 0, "?application=Shop&transport=sse": 0, "?application=Shop&transport=ndjson": 1,
			"?network=203.0.113.0%2F24": 3, "?network=192.0.2.0%2F24": 0, "?watch=alpha": 2, "?watch=alpha&search=curl": 1,
		} {
			if got := r.subscribers(query); got.Count != want || len(got.Subscribers) != want || sumOfLags(got.Lag) != want {
				t.Errorf("%s: %d, %d listed, lags %+v, want %d", query, got.Count, len(got.Subscribers), got.Lag, want)
			}
		}
		byWatch := r.subscribers("?group=watch").Groups
		if len(byWatch) != 2 || byWatch[0].Count != 2 || byWatch[1].Count != 2 {
			t.Errorf("by watch: %+v", byWatch)
		}
		for _, query := range []string{"?group=x", "?sort=x", "?sort=", "?after=x", "?after=", "?after=1.2.3", "?limit=1001", "?search=" + strings.Repeat("x", 129), "?network=" + strings.Repeat("x", 129), "?principal=" + strings.Repeat("x", 1025), "?client_id=" + strings.Repeat("x", 1025), "?search=a&search=b"} {
			if got := r.get("/v1/subscribers" + query).StatusCode; got != 400 {
				t.Errorf("%s: %d", query, got)
			}
		}
	})
}

func sumOfLags(l introspection.LagCounts) (n int) {
	for _, b := range l.Buckets {
		n += b.Count
	}
	return n
}

// TestDeparturesByMinute checks that departures are counted by minute and reason for an hour.
func TestDeparturesByMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a")
		r.Prime("a", 1)
		leave := func() {
			c := r.dial(rawGet("/v1/events?watch=a"))
			synctest.Wait()
			_ = c.Close()
			synctest.Wait()
		}
		leave()
		leave()
		time.Sleep(30 * time.Minute)
		leave()
		got := r.subscribers("").LeftMinutes
		if len(got) != 2 || got[0].Reasons[introspection.LeftByItself] != 2 || got[1].Reasons[introspection.LeftByItself] != 1 || got[1].Minute.Sub(got[0].Minute) != 30*time.Minute {
			t.Errorf("%+v", got)
		}
		time.Sleep(31 * time.Minute)
		if got := r.subscribers("").LeftMinutes; len(got) != 1 {
			t.Errorf("after an hour: %+v", got)
		}
		time.Sleep(24 * time.Hour)
		if got := r.subscribers("").LeftMinutes; len(got) != 0 {
			t.Errorf("after a day: %+v", got)
		}
	})
}
