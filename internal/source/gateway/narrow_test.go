package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// What narrows a watch is sent in its canonical form, with the name of the watch.
func TestDefinitionIsSentUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, u, stop := serve(t, Config{}, replies(primed(), goodbye("draining", 0)))
		defer stop()
		s, err := u.Source("w", definition(t, view.Params{
			Prefix: "eu/", Labels: "app in (web,shop)", Filter: "(value.n)>1", Fields: []string{"state,node", `tags."a,b"`}, LabelsAt: "meta.tags",
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Watch(t.Context(), stream.Resume{}, &calls{}); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"watch": "w", "deletes": "1", "prefix.w": "eu/", "labels.w": "app in (shop,web)", "filter.w": "value.n > 1", "fields.w": `node,state,tags."a,b"`,
		}
		got := f.requests[0].URL.Query()
		for name, value := range want {
			if got.Get(name) != value {
				t.Errorf("%s is %q, want %q", name, got.Get(name), value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("query %v, want no more than %v", got, want)
		}
	})
}

// answers replies to each request with a snapshot of each watch that it names; of those
// narrowed to a filter key == "…x" in the epoch e.x, with the filter as the only value.
func answers(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	write(w, hello)
	var positions []string
	for _, name := range query["watch"] {
		epoch, filter := "e", query.Get("filter."+name)
		if filter != "" {
			epoch = "e." + filter[len(filter)-2:len(filter)-1] // its last letter
		}
		write(w, eventOf(name, "reset", `,"reason":"initial"`, strings.Join(append(positions, name+"@"+epoch+"-0/1"), ",")),
			eventOf(name, "upsert", fmt.Sprintf(`,"key":"k","revision":"1","value":%q`, filter), ""))
		positions = append(positions, name+"@"+epoch+"-1")
		write(w, eventOf(name, "end_of_snapshot", `,"revision":"1","count":1`, strings.Join(positions, ",")))
	}
	<-r.Context().Done()
}

// followAll watches each source until ctx ends, and returns its calls once it has
// received everything that it can.
func followAll(t *testing.T, sources ...*Source) (sinks []*calls, stop func()) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	var running sync.WaitGroup
	for _, s := range sources {
		sink := &calls{}
		sinks = append(sinks, sink)
		running.Go(func() {
			for ctx.Err() == nil {
				_ = s.Watch(ctx, stream.Resume{}, sink)
				select {
				case <-time.After(time.Second): // as ingest's back-off would
				case <-ctx.Done():
				}
			}
		})
	}
	time.Sleep(10 * time.Second) // of the bubble
	synctest.Wait()
	return sinks, func() {
		cancel(over)
		running.Wait()
	}
}

// Two parts of one upstream watch never share a request or a position: each sink gets
// what its own definition selects, in the epoch of that definition.
func TestDefinitionsOfOneWatchDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, u, closeServer := serve(t, Config{}, answers)
		defer closeServer()
		filters := []string{`key == "a"`, `key == "b"`, ""}
		var sources []*Source
		for _, filter := range filters {
			s, err := u.Source("w", definition(t, view.Params{Filter: filter}))
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, s)
		}
		other, err := u.Source("v", definition(t, view.Params{Filter: `key == "a"`}))
		if err != nil {
			t.Fatal(err)
		}
		sinks, stop := followAll(t, append(sources, other)...)
		defer stop()
		for i, epoch := range []string{"e.a", "e.b", "e", "e.a"} {
			filter := append(slices.Clone(filters), filters[0])[i]
			want := fmt.Sprintf("reset %s\nupsert \"k\" 1 %q\ncommit 1", epoch, filter)
			if got := sinks[i].String(); !strings.HasPrefix(got, want) || strings.Count(got, "reset") != 1 {
				t.Errorf("source %d: calls\n%s\nwant\n%s", i, got, want)
			}
		}
		for _, r := range f.requests {
			if names := r.URL.Query()["watch"]; len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
				t.Errorf("a request names %q", names)
			}
		}
		if len(f.requests) != 3 {
			t.Errorf("%d requests, want 3: the other watch shares one of them", len(f.requests))
		}
	})
}

// Requests are shared only as far as a proxy on the way takes their URL.
func TestLongDefinitionsDoNotShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, u, closeServer := serve(t, Config{}, answers)
		defer closeServer()
		var sources []*Source
		const n = 6
		for i := range n {
			filter := fmt.Sprintf("key == %q", strings.Repeat("x", 1500)+fmt.Sprint(i))
			s, err := u.Source(fmt.Sprint("w", i), definition(t, view.Params{Filter: filter}))
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, s)
		}
		sinks, stop := followAll(t, sources...)
		defer stop()
		for i, sink := range sinks {
			if !strings.Contains(sink.String(), "commit 1") {
				t.Errorf("source %d has no snapshot", i)
			}
		}
		shared := false
		for _, r := range f.requests {
			shared = shared || len(r.URL.Query()["watch"]) > 1
			if got := len(r.URL.RawQuery); got > maxQuery {
				t.Errorf("a query of %d bytes, want at most %d", got, maxQuery)
			}
		}
		if !shared {
			t.Error("no request is shared, and three fit into one")
		}
	})
}

// A filter that the upstream refuses ends its own watch, with the upstream's text, and
// does not disturb the others: whether the refusal names the watch or only the parameter.
func TestRefusedFilterDoesNotDisturbOthers(t *testing.T) {
	const detail = "filter, column 5: the function f is unknown"
	for name, about := range map[string]string{"by watch": `"watch":"a.b"`, "by parameter": `"parameter":"filter.a.b"`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refusing := func(w http.ResponseWriter, r *http.Request) {
					if !r.URL.Query().Has("filter.a.b") {
						answers(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/problem+json")
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprintf(w, `{"title":"Bad Request","status":400,"detail":%q,%s}`, detail, about)
				}
				_, u, closeServer := serve(t, Config{}, refusing)
				defer closeServer()
				bad, err := u.Source("a.b", definition(t, view.Params{Filter: "value.n > 1"}))
				if err != nil {
					t.Fatal(err)
				}
				good, err := u.Source("w", nil)
				if err != nil {
					t.Fatal(err)
				}
				ended, other := make(chan error, 1), make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				sink := &calls{}
				go func() { ended <- bad.Watch(ctx, stream.Resume{}, &calls{}) }()
				go func() { other <- good.Watch(ctx, stream.Resume{}, sink) }()
				time.Sleep(10 * time.Second) // of the bubble
				if got := sink.String(); strings.Count(got, "reset") != 1 || !strings.Contains(got, "commit 1") || len(other) > 0 {
					t.Errorf("the other has ended %d times after the calls\n%s", len(other), got)
				}
				cancel()
				<-other
				want := `gateway http://gateway.test, watch "a.b": 400 Bad Request: ` + detail
				if err := <-ended; err == nil || err.Error() != want {
					t.Errorf("error %v\nwant  %s", err, want)
				}
			})
		})
	}
}
