package gateway

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/view"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
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
