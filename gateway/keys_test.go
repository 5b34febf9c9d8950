package gateway

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/view"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// TestViewOfKeys: all doors have exactly the keys that were asked for.
func TestViewOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		for door, path := range doors("orders", asking("keys", "b/3,none,a/1")) {
			if door == "one" {
				continue
			}
			x := r.get(path)
			synctest.Wait()
			if got := keysIn(x.Take()); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a/1", "b/3"}) {
				t.Errorf("%s has %q", door, got)
			}
		}
		if x := r.get("/v1/watches/orders/resources/a%2F2?keys=a/1"); x.StatusCode != 404 {
			t.Errorf("another resource: %s", x.Status)
		}
		x := r.get("/v1/watches/orders/events?keys=a/1")
		synctest.Wait()
		x.Take()
		r.Commit("orders", 4, gatewaytest.Resource("a/2", 4, `{"n":7}`))
		r.Commit("orders", 5, gatewaytest.Resource("a/1", 5, `{"n":8}`))
		synctest.Wait()
		if text := x.Take(); strings.Contains(text, "a/2") || !strings.Contains(text, `"key":"a/1","revision":"5"`) {
			t.Errorf("the changes: %s", text)
		}
		var many []string
		for i := range view.MaxKeys + 1 {
			many = append(many, fmt.Sprint(i))
		}
		p := refusedAs(t, r.get("/v1/watches/orders/events?keys="+strings.Join(many, ",")))
		if p.Status != 400 || p.Parameter != "keys" || !strings.Contains(p.Detail, "more than 1000 keys") {
			t.Errorf("too many: %+v", p)
		}
		p = refusedAs(t, r.get("/v1/events?watch=orders&watch=other&keys=a"))
		if p.Status != 400 || !strings.Contains(p.Detail, "keys.orders=") {
			t.Errorf("of which watch: %+v", p)
		}
	})
}

// TestListOfKeys: a list of keys is answered without a view, with the bytes that a view has: smaller pages and
// streams come from one.
func TestListOfKeys(t *testing.T) {
	for name, rule := range map[string]access.Rule{
		"everything":  {Read: "true"},
		"some rows":   {Read: `value.team == "red"`},
		"some fields": {Read: "true", Fields: []string{"team"}},
		"no field":    {Read: "true", Fields: []string{"none"}},
		"both":        {Read: `value.team == "red"`, Except: []string{"n"}},
		"other keys":  {Read: `key.startsWith("x")`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, g := gatewaytest.NewViews(t), newGuard(t)
				g.static("ci", "staff")
				r := newRig(t, Config{Access: g.accessBy(map[string]access.Rule{"orders": rule}), engine: v}, "orders")
				r.Prime("orders", 3,
					gatewaytest.Resource("b/3", 2, `{"n":3,"team":"red","secret":1}`), gatewaytest.Resource("a/1", 2, `{"n":1,"team":"red","secret":1}`),
					gatewaytest.Resource("a/2", 3, `{"n":2,"team":"blue","secret":1}`), gatewaytest.Resource("c/4", 3, `{"n":4,"team":"red","secret":1}`))
				for step := range 3 {
					const list = "/v1/watches/orders/resources?keys=b/3,none,a/2,a/1"
					x := r.get(list, g.as("ci"))
					got, tag := x.Text(), x.Header.Get("ETag")
					if x.StatusCode != 200 || len(v.Clients()) > 0 || step == 0 && v.Stats().Views > 0 {
						t.Fatalf("%s with %d views: %s", x.Status, v.Stats().Views, got)
					}
					if again := r.get(list, g.as("ci"), "If-None-Match: "+tag); again.StatusCode != 304 || again.Header.Get("ETag") != tag || len(v.Clients()) > 0 {
						t.Errorf("known: %s", again.Status)
					}
					if again := r.get(list, g.as("ci"), `If-None-Match: W/"e-1.1"`); again.StatusCode != 200 || again.Text() != got {
						t.Errorf("something else is known: %s", again.Status)
					}
					first, rest, _ := strings.Cut(got, `"resources":[`)
					pages := ""
					for token := ""; ; {
						page := r.get(list+"&page_size=1&page_token="+token, g.as("ci"))
						text := page.Text()
						head, one, _ := strings.Cut(text, `"resources":[`)
						if token == "" && page.Header.Get("ETag") != tag || head != first {
							t.Fatalf("of a view: %s %s\nof keys: %s %s", page.Header.Get("ETag"), text, tag, got)
						}
						one, token, _ = strings.Cut(one, `],"next_page_token":"`)
						if pages += one; token == `"}` || token == "\"}\n" {
							break
						}
						pages, token = pages+",", strings.TrimRight(token, "\"}\n")
					}
					if of, _, _ := strings.Cut(rest, `],"next_page_token":""`); of != pages {
						t.Errorf("of a view: %s\nof keys: %s", pages, of)
					}
					if strings.Contains(got, `"secret"`) != (len(rule.Fields) == 0) && pages != "" {
						t.Errorf("what is hidden: %s", got)
					}
					events := r.get("/v1/watches/orders/events?until=end_of_snapshot&keys=b/3,none,a/2,a/1", g.as("ci"))
					synctest.Wait()
					followed := events.Take()
					if len(v.Clients()) == 0 || !slices.Equal(slices.Sorted(slices.Values(upserts(followed))), slices.Sorted(slices.Values(upserts(got)))) || !strings.Contains(got, `"position":"`+lastID(t, followed)+`"`) {
						t.Errorf("a stream: %s\nof keys: %s", followed, got)
					}
					switch step {
					case 0: // it leaves the rows that may be seen, and something else comes
						r.Commit("orders", 5, gatewaytest.Resource("a/1", 5, `{"n":9,"team":"blue","secret":2}`), gatewaytest.Resource("x", 5, "1"))
					case 1:
						r.Do("orders", func(sink stream.Sink) error { return errors.Join(sink.Delete("b/3", 6), sink.Commit(6)) })
					}
					synctest.Wait()
				}
			})
		})
	}
}

