package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// template makes watches t-…, except t-none, of one resource that has the name of the watch.
func template(limit int, connected *atomic.Int64) watch.TemplateConfig {
	return watch.TemplateConfig{
		Name: "t-{x}", Max: limit, Match: func(name string) bool { return strings.HasPrefix(name, "t-") },
		Make: func(name, _ string) (watch.Config, error) {
			if name == "t-none" {
				return watch.Config{}, watch.ErrNoWatch
			}
			return watch.Config{Logger: slog.New(slog.DiscardHandler), Source: stream.SourceFunc(
				func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
					connected.Add(1)
					defer connected.Add(-1)
					if err := sink.Reset("e1"); err != nil {
						return err
					}
					if err := sink.Upsert(stream.Resource{Key: "name", Revision: 1, Value: []byte(`"` + name + `"`)}); err != nil {
						return err
					}
					if err := sink.Commit(1); err != nil {
						return err
					}
					<-ctx.Done()
					return ctx.Err()
				})}, nil
		},
	}
}

// addTemplate adds a template to the registry of a rig.
func addTemplate(t *testing.T, r *watch.Registry, c watch.TemplateConfig) {
	t.Helper()
	if _, err := r.AddTemplate(c); err != nil {
		t.Fatal(err)
	}
}

// TestTemplateAtEveryDoor asks for a watch of a template in every way, each the first time.
func TestTemplateAtEveryDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{engine: gatewaytest.NewViews(t)}, "a")
		r.Prime("a", 1)
		var connected atomic.Int64
		addTemplate(t, r.Registry, template(100, &connected))
		for i, path := range []string{
			"/v1/watches/NAME/events?until=end_of_snapshot", "/v1/events?watch=a&watch=NAME&until=end_of_snapshot", "/v1/watches/NAME/resources", "/v1/watches/NAME/resources/name",
			"/v1/watches/NAME/changes", "/v1/watches/NAME/resources?filter=" + url.QueryEscape(`revision == 1`), "/v1/watches/NAME",
		} {
			name := fmt.Sprint("t-", i)
			x := r.get(strings.Replace(path, "NAME", name, 1))
			if x.StatusCode != 200 || !strings.Contains(x.Text(), `"`+name+`"`) {
				t.Errorf("%s: %d %s", path, x.StatusCode, x.Text())
			}
		}
		if x := r.get("/v1/watches"); !strings.Contains(x.Text(), `"t-3"`) || strings.Contains(x.Text(), "t-{x}") {
			t.Errorf("the list: %s", x.Text())
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if n := len(r.Registry.Watches()); n != 1 || connected.Load() != 0 {
			t.Errorf("%d watches are left, and %d connections", n, connected.Load())
		}
	})
}

// TestTemplateOfWindows opens watches of a template that has an order, at every door, and follows one.
func TestTemplateOfWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		own := views.NewDeclared()
		t.Cleanup(own.Close)
		addTemplate(t, r.Registry, watch.TemplateConfig{
			Name: "top-{team}", Match: func(name string) bool { return strings.HasPrefix(name, "top-") },
			Make: func(name, _ string) (watch.Config, error) {
				team := strings.TrimPrefix(name, "top-")
				d, err := view.Parse(view.Params{Filter: fmt.Sprintf("value.team == %q", team), Order: "-n", Limit: "1"})
				if err != nil {
					return watch.Config{}, err
				}
				open := func() (*watch.Watch, error) { return r.Registry.Open("orders") }
				return watch.Config{Logger: slog.New(slog.DiscardHandler), Source: own.WindowSource("orders", open, d)}, nil
			},
		})
		for _, path := range []string{"/events?until=end_of_snapshot", "/resources", "/changes", "/resources?order=n&limit=5"} {
			if got := keysIn(r.get("/v1/watches/top-blue" + path).Text()); !slices.Equal(got, []string{"a/2"}) {
				t.Errorf("%s has %q", path, got)
			}
		}
		x := r.get("/v1/watches/top-red/events")
		synctest.Wait()
		text := x.Take()
		if !slices.Equal(keysIn(text), []string{"b/3"}) || strings.Contains(text, `"total":`) {
			t.Errorf("the snapshot: %s", text)
		}
		r.Commit("orders", 4, gatewaytest.Resource("a/1", 4, `{"n":7,"team":"red"}`), gatewaytest.Resource("a/2", 4, `{"n":9,"team":"blue"}`))
		synctest.Wait()
		text = x.Take()
		if !slices.Equal(keysIn(text), []string{"a/1"}) || !strings.Contains(text, `"type":"delete","watch":"top-red","key":"b/3","revision":"4"`) {
			t.Errorf("the change: %s", text)
		}
		y := r.get("/v1/watches/top-red/events", "Last-Event-ID: "+lastID(t, text))
		synctest.Wait()
		if text := y.Take(); !strings.Contains(text, `"mode":"resume"`) || strings.Contains(text, "event: upsert") {
			t.Errorf("the resume: %s", text)
		}
	})
}

