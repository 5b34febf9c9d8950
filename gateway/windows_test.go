package gateway

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

// keysIn returns the keys that a stream, a list or a long poll has, in order.
func keysIn(text string) (out []string) {
	for _, one := range upserts(text) {
		key, _, _ := strings.Cut(one, " ")
		out = append(out, key)
	}
	return out
}

// TestStreamOfAWindow: only what is in the window travels.
func TestStreamOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		x := r.get("/v1/watches/orders/events" + asking("order", "-n", "limit", "2"))
		synctest.Wait()
		text := x.Take()
		if got := keysIn(text); !slices.Equal(got, []string{"b/3", "a/2"}) || !strings.Contains(text, `"count":2,"total":3,"before":0,"next":"`) {
			t.Errorf("the snapshot has %q:\n%s", got, text)
		}
		r.Commit("orders", 4, gatewaytest.Resource("a/1", 4, `{"n":7}`))
		synctest.Wait()
		text = x.Take()
		for _, want := range []string{`{"type":"delete","watch":"orders","key":"a/2","revision":"4","left":true}`, `"key":"a/1","revision":"4","value":{"n":7}`} {
			if !strings.Contains(text, want) {
				t.Errorf("the change lacks %s:\n%s", want, text)
			}
		}
		id := lastID(t, text)
		r.Commit("orders", 5, gatewaytest.Resource("a/1", 5, `{"n":0}`))
		synctest.Wait()
		y := r.get("/v1/watches/orders/events"+asking("order", "-n", "limit", "2"), "Last-Event-ID: "+id)
		synctest.Wait()
		text = y.Take()
		for _, want := range []string{`"mode":"resume"`, `"key":"a/1","revision":"5"}`, `"key":"a/2","revision":"2"`, `"total":3,"before":0,"next":"`} {
			if !strings.Contains(text, want) {
				t.Errorf("the resume lacks %s:\n%s", want, text)
			}
		}
	})
}

// TestListOfAWindow: a list comes in the order of its window, without pages.
func TestListOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		at := "/v1/watches/orders/resources"
		x := r.get(at + asking("order", "team,-n", "limit", "2", "offset", "1"))
		text := x.Text()
		if got := keysIn(text); !slices.Equal(got, []string{"b/3", "a/1"}) || !strings.Contains(text, `"count":2,"total":3,"before":1,"resources":[`) || x.Header.Get("ETag") != "" {
			t.Errorf("the list has %q: %s", got, text)
		}
		if got := keysIn(r.get(at + asking("order", "-n", "limit", "5", "labels", "zone=y")).Text()); !slices.Equal(got, []string{"b/3", "a/2"}) {
			t.Errorf("with labels: %q", got)
		}
		if got := r.get(at + asking("order", "n", "limit", "5", "offset", "3")).Text(); !strings.Contains(got, `"count":0,"total":3,"before":3,"resources":[]`) {
			t.Errorf("beyond the end: %s", got)
		}
		poll := r.get("/v1/watches/orders/changes" + asking("order", "-n", "limit", "1")).Text()
		if !strings.Contains(poll, `"key":"b/3"`) || !strings.Contains(poll, `"count":1,"total":3,"before":0,"next":"`) {
			t.Errorf("the long poll: %s", poll)
		}
	})
}

// TestWindowOfAPrefix: its total, its places and its changes are those of the keys that begin with the prefix.
func TestWindowOfAPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		text := r.get("/v1/watches/orders/resources" + asking("prefix", "a/", "order", "-n", "limit", "5", "offset", "1")).Text()
		if !slices.Equal(keysIn(text), []string{"a/1"}) || !strings.Contains(text, `"count":1,"total":2,"before":1,"resources":[`) {
			t.Errorf("the list: %s", text)
		}
		x := r.get("/v1/watches/orders/events" + asking("prefix", "a/", "order", "-n", "limit", "1"))
		synctest.Wait()
		if text := x.Take(); !slices.Equal(keysIn(text), []string{"a/2"}) || !strings.Contains(text, `"count":1,"total":2,"before":0,"next":"`) {
			t.Errorf("the snapshot: %s", text)
		}
		r.Commit("orders", 4, gatewaytest.Resource("b/4", 4, `{"n":9}`))
		synctest.Wait()
		if text := x.Take(); strings.Contains(text, "b/4") {
			t.Errorf("another prefix: %s", text)
		}
		r.Commit("orders", 5, gatewaytest.Resource("a/5", 5, `{"n":9}`))
		synctest.Wait()
		if text := x.Take(); !slices.Equal(keysIn(text), []string{"a/5"}) || !strings.Contains(text, `"key":"a/2","revision":"5","left":true`) {
			t.Errorf("the change: %s", text)
		}
	})
}

