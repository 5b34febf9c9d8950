package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/stream/watch"
)

// figures is GET /v1/series as a client reads it.
type figures struct {
	Instance        string `json:"instance"`
	DeliveryReports bool   `json:"delivery_reports"`
	Start           int64  `json:"start"`
	Step            int    `json:"step"`
	Samples         int    `json:"samples"`
	Count           int    `json:"count"`
	Total           *columns
	Watches         []struct {
		Watch string `json:"watch"`
		columns
	} `json:"watches"`
	Without []introspection.Lack `json:"without"`
}

type columns struct {
	States      []introspection.Run `json:"states"`
	Changes     []*float64          `json:"changes"`
	Events      []*float64          `json:"events"`
	Bytes       []*float64          `json:"bytes"`
	LatencyP50  []*float64          `json:"latency_p50_ms"`
	LatencyP99  []*float64          `json:"latency_p99_ms"`
	Lag         []*float64          `json:"lag"`
	Subscribers []*float64          `json:"subscribers"`
	DeliveryP50 []*float64          `json:"delivery_p50_ms"`
	Reports     []*float64          `json:"delivery_reports"`
}

func (r *rig) figures(query string) (f figures) {
	r.t.Helper()
	x := r.get("/v1/series" + query)
	if text := x.Text(); x.StatusCode != http.StatusOK || json.Unmarshal([]byte(text), &f) != nil {
		r.t.Fatalf("%s %.300q", x.Status, text)
	}
	return f
}

// values returns figures as text; "-" is null.
func values(all []*float64) string {
	var out []string
	for _, v := range all {
		if v == nil {
			out = append(out, "-")
		} else {
			out = append(out, fmt.Sprint(*v))
		}
	}
	return strings.Join(out, " ")
}

// TestSeriesShowWhatIsDelivered checks the figures of streams of all kinds: one of its own, the
// members of a group, those of several watches and of views, a long poll.
func TestSeriesShowWhatIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true, HTTPSettings: HTTPSettings{DeliveryReports: true}, engine: gatewaytest.NewViews(t)}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		time.Sleep(time.Second)
		var streams []*gatewaytest.Exchange
		for _, path := range []string{"/v1/events?watch=a", "/v1/events?watch=a", "/v1/events?watch=a&watch=b", "/v1/events?watch=a&prefix=k", "/v1/events?watch=b&prefix=none"} {
			streams = append(streams, r.get(path))
		}
		time.Sleep(1100 * time.Millisecond)
		report(r, "a", 1, 0, 0)
		r.Commit("a", 2, gatewaytest.Resource("k", 2, `1`))
		synctest.Wait()
		report(r, "a", 2, 0, 0)
		time.Sleep(time.Second)
		got := r.figures("")
		if got.Instance != "test" || !got.DeliveryReports || got.Step != 1 || got.Count != 2 || len(got.Watches) != 2 {
			t.Fatalf("%+v", got)
		}
		a, b := got.Watches[0], got.Watches[1]
		at := len(a.Changes) - 1
		for what, pair := range map[string][2]string{
			"changes of a": {values(a.Changes[at:]), "1"}, "events of a": {values(a.Events[at:]), "4"},
			"subscribers of a": {values(a.Subscribers[at:]), "4"}, "lag of a": {values(a.Lag[at:]), "0"},
			"reports of a": {values(a.Reports[at:]), "1"},
			"changes of b": {values(b.Changes[at:]), "0"}, "events of b": {values(b.Events[at:]), "0"},
			"latency of b": {values(b.LatencyP99[at:]), "-"}, "subscribers of b": {values(b.Subscribers[at:]), "2"},
			"subscribers in all": {values(got.Total.Subscribers[at:]), "6"}, "events in all": {values(got.Total.Events[at:]), "4"},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s, want %s", what, pair[0], pair[1])
			}
		}
		if a.LatencyP50[at] == nil || a.LatencyP99[at] == nil || *a.LatencyP99[at] > 1 || a.DeliveryP50[at] == nil || a.Bytes[at] == nil || *a.Bytes[at] < 4*50 {
			t.Errorf("%s; %s; %s", values(a.LatencyP50), values(a.DeliveryP50), values(a.Bytes))
		}
		for _, s := range streams {
			s.Text()
		}
		r.get("/v1/watches/a/changes?after=a@e1-1&wait=0s").Text()
		time.Sleep(time.Second)
		if a := r.figures("").Watches[0]; *a.Events[len(a.Events)-1] < 1 {
			t.Errorf("events after a long poll: %s", values(a.Events))
		}
	})
}