// TestTemplateOverGRPC asks for watches of a template over gRPC.
func TestTemplateOverGRPC(t *testing.T) {
	r := newAPIRig(t, Config{StreamSettings: StreamSettings{PrimeWait: time.Minute}})
	var connected atomic.Int64
	addTemplate(t, r.registry, template(1, &connected))
	call, err := r.grpc.WatchList(t.Context(), &api.WatchListRequest{Watch: "t-a"})
	if err != nil {
		t.Fatal(err)
	}
	for upsert := (*api.Upsert)(nil); upsert == nil; {
		m, err := call.Recv()
		if err != nil {
			t.Fatal(err)
		}
		upsert = m.GetUpsert()
	}
	for name, want := range map[string]codes.Code{"t-b": codes.Unavailable, "u-none": codes.NotFound, "t-a/b": codes.NotFound} {
		if _, err := r.grpc.ListResources(t.Context(), &api.ListResourcesRequest{Watch: name}); status.Code(err) != want {
			t.Errorf("list of %s: %v", name, err)
		}
		call, err := r.grpc.WatchList(t.Context(), &api.WatchListRequest{Watch: name})
		if err == nil {
			_, err = call.Recv()
		}
		if status.Code(err) != want {
			t.Errorf("stream of %s: %v", name, err)
		}
	}
	if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", "grpc", "reason", "template"); n != 1 {
		t.Errorf("%v refusals are counted", n)
	}
}

// TestTemplateIsNoOracle: every name that has no watch gets the same answer, and learns no
// name that somebody else asked for.
func TestTemplateIsNoOracle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "orders")
		var connected atomic.Int64
		addTemplate(t, r.Registry, template(10, &connected))
		addTemplate(t, r.Registry, watch.TemplateConfig{
			Name: "secret-{x}", Match: func(name string) bool { return name == "secret-project" },
			Make: template(1, &connected).Make,
		})
		r.get("/v1/watches/secret-project/resources")
		answer := func(name, path string) string {
			x := r.get(fmt.Sprintf(path, url.PathEscape(name)))
			if x.StatusCode != 404 {
				t.Errorf("%s of %q: %d", path, name, x.StatusCode)
			}
			return strings.ReplaceAll(x.Text(), name, "NAME")
		}
		for _, path := range []string{"/v1/watches/%s", "/v1/watches/%s/resources", "/v1/watches/%s/events", "/v1/watches/%s/changes"} {
			want := answer("zzzzzz", path)
			for _, name := range []string{"t-none", "secret-projecT", "secret-projec", "secret-", "t-{x}", "secret-{x}", "t-*", "t-x y", "t-" + strings.Repeat("x", 63), "t-é"} {
				if got := answer(name, path); got != want || strings.Contains(got, "secret") {
					t.Errorf("%s of %q:\ngot  %s\nwant %s", path, name, got, want)
				}
			}
		}
		if got := r.get("/v1/watches/ordres").Text(); !strings.Contains(got, `did you mean \"orders\"?`) {
			t.Errorf("a watch of the configuration is not proposed: %s", got)
		}
	})
}

// TestTemplateTooMany checks for a 503, except for a browser, which would give up on it.
func TestTemplateTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		var connected atomic.Int64
		addTemplate(t, r.Registry, template(1, &connected))
		first := r.get("/v1/watches/t-a/events")
		synctest.Wait()
		const text = "1 watches of this kind are open, of 1 at most"
		for _, path := range []string{"/v1/watches/t-b/events", "/v1/events?watch=a&watch=t-b", "/v1/watches/t-b/changes", "/v1/watches/t-b/resources", "/v1/watches/t-b"} {
			x := r.get(path)
			if x.StatusCode != 503 || x.Header.Get("Retry-After") == "" || !strings.Contains(x.Text(), text) || strings.Contains(x.Text(), "t-a") {
				t.Errorf("%s: %d %v %s", path, x.StatusCode, x.Header, x.Text())
			}
		}
		browser := r.get("/v1/events?watch=t-b", eventStream)
		if got := browser.Text(); browser.StatusCode != 200 || !strings.Contains(got, `"reason":"overloaded"`) || !strings.Contains(got, ": "+text) {
			t.Errorf("a browser: %d %s", browser.StatusCode, got)
		}
		for transport, want := range map[string]float64{"sse": 3, "poll": 1} {
			if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", transport, "reason", "template"); n != want {
				t.Errorf("%s: %v refusals are counted, want %v", transport, n, want)
			}
		}
		if x := r.get("/v1/watches/t-a/resources"); x.StatusCode != 200 {
			t.Errorf("the open one: %d", x.StatusCode)
		}
		first.Cancel()
		<-time.After(5 * time.Second)
		if x := r.get("/v1/watches/t-b/resources"); x.StatusCode != 200 {
			t.Errorf("after it was left: %d %s", x.StatusCode, x.Text())
		}
	})
}