// nextIn returns the cursor that a stream or a list has sent last.
func nextIn(t *testing.T, text string) string {
	t.Helper()
	all := regexp.MustCompile(`"next":"([^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		t.Fatalf("no cursor in %s", text)
	}
	return all[len(all)-1][1]
}

// TestWindowAfterAPlace: a cursor keeps its place when what is before it changes, and its own resource.
func TestWindowAfterAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		list := "/v1/watches/orders/resources"
		next := nextIn(t, r.get(list+asking("order", "n", "limit", "1")).Text())
		x := r.get("/v1/watches/orders/events" + asking("order", "n", "limit", "2", "after", next))
		synctest.Wait()
		if text := x.Take(); !slices.Equal(keysIn(text), []string{"a/2", "b/3"}) || !strings.Contains(text, `"total":3,"before":1}`) {
			t.Errorf("after the first: %s", text)
		}
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"n":0}`), gatewaytest.Resource("a/1", 4, `{"n":9}`))
		synctest.Wait()
		if text := x.Take(); strings.Contains(text, "event: upsert") || strings.Contains(text, "event: delete") {
			t.Errorf("what is before the place has changed, and what is behind the window: %s", text)
		}
		text := r.get(list + asking("order", "n", "limit", "2", "after", next)).Text()
		if !slices.Equal(keysIn(text), []string{"a/2", "b/3"}) || !strings.Contains(text, `"total":4,"before":1,"next":"`) {
			t.Errorf("the list: %s", text)
		}
		text = r.get(list + asking("order", "n", "limit", "2", "after", nextIn(t, text))).Text()
		if !slices.Equal(keysIn(text), []string{"a/1"}) || strings.Contains(text, `"next":`) {
			t.Errorf("the last page: %s", text)
		}
		for _, test := range []struct{ detail, query string }{
			{"cursor of another order", asking("order", "-n", "limit", "2", "after", next)},
			{"no cursor", asking("order", "n", "limit", "2", "after", "orders@e-3")},
			{"want one of them", asking("order", "n", "limit", "2", "after", next, "offset", "1")},
			{"want order too", asking("after", next)},
		} {
			if p := refusedAs(t, r.get(list+test.query)); p.Status != 400 || p.Parameter != "after" || !strings.Contains(p.Detail, test.detail) {
				t.Errorf("%s: %+v", test.query, p)
			}
		}
	})
}

// TestStreamOfSeveralWindows names the watches of the parameters.
func TestStreamOfSeveralWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		text := r.get("/v1/events" + asking("watch", "orders", "watch", "other", "order.orders", "n", "limit.orders", "1", "until", "end_of_snapshot")).Text()
		if strings.Count(text, "event: upsert") != 2 || strings.Count(text, `"total":3`) != 1 || strings.Count(text, "end_of_snapshot\ndata") != 2 {
			t.Errorf("%s", text)
		}
	})
}

func TestBadWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		for _, test := range []struct {
			query             []string
			parameter, detail string
		}{
			{[]string{"order", "n"}, "limit", "limit, column 1: it is missing: want 1 to 1000 with an order"},
			{[]string{"order", "n", "limit", "0"}, "limit", `limit, column 1: "0": want 1 to 1000`},
			{[]string{"order", "n", "limit", "1001"}, "limit", `"1001": want 1 to 1000`},
			{[]string{"order", "n:desc", "limit", "1"}, "order", "want -n for descending"},
			{[]string{"order", "n,-n", "limit", "1"}, "order", "the field n is named twice"},
			{[]string{"order", "n", "limit", "x"}, "limit", `"x": want 1 to 1000`},
			{[]string{"order", "n", "limit", "1", "offset", "-1"}, "offset", `"-1": want 0 to 2147483648`},
			{[]string{"order", "n,-", "limit", "1"}, "order", "order, column 4: a name is missing at the end"},
			{[]string{"order", "a[0]", "limit", "1"}, "order", "there are no indices"},
			{[]string{"order", "a,b,c,d,e,f,g,h,i", "limit", "1"}, "order", "there are 9 columns, and at most 8 are allowed"},
		} {
			for door, path := range doors("orders", asking(test.query...)) {
				if door == "one" {
					continue
				}
				if p := refusedAs(t, r.get(path)); p.Status != 400 || p.Parameter != test.parameter || !strings.Contains(p.Detail, test.detail) {
					t.Errorf("%s of %q: %+v", door, test.query, p)
				}
			}
		}
		if p := refusedAs(t, r.get("/v1/watches/orders/events"+asking("limit", "1"))); p.Parameter != "limit" || p.Detail != "limit, column 1: a limit belongs to an order: want order too" {
			t.Errorf("a limit alone: %+v", p)
		}
		for query, want := range map[string]problem.Problem{
			"watch=orders&watch=other&order.orders=n":      {Parameter: "limit.orders", Detail: "limit.orders, column 1: it is missing"},
			"watch=orders&limit.orders=1":                  {Parameter: "limit.orders", Detail: "a limit belongs to an order: want order.orders too"},
			"watch=orders&order=n&offset.orders=1":         {Parameter: "limit.orders", Detail: "limit.orders, column 1: it is missing"},
			"watch=orders&order=n&limit.orders=1&offset=x": {Parameter: "offset", Detail: "offset, column 1: "},
			"watch=orders&watch=other&offset.other=1":      {Parameter: "offset.other", Detail: "want order.other too"},
			"watch=orders&watch=other&sum.other=n":         {Parameter: "sum.other", Detail: "sum.other is given without by.other"},
			"watch=orders&watch=other&by.other=-n":         {Parameter: "by.other", Detail: "by.other, column 1: unexpected -"},
			"watch=orders&first=b,%22a":                    {Parameter: "first", Detail: "first, column 3: the quotation mark is never closed"},
			"watch=orders&watch=other&first.other=%22a":    {Parameter: "first.other", Detail: "first.other, column 1: the quotation mark"},
		} {
			p := refusedAs(t, r.get("/v1/events?"+query))
			if p.Status != 400 || p.Parameter != want.Parameter || !strings.Contains(p.Detail, want.Detail) || p.Place == nil && !strings.HasPrefix(want.Parameter, "sum") {
				t.Errorf("%s: %+v", query, p)
			}
		}
		for _, parameter := range []string{"page_size", "page_token"} {
			p := refusedAs(t, r.get("/v1/watches/orders/resources"+asking("order", "n", "limit", "1", parameter, "5")))
			if p.Parameter != parameter || !strings.Contains(p.Detail, "a window has no pages") {
				t.Errorf("%s: %+v", parameter, p)
			}
		}
		if x := r.get("/v1/watches/orders/resources/a%2F1?order=n&limit=1"); x.StatusCode != 400 {
			t.Errorf("a single resource with an order: %s", x.Status)
		}
	})
}