// TestSeriesShowTheLag checks that the lag of one reader that does not read is that of its watch.
func TestSeriesShowTheLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true, StreamSettings: StreamSettings{WriteTimeout: time.Hour}}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		good := r.get("/v1/events?watch=a&watch=b")
		slow := r.dial(rawGet("/v1/events?watch=a&format=ndjson"))
		readUntil(t, slow, "position")
		for i := uint64(2); i <= 1000; i++ {
			r.Commit("a", i, gatewaytest.Resource("k", i, `"`+strings.Repeat("x", 1000)+`"`))
		}
		time.Sleep(2500 * time.Millisecond)
		good.Text()
		got := r.figures("").Watches
		if lag := got[0].Lag[len(got[0].Lag)-1]; lag == nil || *lag < 300 || *lag > 1000 {
			t.Errorf("of a: %s", values(got[0].Lag))
		}
		if lag := values(got[1].Lag); strings.Trim(lag, "0 ") != "" {
			t.Errorf("of b: %s", lag)
		}
	})
}

// TestSeriesAreAsked checks the parameters: the last hour, only newer ones, a watch, a template.
func TestSeriesAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a", "b", "c")
		addTemplate(t, r.Registry, template(3, new(atomic.Int64)))
		now := time.Now()
		for i := range 3700 { // no time authorizations: the race detector does not stand that many timers
			r.gateway.series.Record(now.Add(time.Duration(i) * time.Second))
		}
		fine, coarse := r.figures(""), r.figures("?step=10s")
		if fine.Samples != 300 || coarse.Samples != 360 || coarse.Step != 10 || fine.Start%10 != coarse.Start%10 && coarse.Start%10 != 0 {
			t.Errorf("%d of %d s, %d of %d s", fine.Samples, fine.Step, coarse.Samples, coarse.Step)
		}
		for _, w := range slices.Concat(fine.Watches, coarse.Watches) {
			if n := len(w.Changes); n != 300 && n != 360 || len(w.Lag) != n || sumOf(w.States) != n {
				t.Errorf("%s: %d changes, %d lags, states %v", w.Watch, n, len(w.Lag), w.States)
			}
		}
		newest := fine.Start + 299
		if got := r.figures(fmt.Sprintf("?since=%d", newest-9)); got.Samples != 10 || got.Start != newest-9 {
			t.Errorf("since ten seconds: %d samples from %d", got.Samples, got.Start-newest)
		}
		if got := r.figures(fmt.Sprintf("?since=%d", newest+1000)); got.Samples != 0 || len(got.Watches[0].Changes) != 0 {
			t.Errorf("since later: %+v", got)
		}
		if got := r.figures("?watch=b"); len(got.Watches) != 1 || got.Watches[0].Watch != "b" || got.Total != nil || got.Count != 4 {
			t.Errorf("of b: %+v", got)
		}
		if got := r.figures("?watch=t-%7Bx%7D"); len(got.Watches) != 1 || got.Watches[0].States[0].State != "idle" {
			t.Errorf("of a template: %+v", got)
		}
		if got := r.figures("?limit=1"); len(got.Watches) != 1 || got.Total == nil || got.Count != 4 {
			t.Errorf("one of them: %+v", got)
		}
		if w, err := r.Registry.Open("t-1"); err != nil || w.Prime(t.Context()) != nil {
			t.Fatal(err)
		}
		x := r.get("/v1/series?watch=t-1")
		if text := x.Text(); x.StatusCode != 404 || !strings.Contains(text, `t-{x}`) {
			t.Errorf("of a watch of a template: %s %s", x.Status, text)
		}
	})
}