// TestFirst: what is asked for comes before the rest, of each watch of a stream.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		text := r.get("/v1/events?watch=orders&watch=other&first.orders=b/3,none&until=end_of_snapshot").Text()
		got := keysIn(text[:strings.Index(text, "end_of_snapshot")])
		if got[0] != "b/3" {
			t.Errorf("the first watch has %q", got)
		}
		for _, test := range []struct{ query, parameter, detail string }{
			{"first=a,", "first", "a key is missing"},
			{"first.none=a", "first.none", "not part of this stream"},
			{"first=a&first.orders=b", "first", "both"},
			{"watch=other&first=a", "first", "first.orders="},
			{"first=" + url.QueryEscape(strings.Repeat("a,", view.MaxKeys)) + "b", "first", "more than 1000"},
		} {
			p := refusedAs(t, r.get("/v1/events?watch=orders&"+test.query))
			if p.Status != 400 || !strings.HasPrefix(p.Parameter, test.parameter) || !strings.Contains(p.Detail, test.detail) {
				t.Errorf("%s: %+v", test.query, p)
			}
		}
	})
}

// TestKeysOverGRPC: lists and calls of WatchList have keys, and calls have first.
func TestKeysOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		c := dialGRPC(t, r.gateway)
		list, err := c.ListResources(t.Context(), &api.ListResourcesRequest{Watch: "orders", Keys: []string{"a/2", "b/3,x"}})
		if err != nil || len(list.GetResources()) != 2 {
			t.Fatalf("the list: %v, %v", list, err)
		}
		calls, err := c.WatchList(t.Context(), &api.WatchListRequest{Watch: "orders", Keys: []string{"a/2,b/3"}, First: []string{"b/3"}, UntilEndOfSnapshot: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			m, err := calls.Recv()
			if err != nil {
				break
			}
			if u := m.GetUpsert(); u != nil {
				got = append(got, u.GetResource().GetKey())
			}
		}
		if !slices.Equal(got, []string{"b/3", "a/2", "b/3"}) {
			t.Errorf("the call has %q", got)
		}
		calls, err = c.WatchList(t.Context(), &api.WatchListRequest{Watch: "orders", First: []string{","}})
		if err == nil {
			_, err = calls.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("no key: %v", err)
		}
	})
}
