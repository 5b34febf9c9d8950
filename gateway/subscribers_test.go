package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

// subscribers requests the list from a gateway with metrics.
func (r *rig) subscribers(query string) introspection.Overview {
	r.t.Helper()
	x := r.get("/v1/subscribers" + query)
	text := x.Text()
	var got introspection.Overview
	if err := json.Unmarshal([]byte(text), &got); x.StatusCode != http.StatusOK || err != nil {
		r.t.Fatalf("%s %q: %v", x.Status, text, err)
	}
	return got
}

// only returns the only subscriber.
func (r *rig) only() introspection.Subscriber {
	r.t.Helper()
	got := r.subscribers("")
	if got.Count != 1 || len(got.Subscribers) != 1 {
		r.t.Fatalf("%+v: want one subscriber", got)
	}
	return got.Subscribers[0]
}

// countEvents returns how many events a body of either format holds.
func countEvents(body string) uint64 {
	n := strings.Count(body, "event: ")
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, `{"type":"`) && !strings.HasPrefix(line, `{"type":"position"`) && !strings.HasPrefix(line, `{"type":"heartbeat"`) {
			n++
		}
	}
	return uint64(n)
}

// The list shows what a stream's client received: before the stream joins a
// group, while it is a member, and after it has joined again.
func TestSubscriberIsWhatItsClientSees(t *testing.T) {
	for _, format := range []string{"sse", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testSubscriber(t, format) })
		})
	}
}

func testSubscriber(t *testing.T, format string) {
	r := newRig(t, Config{Metrics: true}, "a", "b")
	r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
	path := "/v1/events?watch=a&watch=b&format=" + format
	before := time.Now()
	x := r.get(path, "User-Agent: tests/1")
	check := func(when, position string) {
		t.Helper()
		body, got := x.Text(), r.only()
		if got.ID == "" || !got.Since.Equal(introspection.Instant(before)) {
			t.Errorf("%s: id %q, since %s", when, got.ID, got.Since)
		}
		got.ID, got.Since = "", time.Time{}
		want := introspection.Subscriber{
			Address: "203.0.113.1:1", UserAgent: "tests/1", Transport: format, Watches: []string{"a", "b"},
			Position: position, Events: countEvents(body), Bytes: uint64(len(body)),
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n got %+v\nwant %+v, after %q", when, got, want, body)
		}
	}
	check("before b is primed", "a@e1-1")
	r.Prime("b", 3)
	check("with both", "a@e1-1,b@e1-3")
	for i := range uint64(5) {
		r.Commit("a", 2+i, gatewaytest.Resource("k", 2+i, "2"))
		check("live", fmt.Sprintf("a@e1-%d,b@e1-3", 2+i))
	}
	time.Sleep(time.Minute)
	check("after heartbeats", "a@e1-6,b@e1-3")
}

// Members of one group that came at different times are distinguished.
func TestSubscribersOfOneGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a")
		r.Prime("a", 1)
		var bodies []*gatewaytest.Exchange
		for i := range uint64(6) {
			bodies = append(bodies, r.get("/v1/events?watch=a", fmt.Sprintf("User-Agent: client-%d", i)))
			synctest.Wait()
			r.Commit("a", 2+i, gatewaytest.Resource("k", 2+i, "1"))
			synctest.Wait()
		}
		got := r.subscribers("")
		if got.Count != len(bodies) || len(got.Subscribers) != len(bodies) {
			t.Fatalf("%d of %d are listed", len(got.Subscribers), got.Count)
		}
		ids := map[string]bool{}
		for i, s := range got.Subscribers { // the oldest first
			body := bodies[i].Text()
			if s.UserAgent != fmt.Sprintf("client-%d", i) || s.Events != countEvents(body) || s.Bytes != uint64(len(body)) || s.Lag != 0 {
				t.Errorf("%+v, received %d events in %d bytes", s, countEvents(body), len(body))
			}
			ids[s.ID] = true
		}
		if len(ids) != len(bodies) {
			t.Errorf("%d different ids of %d", len(ids), len(bodies))
		}
	})
}

func TestCompressedSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a")
		r.accepts = "gzip, zstd" // zstd is for streams that end with the snapshot
		r.Prime("a", 1, gatewaytest.Resource("k", 1, `"`+strings.Repeat("x", 10_000)+`"`))
		x := r.get("/v1/events?watch=a")
		x.Text()
		r.accepts = ""
		got := r.only()
		if got.Encoding != "gzip" || got.Bytes == 0 || got.Bytes > 2000 || got.Events != countEvents(x.Text()) {
			t.Errorf("%+v", got)
		}
	})
}

// A client that does not read lags, and is listed first; once it reads again, the
// changes that it was not sent one by one count as skipped.
func TestLagOfAStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true, StreamSettings: StreamSettings{WriteTimeout: time.Hour}}, "a")
		r.Prime("a", 1)
		good := r.get("/v1/events?watch=a")
		slow := r.dial(rawGet("/v1/events?watch=a&format=ndjson"))
		readUntil(t, slow, "position")
		const last = 3000
		for i := uint64(2); i <= last; i++ {
			r.Commit("a", i, gatewaytest.Resource("k", i, `"`+strings.Repeat("x", 1000)+`"`))
		}
		good.Text()
		got := r.subscribers("")
		if got.Count != 2 || got.Subscribers[0].Transport != "ndjson" || got.Subscribers[1].Lag != 0 {
			t.Fatalf("%+v", got.Subscribers)
		}
		oldest := r.subscribers("?sort=since&limit=1")
		if s := oldest.Subscribers; s[0].Transport != "sse" || oldest.Next == "" {
			t.Errorf("by age: %+v, next %q", s, oldest.Next)
		}
		if s := r.subscribers("?sort=since&after=" + oldest.Next).Subscribers; len(s) != 1 || s[0].Lag != got.Subscribers[0].Lag {
			t.Errorf("by age, the second page: %+v", s)
		}
		for _, query := range []string{"?after=" + oldest.Next, "?sort=lag&after=" + oldest.Next, "?sort=since&after=" + r.subscribers("?limit=1").Next} {
			if x := r.get("/v1/subscribers" + query); x.StatusCode != 400 || !strings.Contains(x.Text(), "sort=since") {
				t.Errorf("%s, from the other order: %s", query, x.Status)
			}
		}
		stalled := got.Subscribers[0]
		if most := uint64(last) - 1; stalled.Lag < most/2 || stalled.Lag > most || stalled.Skipped != 0 {
			t.Errorf("lag %d of %d, skipped %d", stalled.Lag, most, stalled.Skipped)
		}
		readUntil(t, slow, fmt.Sprintf(`"id":"a@e1-%d"`, last))
		synctest.Wait()
		skipped := uint64(0)
		for _, s := range r.subscribers("").Subscribers {
			if s.Lag != 0 || s.CatchingUp {
				t.Errorf("%+v has everything", s)
			}
			skipped += s.Skipped
		}
		conflated := counter(t, r.gateway, "watchtide_conflated_changes_total", "transport", "ndjson") +
			counter(t, r.gateway, "watchtide_conflated_changes_total", "transport", "sse")
		if skipped == 0 || float64(skipped) != conflated {
			t.Errorf("skipped %d, conflated %v", skipped, conflated)
		}
	})
}

// Before the end of a snapshot, the lag counts its resources.
func TestLagInASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true, StreamSettings: StreamSettings{WriteTimeout: time.Hour}}, "a")
		var all []stream.Resource
		for i := range uint64(5000) {
			all = append(all, gatewaytest.Resource(fmt.Sprint("k", i), i+1, `"`+strings.Repeat("x", 300)+`"`))
		}
		r.Prime("a", 5000, all...)
		slow := r.dial(rawGet("/v1/events?watch=a"))
		readUntil(t, slow, `"key":"k1000"`)
		if got := r.only(); got.Lag < 1000 || got.Lag > 4500 {
			t.Errorf("%+v", got)
		}
		readUntil(t, slow, "end_of_snapshot")
		if got := r.only(); got.Lag != 0 {
			t.Errorf("with everything: %+v", got)
		}
	})
}