// TestClientThatGoesThroughNames checks that what such a client causes is bounded, and that
// no metric has a name that it made up.
func TestClientThatGoesThroughNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		var connected atomic.Int64
		c := template(limit, &connected)
		c.MaxPerClient = limit
		addTemplate(t, r.Registry, c)
		r.get("/v1/watches/a/resources").Text()
		before := runtime.NumGoroutine()
		served, refused := 0, 0
		for i := range 300 {
			x := r.get(fmt.Sprint("/v1/watches/t-", i, "/resources"))
			x.Text()
			switch x.StatusCode {
			case 200:
				served++
			case 503:
				refused++
			default:
				t.Fatalf("%d %s", x.StatusCode, x.Text())
			}
			if n := len(r.Registry.Watches()); n > limit+1 || connected.Load() > limit {
				t.Fatalf("%d watches, %d connections", n, connected.Load())
			}
			if n := runtime.NumGoroutine(); n > before+3*limit+10 {
				t.Fatalf("%d goroutines more", n-before)
			}
			<-time.After(100 * time.Millisecond)
		}
		// 30 s, in each 5 of which all may be made once more.
		if served < limit || served > 7*limit || refused == 0 {
			t.Errorf("%d served, %d refused", served, refused)
		}
		if n := counter(t, r.gateway, "watchtide_upstream_resyncs_total", "watch", "t-{x}", "reason", "initial"); n != float64(served) {
			t.Errorf("%v snapshots are counted, of %d", n, served)
		}
		if n := counter(t, r.gateway, "watchtide_template_watches", "watch", "t-{x}"); n != limit {
			t.Errorf("%v watches are open", n)
		}
		if n := counter(t, r.gateway, "watchtide_watch_resources", "watch", "t-{x}"); n != limit {
			t.Errorf("%v resources", n)
		}
		if n := counter(t, r.gateway, "watchtide_upstream_connected", "watch", "t-{x}"); n != limit {
			t.Errorf("%v upstreams are connected", n)
		}
		if n := counter(t, r.gateway, "watchtide_watch_out_of_sync_seconds", "watch", "t-{x}"); n != 0 {
			t.Errorf("one of the watches is out of sync for %v s", n)
		}
		allowed := []string{"a", "t-{x}"}
		for _, f := range gather(t, r.gateway) {
			for _, m := range f.GetMetric() {
				for _, label := range m.GetLabel() {
					if label.GetName() == "watch" && !slices.Contains(allowed, label.GetValue()) {
						t.Errorf("%s has the label %s", f.GetName(), label)
					}
				}
			}
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if n := len(r.Registry.Watches()); n != 1 || connected.Load() != 0 {
			t.Errorf("%d watches are left, and %d connections", n, connected.Load())
		}
		if n := counter(t, r.gateway, "watchtide_upstream_resyncs_total", "watch", "t-{x}", "reason", "initial"); n != float64(served) {
			t.Errorf("%v snapshots are counted after all were closed, of %d", n, served)
		}
	})
}

// TestTemplateMakesAWatchAgain: a watch that was removed between being looked up and being
// used is made again.
func TestTemplateMakesAWatchAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		var connected atomic.Int64
		addTemplate(t, r.Registry, template(1, &connected))
		found, p := r.gateway.now.Load().lookup.Find(t.Context(), "t-a", "")
		if p != nil {
			t.Fatal(p)
		}
		whole, p := found.Narrow(t.Context(), authz.Narrowing{}, "")
		if p != nil {
			t.Fatal(p)
		}
		removed, _ := r.Registry.Watch("t-a")
		r.Registry.Remove("t-a")
		again, err := whole.Open(views.Request{})
		if err != nil || again == removed || again.Name() != "t-a" {
			t.Errorf("got %v, %v", again, err)
		}
		r.Registry.Remove("t-a")
		r.get("/v1/watches/t-b")
		one := session.RequestOne("grpc", "t-a", "")
		_, err = r.gateway.now.Load().deps.Open(&one, []authz.Part{whole}, limits.Client{})
		var refused *limits.Refusal
		if !errors.As(err, &refused) || refused.Reason != "template" {
			t.Errorf("without room: got %v", err)
		}
	})
}
