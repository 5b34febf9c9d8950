package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream/watch"
)

// refusedAs reads the problem with which a request was refused.
func refusedAs(t *testing.T, x *gatewaytest.Exchange) (p problem.Problem) {
	t.Helper()
	body := x.Text()
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != x.StatusCode {
		t.Errorf("%s: body %q: %v", x.Status, body, err)
	}
	if got := x.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s: Content-Type %q", x.Status, got)
	}
	return p
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services", "nodes")
		for _, test := range []struct {
			path, header string
			want         problem.Problem
			detail       string
		}{
			{"/v1/events?watch=service", "", problem.Problem{Status: 404, Watch: "service"}, `did you mean "services"?`},
			{"/v1/watches/service/events", "", problem.Problem{Status: 404, Watch: "service"}, `did you mean "services"?`},
			{"/v1/events?watch=services&watch=zzz", "", problem.Problem{Status: 404, Watch: "zzz"}, "/v1/watches"},
			{"/v1/watches/%2573ervices/events", "", problem.Problem{Status: 404, Watch: "%73ervices"}, `"%73ervices"`},
			{"/v1/watches/a%2Fb/events", "", problem.Problem{Status: 404, Watch: "a/b"}, `"a/b"`},
			{"/v1/events?watch=%ff", "", problem.Problem{Status: 404, Watch: "\uFFFD"}, "there is no watch"},
			{"/v1/events?watch=services&wath=nodes", "", problem.Problem{Status: 400, Parameter: "wath"}, `did you mean "watch"?`},
			{"/v1/watches/services/events?watch=nodes", "", problem.Problem{Status: 400, Watch: "services", Parameter: "watch"}, "the path names"},
			{"/v1/events?watch=services&filter=true", "", problem.Problem{Status: 400, Watch: "services", Parameter: "filter"}, "has no views"},
			{"/v1/events?watch=services", "Accept: text/html", problem.Problem{Status: 406, Parameter: "Accept"}, "text/event-stream"},
			{"/v1/events?watch=services", "Last-Event-ID: " + strings.Repeat("x", 1025), problem.Problem{Status: 414, Parameter: "last_event_id"}, "1025 bytes"},
			{"/v1/event", "", problem.Problem{Status: 404}, "/openapi.json"},
		} {
			var headers []string
			if test.header != "" {
				headers = append(headers, test.header)
			}
			x := r.get(test.path, headers...)
			got := refusedAs(t, x)
			if got.Status != test.want.Status || got.Watch != test.want.Watch || got.Parameter != test.want.Parameter || !strings.Contains(got.Detail, test.detail) {
				t.Errorf("%s %s: got %+v", test.path, test.header, got)
			}
		}
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

func TestWatchNameMayBeEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		if x := r.get("/v1/watches/%73ervices/events"); x.StatusCode != http.StatusOK {
			t.Errorf("got %s", x.Status)
		}
	})
}

func TestWrongMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		for _, path := range []string{"/v1/events?watch=a", "/v1/watches/a/events"} {
			x := r.request(http.MethodPost, path)
			if p := refusedAs(t, x); p.Status != 405 || x.Header.Get("Allow") != "GET, HEAD" || !strings.Contains(p.Detail, "want GET") {
				t.Errorf("POST %s: Allow %q, %+v", path, x.Header.Get("Allow"), p)
			}
		}
	})
}

// HEAD returns the headers that GET would, and opens nothing.
func TestHeadOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		x := r.request(http.MethodHead, "/v1/events?watch=a", eventStream)
		if x.StatusCode != 200 || x.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" || x.Text() != "" {
			t.Errorf("got %s %v", x.Status, x.Header)
		}
		if over, err := x.Over(); !over || err != nil {
			t.Errorf("over %t, %v", over, err)
		}
		if x := r.request(http.MethodHead, "/v1/events?watch=b"); x.StatusCode != 404 {
			t.Errorf("unknown watch: got %s", x.Status)
		}
	})
}

// A position that cannot be parsed must not keep a browser from reconnecting.
func TestMalformedPositionIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		for _, id := range []string{"nonsense", "a@e1-99999999999999999999", "a@e1-1,a@e1-1", "%00", "a@e1-3/2"} {
			x := r.get("/v1/events?watch=a&until=end_of_snapshot&last_event_id=" + id)
			if got := x.Text(); x.StatusCode != 200 || !strings.Contains(got, `"reason":"invalid_position"`) {
				t.Errorf("%s: got %s %q", id, x.Status, got)
			}
		}
	})
}

func TestLargeValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		big := `"` + strings.Repeat("0123456789abcdef", 1<<16) + `"`
		r.Prime("a", 2, gatewaytest.Resource("big", 1, big), gatewaytest.Resource("small", 2, "1"))
		for _, format := range []string{"sse", "ndjson"} {
			got := r.get("/v1/events?watch=a&until=end_of_snapshot&format=" + format).Text()
			if strings.Count(got, `"value":`+big+"}\n") != 1 || !strings.Contains(got, `"complete"`) {
				t.Errorf("%s: got %d bytes", format, len(got))
			}
		}
	})
}

// A middleware that hides the deadlines must not cause streams that never end.
func TestResponseWithoutDeadlines(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	if _, err := registry.Add(watch.Config{Name: "a", Source: gatewaytest.NewScript()}); err != nil {
		t.Fatal(err)
	}
	log := make(chan string, 1)
	g, err := New(Config{Registry: registry, Logger: slog.New(slog.NewTextHandler(lines(log), nil))})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://gateway/v1/events?watch=a", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "no write deadline") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if got := <-log; !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "no write deadline") {
		t.Errorf("logged: %s", got)
	}
}
