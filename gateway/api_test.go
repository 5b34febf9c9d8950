package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

func TestListWatches(t *testing.T) {
	r := newAPIRig(t, Config{})
	got := r.get("/v1/watches")
	got.want(t, 200, "")
	var list struct{ Watches []map[string]any }
	if err := json.Unmarshal([]byte(got.text), &list); err != nil || len(list.Watches) != 3 {
		t.Fatalf("%v in %s", err, got.text)
	}
	hosts := list.Watches[0]
	for name, want := range map[string]any{
		"name": "hosts", "source": "machine", "state": "in_sync", "epoch": "e1",
		"revision": "7", "count": 3.0, "subscribers": 0.0, "writable": false,
	} {
		if hosts[name] != want {
			t.Errorf("%s is %v, want %v", name, hosts[name], want)
		}
	}
	if since, _ := hosts["since"].(string); !strings.HasSuffix(since, "Z") {
		t.Errorf("since is %q", since)
	}
	if silent := list.Watches[2]; silent["state"] != "priming" || silent["epoch"] != "" || silent["revision"] != "0" {
		t.Errorf("a watch that is not primed: %v", silent)
	}
}

func TestGetWatch(t *testing.T) {
	r := newAPIRig(t, Config{})
	got := r.get("/v1/watches/notes")
	got.want(t, 200, "")
	for _, want := range []string{`{"name":"notes","source":"local","state":"in_sync","since":"`, `"revision":"1","count":0`, `"writable":true,"upstream":{"connected":true,"since":"`, `,"attempts":0},"changes":0}`} {
		if !strings.Contains(got.text, want) {
			t.Errorf("%s, want %s", got.text, want)
		}
	}
}

func TestUnknownWatch(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, path := range []string{
		"/v1/watches/note", "/v1/watches/note/resources", "/v1/watches/note/resources/a",
		"/v1/watches/note/changes", "/v1/watches/no%74e",
	} {
		got := r.get(path)
		got.wantProblem(t, 404, "", `there is no watch "note": did you mean "notes"?`)
		if !strings.Contains(got.text, `"watch":"note"`) {
			t.Errorf("%s: %s does not name the watch", path, got.text)
		}
	}
	r.get("/v1/watches/%FF%00/resources").wantProblem(t, 404, "", "there is no watch")
	// A slash in the name of a watch must not change the path.
	r.get("/v1/watches/notes%2Fresources/resources/a").wantProblem(t, 404, "", "there is no watch")
	r.send("PUT", "/v1/watches/note/resources/a", "1").wantProblem(t, 404, "", "did you mean")
}

func TestUnknownParameters(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, test := range []struct{ method, path, parameter, detail string }{
		{"GET", "/v1/watches?page_size=1", "page_size", "want none here"},
		{"GET", "/v1/watches/notes?x=1", "x", "want none here"},
		{"GET", "/v1/watches/notes/resources?pagesize=1", "pagesize", `did you mean "page_size"?`},
		{"GET", "/v1/watches/notes/resources?page_size=1&page_size=1", "page_size", "is given 2 times"},
		{"GET", "/v1/watches/notes/resources?watch=notes", "watch", "unknown parameter"},
		{"GET", "/v1/watches/notes/resources?fields.notes=a", "fields.notes", `did you mean "fields"?`},
		{"GET", "/v1/watches/notes/resources?page_size=x", "page_size", "want a number from 0 to 10000"},
		{"GET", "/v1/watches/notes/resources?page_size=-1", "page_size", "want a number"},
		{"GET", "/v1/watches/notes/resources?page_size=10001", "page_size", "want a number from 0 to 10000"},
		{"GET", "/v1/watches/notes/resources?page_token=x", "page_token", "want the next_page_token"},
		{"GET", "/v1/watches/notes/resources?pageToken=x", "pageToken", `did you mean "page_token"?`},
		{"GET", "/v1/watches/notes/resources/a?if_revision=1", "if_revision", "unknown parameter"},
		{"PUT", "/v1/watches/notes/resources/a?if_revision=1", "if_revision", "want key_encoding, validate_only"},
		{"PUT", "/v1/watches/notes/resources/a?value=1", "value", "unknown parameter"},
		{"DELETE", "/v1/watches/notes/resources/a?validate=true", "validate", "unknown parameter"},
		{"GET", "/v1/watches/notes/changes?since=x", "since", "unknown parameter"},
		{"GET", "/v1/watches/notes/changes?wait=1s&wait=2s", "wait", "is given 2 times"},
	} {
		r.send(test.method, test.path, bodyFor(test.method, "1")).wantProblem(t, 400, test.parameter, test.detail)
	}
	r.get("/v1/watches/notes/resources?a=%zz").wantProblem(t, 400, "query", "cannot be read")
	r.get("/v1/watches/notes/resources?a;b").wantProblem(t, 400, "query", "cannot be read")
}