// TestLongPollBehindACursor: a window of a long poll begins behind a cursor too, under another name, since after is a
// position there.
func TestLongPollBehindACursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		next := regexp.MustCompile(`"next":"([^"]+)"`).FindStringSubmatch(r.get("/v1/watches/orders/resources" + asking("order", "-n", "limit", "1")).Text())[1]
		window := []string{"order", "-n", "limit", "1", "window_after", next}
		text := r.get("/v1/watches/orders/changes" + asking(window...)).Text()
		position := regexp.MustCompile(`"position":"([^"]+)"`).FindStringSubmatch(text)
		if got := keysIn(text); !slices.Equal(got, []string{"a/2"}) || !strings.Contains(text, `"total":3,"before":1`) || position == nil {
			t.Fatalf("the window has %q:\n%s", got, text)
		}
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"n":2.5}`))
		synctest.Wait()
		if got := keysIn(r.get("/v1/watches/orders/changes" + asking(append(window, "after", position[1])...)).Text()); !slices.Equal(got, []string{"c"}) {
			t.Errorf("what has changed in the window is %q", got)
		}
		for _, wrong := range []struct {
			path, parameter, want string
			query                 []string
		}{
			{"changes", "after", "window_after", []string{"order", "-n", "limit", "1", "after", next}},
			{"changes", "window_after", "window_after", []string{"order", "-n", "limit", "1", "window_after", "x"}},
			{"changes", "window_after", "want order too", []string{"window_after", next}},
			{"resources", "window_after", `did you mean \"after\"`, window},
			{"events", "window_after", `did you mean \"after\"`, window},
		} {
			x := r.get("/v1/watches/orders/" + wrong.path + asking(wrong.query...))
			if text := x.Text(); x.StatusCode != 400 || !strings.Contains(text, `"parameter":"`+wrong.parameter+`"`) || !strings.Contains(text, wrong.want) {
				t.Errorf("%s with %q: %s", wrong.path, wrong.query, text)
			}
		}
	})
}

// TestWindowOverGRPC: a call of WatchList and a list have what a stream has.
func TestWindowOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		c := dialGRPC(t, r.gateway)
		list, err := c.ListResources(t.Context(), &api.ListResourcesRequest{Watch: "orders", Order: "-n", Limit: 1, Offset: 1})
		if err != nil || len(list.GetResources()) != 1 || list.GetResources()[0].GetKey() != "a/2" || list.GetTotal() != 3 || list.GetBefore() != 1 || list.GetNext() == "" {
			t.Fatalf("the list: %v, %v", list, err)
		}
		calls, err := c.WatchList(t.Context(), &api.WatchListRequest{Watch: "orders", Order: "-n", Limit: 1, After: list.GetNext()})
		if err != nil {
			t.Fatal(err)
		}
		next := func() *api.WatchListResponse {
			m, err := calls.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		next()
		if got := next().GetUpsert().GetResource().GetKey(); got != "a/1" {
			t.Errorf("the window has %q, want a/1", got)
		}
		if w := next().GetEndOfSnapshot().GetWindow(); w.GetTotal() != 3 || w.GetBefore() != 2 || w.GetNext() != "" {
			t.Errorf("the window says %v", w)
		}
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"n":1.5}`))
		if d := next().GetDelete(); d.GetKey() != "a/1" || !d.GetLeft() || d.GetRevision() != 4 {
			t.Errorf("what leaves is %v", d)
		}
		if u := next().GetUpsert().GetResource(); u.GetKey() != "c" || u.GetRevision() != 4 {
			t.Errorf("what enters is %v", u)
		}
		_, err = c.ListResources(t.Context(), &api.ListResourcesRequest{Watch: "orders", Order: "n", Limit: 1001})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("a limit that is too large: %v", err)
		}
	})
}