func sumOf(runs []introspection.Run) (n int) {
	for _, r := range runs {
		n += r.Samples
	}
	return n
}

// TestSeriesTranscript compares an answer, byte by byte and through gzip, with the one in testdata.
func TestSeriesTranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a")
		r.Registry.Add(watch.Config{Name: "small", MaxBytes: 1000, SourceName: "scripted", Source: gatewaytest.NewScript()})
		time.Sleep(3500 * time.Millisecond)
		r.Prime("a", 1)
		time.Sleep(2 * time.Second)
		r.Commit("a", 2, gatewaytest.Resource("k", 2, "1"), gatewaytest.Resource("l", 2, "1"))
		time.Sleep(2 * time.Second)
		plain := r.get("/v1/series")
		text := plain.Text()
		r.accepts = "gzip"
		zipped := r.get("/v1/series")
		if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Text() != text || plain.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v, %v", plain.Header, zipped.Header)
		}
		const file = "testdata/series.json"
		if *update {
			os.WriteFile(file, []byte(text), 0o644)
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != text {
			t.Errorf("%v: got\n%s, want\n%s", err, text, want)
		}
	})
}

// TestSeriesNeedServe checks that a gateway that is mounted elsewhere answers without figures.
func TestSeriesNeedServe(t *testing.T) {
	r := newAPIRig(t, Config{})
	var got figures
	if x := r.get("/v1/series"); json.Unmarshal([]byte(x.text), &got) != nil || x.StatusCode != 200 || got.Samples != 0 || got.Total != nil || got.Watches == nil || got.Without == nil {
		t.Errorf("%s %s", x.Status, x.text)
	}
}

func TestBadQueriesForSeries(t *testing.T) {
	r := newAPIRig(t, Config{})
	for query, want := range map[string]struct {
		status            int
		parameter, detail string
	}{
		"limit=201":                        {400, "limit", "from 0 to 200"},
		"step=1":                           {400, "step", "want 1s"},
		"step=1m":                          {400, "step", "10s"},
		"since=-1":                         {400, "since", "want a number"},
		"since=9e9":                        {400, "since", "want a number"},
		"since=" + strings.Repeat("9", 30): {400, "since", "want a number"},
		"watch=host":                       {404, "watch", `did you mean "hosts"?`},
		"watch=":                           {404, "watch", "there is no watch"},
		"wtach=x":                          {400, "wtach", `did you mean "watch"?`},
	} {
		r.get("/v1/series?"+query).wantProblem(t, want.status, want.parameter, want.detail)
	}
}

// FuzzSeriesQuery checks that no query makes an answer that is larger than what is reserved for
// it, or anything but a problem or an answer.
func FuzzSeriesQuery(f *testing.F) {
	for _, query := range []string{"", "step=10s&limit=200", "since=0", "since=1099511627776", "since=99999999999999999999", "watch=%00", "limit=-0", "step=1s&step=1s", "%", ";"} {
		f.Add(query)
	}
	registry := watch.NewRegistry()
	f.Cleanup(registry.Close)
	g, err := New(Config{Registry: registry, Metrics: true})
	if err != nil {
		f.Fatal(err)
	}
	start := time.Unix(1_800_000_000, 0)
	for i := range 400 {
		g.series.Record(start.Add(time.Duration(i) * time.Second))
	}
	f.Fuzz(func(t *testing.T, query string) {
		req := httptest.NewRequest(http.MethodGet, "http://localhost/v1/series", nil)
		req.URL.RawQuery = query
		w := httptest.NewRecorder()
		g.OperationsHandler().ServeHTTP(w, req)
		var got figures
		switch {
		case w.Code == http.StatusOK && (json.Unmarshal(w.Body.Bytes(), &got) != nil || got.Samples < 0 || got.Samples > 360):
			t.Errorf("%q: %s", query, w.Body)
		case w.Code != http.StatusOK && (w.Code < 400 || w.Code > 404):
			t.Errorf("%q: %d", query, w.Code)
		}
	})
}