func TestMethods(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, test := range []struct{ method, path, allow string }{
		{"POST", "/v1/watches", "GET, HEAD"},
		{"PUT", "/v1/watches/notes", "GET, HEAD"},
		{"DELETE", "/v1/watches/notes/resources", "GET, HEAD"},
		{"POST", "/v1/watches/notes/resources/a", "GET, HEAD, PUT, DELETE"},
		{"PATCH", "/v1/watches/notes/resources/a%2Fb", "GET, HEAD, PUT, DELETE"},
		{"POST", "/v1/watches/notes/events", "GET, HEAD"},
		{"POST", "/v1/watches/notes/changes", "GET, HEAD"},
	} {
		// grpc-gateway's ways to turn a POST into another method stay closed.
		got := r.send(test.method, test.path, bodyFor(test.method, "watch=notes"), "Content-Type: application/x-www-form-urlencoded", "X-HTTP-Method-Override: GET")
		got.wantProblem(t, 405, "", "is not a method of")
		if allow := got.Header.Get("Allow"); allow != test.allow {
			t.Errorf("%s %s: Allow: %s, want %s", test.method, test.path, allow, test.allow)
		}
	}
	r.get("/v1/watches/notes/nothing").wantProblem(t, 404, "", "nothing at")
}

func TestHead(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, path := range []string{"/v1/watches", "/v1/watches/hosts", "/v1/watches/hosts/resources", "/v1/watches/hosts/resources/default/a"} {
		got := r.send("HEAD", path, "")
		got.want(t, 200, "")
		if got.text != "" || got.ContentLength != int64(len(r.get(path).text)) {
			t.Errorf("HEAD %s: %d bytes, Content-Length %d", path, len(got.text), got.ContentLength)
		}
	}
	r.send("HEAD", "/v1/watches/hosts/resources/x", "").want(t, 404, "")
}

// TestHeadersOfAnswers checks that an answer may be stored but must be revalidated
// before use, and that no browser takes it for anything but JSON.
func TestHeadersOfAnswers(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, path := range []string{"/v1/watches", "/v1/watches/notes", "/v1/watches/hosts/resources", "/v1/watches/hosts/resources/default/a"} {
		h := r.get(path).Header
		for name, want := range map[string]string{
			"Content-Type": "application/json", "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff",
		} {
			if got := h.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
	}
}

// TestNoAnswerIsSniffed checks every kind of answer: a stream, a problem, text and
// the page.
func TestNoAnswerIsSniffed(t *testing.T) {
	r := newAPIRig(t, Config{HTTPSettings: HTTPSettings{AllowedOrigins: []string{"https://app.example.com"}}})
	for _, path := range []string{
		"/", "/openapi.json", "/healthz", "/readyz", "/metrics", "/v1/subscribers", "/v1/series", "/nowhere", "/v1/watches/nosuch",
		"/v1/watches/hosts/events?until=end_of_snapshot", "/v1/watches/hosts/changes", "/v1/events?watch=hosts&until=x",
	} {
		h := r.get(path).Header
		if got := h.Values("X-Content-Type-Options"); len(got) != 1 || got[0] != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options: %q, want nosniff", path, got)
		}
		if vary := strings.Join(h.Values("Vary"), ", "); !strings.Contains(vary, "Origin") {
			t.Errorf("%s: Vary: %q, want Origin in it: the answer says which origin may read it", path, vary)
		}
	}
}