// Each way to end has its reason, and the amount sent is remembered.
func TestEndReasons(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason introspection.DepartureReason
		leave  func(r *rig)
	}{
		{"hangs up", "client_closed", func(r *rig) {
			x := r.get("/v1/events?watch=a")
			x.Text()
			x.Cancel()
		}},
		{"hangs up in a snapshot", "client_closed", func(r *rig) {
			c := r.dial(rawGet("/v1/events?watch=big"))
			readUntil(r.t, c, "event: upsert")
			c.Close()
		}},
		{"does not read", "write_timeout", func(r *rig) {
			readUntil(r.t, r.dial(rawGet("/v1/events?watch=big")), "event: upsert")
			time.Sleep(15 * time.Second)
		}},
		{"complete", "complete", func(r *rig) { r.get("/v1/events?watch=a&until=end_of_snapshot").Text() }},
		{"too old", "max_age", func(r *rig) {
			x := r.get("/v1/events?watch=a")
			time.Sleep(2 * time.Hour)
			x.Text()
		}},
		{"watch removed", "watch_removed", func(r *rig) {
			x := r.get("/v1/events?watch=a")
			x.Text()
			r.Registry.Remove("a")
			x.Text()
		}},
		{"watch replaced", "watch_replaced", func(r *rig) {
			x := r.get("/v1/events?watch=a")
			x.Text()
			r.Replace(streamwatch.Config{Name: "a"})
			x.Text()
		}},
		{"drain", "draining", func(r *rig) {
			x := r.get("/v1/events?watch=a")
			x.Text()
			drained := make(chan struct{})
			go func() { r.gateway.Drain(); close(drained) }()
			time.Sleep(time.Minute)
			<-drained
			x.Text()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Metrics: true, StreamSettings: StreamSettings{MaxAge: time.Hour}}, "a", "big")
				r.Prime("a", 1)
				r.Prime("big", 1, gatewaytest.Resource("big", 1, `"`+strings.Repeat("x", 1<<20)+`"`))
				c.leave(r)
				synctest.Wait()
				time.Sleep(netconn.Linger + 2*slack()) // the client may read to the end
				got := r.subscribers("")
				if got.Count != 0 || len(got.Left) != 1 || !maps.Equal(got.LeftReasons, map[introspection.DepartureReason]uint64{c.reason: 1}) {
					t.Fatalf("%+v", got)
				}
				left := got.Left[0]
				if left.Reason != c.reason || left.Left.Before(left.Since) || left.Events == 0 || left.Bytes == 0 || left.Address == "" {
					t.Errorf("%+v", left)
				}
				if clients := r.gateway.subscribers.Clients; clients.Keys() != 0 {
					t.Errorf("%d clients are remembered without a stream", clients.Keys())
				}
			})
		})
	}
}

// Departures are remembered, but not forever, the newest first.
func TestOnlyTheLastDeparturesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		r.get("/v1/events?watch=b&until=end_of_snapshot").Text()
		const others = introspection.DeparturesKept + 20
		for i := range others {
			r.get("/v1/events?watch=a&until=end_of_snapshot", fmt.Sprintf("User-Agent: n-%d", i)).Text()
			if i == 5 {
				if got := r.subscribers("?watch=b"); len(got.Left) != 1 || !slices.Equal(got.Left[0].Watches, []string{"b"}) {
					t.Errorf("of b: %+v", got.Left)
				}
			}
		}
		time.Sleep(netconn.Linger + 2*slack())
		got := r.subscribers("")
		if len(got.Left) != introspection.DeparturesKept || got.LeftReasons["complete"] != others+1 {
			t.Fatalf("%d left, %v", len(got.Left), got.LeftReasons)
		}
		for i, d := range got.Left {
			if want := fmt.Sprintf("n-%d", others-1-i); d.UserAgent != want {
				t.Errorf("at place %d: %s, want %s", i, d.UserAgent, want)
			}
		}
	})
}

func TestSubscribersOfAWatchUpToALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		for range 3 {
			r.get("/v1/events?watch=a").Text()
			r.get("/v1/events?watch=b").Text()
			r.get("/v1/events?watch=b&watch=a&format=ndjson").Text()
		}
		for query, want := range map[string][2]int{
			"":                 {9, 9},
			"?watch=a":         {6, 6},
			"?limit=0":         {9, 0},
			"?limit=4":         {9, 4},
			"?watch=b&limit=5": {6, 5},
		} {
			got := r.subscribers(query)
			if got.Count != want[0] || len(got.Subscribers) != want[1] {
				t.Errorf("%q: %d of %d", query, len(got.Subscribers), got.Count)
			}
			if !slices.IsSortedFunc(got.Subscribers, func(a, b introspection.Subscriber) int { return strings.Compare(a.ID, b.ID) }) {
				t.Errorf("%q: not by age: %+v", query, got.Subscribers)
			}
		}
		if got := r.subscribers("?watch=b"); len(got.Upstreams) != 1 || got.Upstreams[0].Watch != "b" {
			t.Errorf("%+v", got.Upstreams)
		}
	})
}

// A stream of the goroutine pump, a gRPC call and a long poll are also listed.
func TestSubscribersOfOtherTransports(t *testing.T) {
	r := newAPIRig(t, Config{})
	d := loadDocument(t)
	sse, err := http.Get(r.url + "/v1/events?watch=hosts")
	if err != nil {
		t.Fatal(err)
	}
	defer sse.Body.Close()
	readUpToText(t, sse.Body, "end_of_snapshot\n")
	calls := r.watchHosts(t)
	polled := make(chan reply, 1)
	go func() { polled <- r.get("/v1/watches/notes/changes?after=notes@e1-1&wait=1m") }()
	transports := func() (all []string) {
		for _, s := range r.overview(t).Subscribers {
			all = append(all, fmt.Sprintf("%s %s %d %s", s.Transport, s.Watches, s.Lag, s.Position))
		}
		slices.Sort(all)
		return all
	}
	want := []string{"grpc [hosts] 0 hosts@e1-7", "poll [notes] 0 notes@e1-1", "sse [hosts] 0 hosts@e1-7"}
	for !slices.Equal(transports(), want) { // the test ends after its time
		<-time.After(time.Millisecond)
	}
	d.check(t, r, documentedCase{"GET", "/v1/subscribers", "", nil, 200})
	calls()
	r.send("PUT", "/v1/watches/notes/resources/a", "1").want(t, 201, "")
	(<-polled).want(t, 200, "")
	sse.Body.Close()
	for len(transports()) > 0 {
		<-time.After(time.Millisecond)
	}
	got := r.overview(t)
	if got.LeftReasons["client_closed"] != 2 || len(got.Left) != 2 { // the poll was answered
		t.Errorf("%+v %+v", got.Left, got.LeftReasons)
	}
	d.check(t, r, documentedCase{"GET", "/v1/subscribers", "", nil, 200})
}

func (r *apiRig) overview(t *testing.T) (o introspection.Overview) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.get("/v1/subscribers").text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// readUpToText reads until the text was read.
func readUpToText(t *testing.T, from io.Reader, text string) {
	t.Helper()
	p, got := make([]byte, 4<<10), ""
	for !strings.Contains(got, text) {
		n, err := from.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		got += string(p[:n])
	}
}

func TestSubscribersAreSwitchedOffWithTheMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		for _, path := range []string{"/metrics", "/v1/subscribers", "/v1/series"} {
			if x := r.get(path); x.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s", path, x.Status)
			}
		}
	})
}

func TestBadQueriesForSubscribers(t *testing.T) {
	r := newAPIRig(t, Config{})
	for query, want := range map[string]struct {
		status            int
		parameter, detail string
	}{
		"limit=1001":      {400, "limit", "from 0 to 1000"},
		"limit=-1":        {400, "limit", "from 0 to 1000"},
		"limit=":          {400, "limit", "want a number"},
		"limit=1&limit=2": {400, "limit", "2 times"},
		"limits=1":        {400, "limits", `did you mean "limit"?`},
		"watch=host":      {404, "", `did you mean "hosts"?`},
		"watch=":          {404, "", "there is no watch"},
	} {
		r.get("/v1/subscribers?"+query).wantProblem(t, want.status, want.parameter, want.detail)
	}
}