// TestEventsAreNotKept checks that events are not cached, including those of a long
// poll.
func TestEventsAreNotKept(t *testing.T) {
	r := newAPIRig(t, Config{})
	for path, want := range map[string]string{
		"/v1/watches/hosts/changes":                      "no-store",
		"/v1/watches/hosts/events?until=end_of_snapshot": "no-cache, no-store, no-transform",
	} {
		if got := r.get(path).Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control: %q, want %q", path, got, want)
		}
	}
}

// TestNoHeaderIsForwarded checks that hop-by-hop headers and grpc-gateway's own have no
// effect.
func TestNoHeaderIsForwarded(t *testing.T) {
	r := newAPIRig(t, Config{})
	got := r.get("/v1/watches/hosts/resources/default/a", "Connection: keep-alive, X-Hop", "Keep-Alive: timeout=5", "TE: trailers",
		"Grpc-Timeout: nonsense", "Grpc-Metadata-Secret: x", "Accept: text/html", "Content-Type: ;;;", "X-Bin: %%%")
	got.want(t, 200, `{"key":"default/a","revision":"5","value":{"n":1}}`+"\n")
	for name := range got.Header {
		if strings.HasPrefix(name, "Grpc-") || name == "Trailer" {
			t.Errorf("header %s: %v", name, got.Header[name])
		}
	}
}

// A delete that has no revision changes the state but not the position.
func TestResourcesETagWhereDeletesHaveNoRevision(t *testing.T) {
	r := newAPIRig(t, Config{})
	gone := make(chan struct{})
	r.add(watch.Config{Name: "bus", SourceName: "bus", Source: stream.SourceFunc(
		func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
			if err := errors.Join(sink.Reset("_e"), sink.Upsert(gatewaytest.Resource("a", 5, "1")), sink.Upsert(gatewaytest.Resource("b", 6, "1")), sink.Commit(6)); err != nil {
				return err
			}
			<-gone
			if err := errors.Join(sink.Delete("a", 5), sink.Commit(6)); err != nil {
				return err
			}
			gone <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		},
	)})
	r.primed("bus")
	const path = "/v1/watches/bus/resources"
	tag := r.get(path).Header.Get("ETag")
	r.get(path, "If-None-Match: "+tag).want(t, 304, "")
	r.get(path+"?page_size=2", "If-None-Match: "+tag).want(t, 304, "")
	// The token of another page is valid for one position only.
	r.get(path+"?page_size=1", "If-None-Match: "+tag).want(t, 200, "")
	// Another replica may know of other deletes.
	_, run, _ := strings.Cut(tag, "~")
	r.get(path, "If-None-Match: "+strings.Replace(tag, run, `1"`, 1)).want(t, 200, "")
	gone <- struct{}{}
	<-gone
	if again := r.get(path, "If-None-Match: "+tag); again.StatusCode != http.StatusOK || !strings.Contains(again.text, `"count":1,`) {
		t.Errorf("%d %s, want the state without a", again.StatusCode, again.text)
	}
}

func TestResourcesETag(t *testing.T) {
	r := newAPIRig(t, Config{})
	const path = "/v1/watches/notes/resources"
	first := r.get(path)
	first.want(t, 200, `{"watch":"notes","position":"notes@e1-1","revision":"1","count":0,"resources":[],"next_page_token":""}`+"\n")
	tag := first.Header.Get("ETag")
	if tag != `W/"e1-0.0"` {
		t.Errorf("ETag %s", tag)
	}
	for _, header := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
		again := r.get(path, "If-None-Match: "+header)
		again.want(t, http.StatusNotModified, "")
		if again.text != "" || again.Header.Get("ETag") != tag {
			t.Errorf("304 with %q, ETag %s", again.text, again.Header.Get("ETag"))
		}
	}
	r.send("PUT", path+"/a", "1").want(t, 201, "")
	r.get(path, "If-None-Match: "+tag).want(t, 200, "")
	// A part of the watch has tags of its own.
	narrowed := r.get(path+"?prefix=a", "If-None-Match: "+r.get(path).Header.Get("ETag"))
	narrowed.want(t, 200, "")
	r.get(path+"?prefix=a", "If-None-Match: "+narrowed.Header.Get("ETag")).want(t, 304, "")
}

// page is the answer of /resources.
type page struct {
	Watch, Position, Revision string
	Count                     int
	Resources                 []struct{ Key, Revision string }
	NextPageToken             string `json:"next_page_token"`
}

func (r *apiRig) page(t *testing.T, query string) page {
	t.Helper()
	got := r.get("/v1/watches/notes/resources?" + query)
	got.want(t, 200, "")
	var p page
	if err := json.Unmarshal([]byte(got.text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPagesAtOneRevision checks that writes between two pages are not seen, not even
// in resources on later pages.
func TestPagesAtOneRevision(t *testing.T) {
	r := newAPIRig(t, Config{})
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("k%02d", i)
		want = append(want, key)
		r.send("PUT", "/v1/watches/notes/resources/"+key, "1").want(t, 201, "")
	}
	p := r.page(t, "page_size=10")
	position := p.Position
	var got []string
	for i := 0; ; i++ {
		if p.Position != position || p.Revision != "26" || p.Count != 25 {
			t.Fatalf("page %d: %+v, want all at %s", i, p, position)
		}
		for _, one := range p.Resources {
			got = append(got, one.Key)
		}
		if p.NextPageToken == "" {
			break
		}
		r.send("PUT", fmt.Sprintf("/v1/watches/notes/resources/k%02d", 24-i), "2").want(t, 200, "")
		r.send("PUT", fmt.Sprintf("/v1/watches/notes/resources/new%d", i), "2").want(t, 201, "")
		r.send("DELETE", fmt.Sprintf("/v1/watches/notes/resources/k%02d", 20-i), "").want(t, 200, "")
		p = r.page(t, "page_size=10&page_token="+url.QueryEscape(p.NextPageToken))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the pages show %v, want %v", got, want)
	}
}

func TestPagesWithPrefix(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, key := range []string{"a/1", "b/1", "a/2", "b/2", "a/3"} {
		r.send("PUT", "/v1/watches/notes/resources/"+key, "1").want(t, 201, "")
	}
	p := r.page(t, "prefix=a/&page_size=2")
	if p.Count != 3 || len(p.Resources) != 2 || p.Resources[0].Key != "a/1" || p.NextPageToken == "" {
		t.Fatalf("first page: %+v", p)
	}
	token := url.QueryEscape(p.NextPageToken)
	if p = r.page(t, "prefix=a/&page_token="+token); len(p.Resources) != 1 || p.Resources[0].Key != "a/3" || p.NextPageToken != "" {
		t.Errorf("second page: %+v", p)
	}
	r.get("/v1/watches/notes/resources?page_token="+token).wantProblem(t, 410, "page_token", "is gone")
}

func TestNonUTF8Prefix(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.send("PUT", "/v1/watches/notes/resources/%FFa", "1").want(t, 201, "")
	r.send("PUT", "/v1/watches/notes/resources/b", "1").want(t, 201, "")
	if p := r.page(t, "prefix=%FF"); len(p.Resources) != 1 || p.Resources[0].Key != "/2E=" {
		t.Errorf("%+v", p)
	}
}

func TestPageGone(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, key := range []string{"a", "b", "c"} {
		r.send("PUT", "/v1/watches/notes/resources/"+key, "1").want(t, 201, "")
	}
	token := r.page(t, "page_size=1").NextPageToken
	// Another epoch: the upstream was restored.
	w, _ := r.registry.Watch("notes")
	r.registry.Remove(w.Name())
	restored := newNotebook()
	restored.epoch = "e2"
	r.add(streamConfig("notes", restored))
	r.primed("notes")
	got := r.get("/v1/watches/notes/resources?page_size=1&page_token=" + url.QueryEscape(token))
	got.wantProblem(t, 410, "page_token", "begin again without page_token")
}

func TestNotPrimed(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, path := range []string{"/v1/watches/silent/resources", "/v1/watches/silent/resources/a", "/v1/watches/silent/changes?wait=1s"} {
		got := r.get(path)
		got.wantProblem(t, 503, "", `watch "silent" has not received its first complete snapshot yet: no snapshot yet`)
		if got.Header.Get("Retry-After") != "2" {
			t.Errorf("%s: Retry-After: %q", path, got.Header.Get("Retry-After"))
		}
	}
}

// TestOnDemand checks that a request starts a watch that runs on demand.
func TestOnDemand(t *testing.T) {
	r := newAPIRig(t, Config{StreamSettings: StreamSettings{PrimeWait: 10e9}})
	c := streamConfig("lazy", newNotebook())
	c.OnDemand = true
	r.add(c)
	if got := r.get("/v1/watches/lazy"); !strings.Contains(got.text, `"state":"priming"`) {
		t.Errorf("before the first request: %s", got.text)
	}
	r.get("/v1/watches/lazy/resources").want(t, 200, "")
	r.send("PUT", "/v1/watches/lazy/resources/a", "1").want(t, 201, "")
}

func TestOpenAPIIsServed(t *testing.T) {
	r := newAPIRig(t, Config{})
	got := r.get("/openapi.json")
	got.want(t, 200, "")
	if got.Header.Get("Content-Type") != "application/json" || !json.Valid([]byte(got.text)) {
		t.Errorf("%v, %d bytes", got.Header, len(got.text))
	}
}

// TestWriteThenRead checks that a client reads its own write once the write is
// answered.
func TestWriteThenRead(t *testing.T) {
	r := newAPIRig(t, Config{})
	for i := range 50 {
		body := fmt.Sprint(i)
		r.send("PUT", "/v1/watches/notes/resources/a", body)
		if got := r.get("/v1/watches/notes/resources/a"); !strings.Contains(got.text, `"value":`+body+`}`) {
			t.Fatalf("after PUT %s: %s", body, got.text)
		}
		if i%5 == 0 {
			r.send("DELETE", "/v1/watches/notes/resources/a", "")
			r.get("/v1/watches/notes/resources/a").want(t, 404, "")
		}
	}
}

// TestBodyThatBreaksOff checks a client that promises more than it sends.
func TestBodyThatBreaksOff(t *testing.T) {
	r := newAPIRig(t, Config{})
	body := io.MultiReader(strings.NewReader(`{"a":`), brokenReader{})
	req, _ := http.NewRequest("PUT", r.url+"/v1/watches/notes/resources/a", body)
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Errorf("answered with %s", res.Status)
	}
	r.get("/v1/watches/notes/resources/a").want(t, 404, "")
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestProblemsNameTheResource checks that the problem names the watch and the
// key of the path.
func TestProblemsNameTheResource(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, test := range []struct{ method, path, header, watch, key string }{
		{"GET", "/v1/watches/notes?x=1", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources?page_size=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources?page_token=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources/a?x=1", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources/a", "", "notes", "a"},
		{"PUT", "/v1/watches/notes/resources/a%2Fb", "If-Match: x", "notes", "a/b"},
		{"PUT", "/v1/watches/notes/resources/%FF", `If-Match: "7"`, "notes", "/w=="},
		{"DELETE", "/v1/watches/notes/resources/a", "If-None-Match: *", "notes", "a"},
		{"DELETE", "/v1/watches/hosts/resources/a", "", "hosts", ""},
		{"GET", "/v1/watches/notes/changes?wait=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/events?until=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/events", "Accept: text/html", "notes", ""},
		{"GET", "/v1/watches?x=1", "", "", ""},
		{"GET", "/v1/events?watch=notes&until=x", "", "", ""},
	} {
		var headers []string
		if test.header != "" {
			headers = append(headers, test.header)
		}
		got := r.send(test.method, test.path, bodyFor(test.method, "1"), headers...)
		var p problem.Problem
		if err := json.Unmarshal([]byte(got.text), &p); err != nil || p.Watch != test.watch || p.Key != test.key {
			t.Errorf("%s %s: %s (%v), want watch %q and key %q", test.method, test.path, got.text, err, test.watch, test.key)
		}
	}
}
