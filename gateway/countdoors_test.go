package gateway

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

// TestLongPollOfCounts: it has the groups, and then waits for one that changes.
func TestLongPollOfCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		text := r.get("/v1/watches/orders/counts/changes?by=team&keys=a/1,a/2,b/3").Text()
		if !strings.Contains(text, `"value":{"count":`) || !strings.Contains(text, `"type":"end_of_snapshot"`) {
			t.Fatalf("the groups: %s", text)
		}
		_, position, _ := strings.Cut(text, `"position":"`)
		position, _, _ = strings.Cut(position, `"`)
		time.AfterFunc(time.Second, func() {
			r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"team":"new"}`)) // it is not counted
			r.Commit("orders", 5, gatewaytest.Resource("a/1", 5, `{"team":"new"}`))
		})
		text = r.get("/v1/watches/orders/counts/changes" + asking("by", "team", "keys", "a/1,a/2,b/3", "after", position, "wait", "1m")).Text()
		if !strings.Contains(text, `"key":"new","revision":"5","value":{"count":1}`) {
			t.Errorf("the change: %s", text)
		}
		for path, want := range map[string]string{
			"counts/changes?by=team&order=n": "it does not go with counts: want prefix, keys, labels or filter", "counts/events?by=team&limit.orders=1": "does not go with counts",
			"counts?by=team&order=n&limit=1": "does not go with counts", "counts?by=team&window_after=x": "does not go with counts", "counts?by=team&fields=n": "does not go with counts",
			"resources?by=team": "want /v1/watches/{watch}/counts?by=… for counts", "changes?sum=n": "want /v1/watches/{watch}/counts/changes?by=… for counts",
			"events?min_interval=500ms": `unknown parameter "min_interval": want max_rate, as in max_rate=2/s`, "counts/events?by=team&min_interval=1s": "want max_rate",
		} {
			if p := refusedAs(t, r.get("/v1/watches/orders/"+path)); p.Status != 400 || !strings.Contains(p.Detail, want) || !strings.Contains(path, p.Parameter+"=") {
				t.Errorf("%s: %+v", path, p)
			}
		}
	})
}

// TestFirstGroups: a stream of counts begins with the groups that it asks for, over each path.
func TestFirstGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		for _, path := range []string{"/v1/watches/orders/counts/events?by=team", "/v1/events?watch=orders&by=team"} {
			text := r.get(path + "&first=red&until=end_of_snapshot").Text()
			if got, want := keysIn(text), []string{"red", "blue", "red"}; !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q: %s", path, got, want, text)
			}
		}
		if p := refusedAs(t, r.get("/v1/watches/orders/counts/events?by=team&first=%22a")); p.Parameter != "first" || p.Place == nil {
			t.Errorf("%+v", p)
		}
	})
}

// TestCountsOverGRPC: lists and calls of WatchList count.
func TestCountsOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		c := dialGRPC(t, r.gateway)
		list, err := c.ListResources(t.Context(), &api.ListResourcesRequest{Watch: "orders", By: []string{"team"}, Sum: "n", Filter: "value.n > 0"})
		if err != nil || len(list.GetResources()) == 0 || !strings.Contains(string(list.GetResources()[0].GetValue()), `"sum":`) {
			t.Fatalf("the list: %v, %v", list, err)
		}
		calls, err := c.WatchList(t.Context(), &api.WatchListRequest{Watch: "orders", By: []string{"team"}})
		if err != nil {
			t.Fatal(err)
		}
		var groups []string
		for {
			m, err := calls.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if u := m.GetUpsert().GetResource(); u != nil {
				groups = append(groups, u.GetKey())
			}
			if m.GetEndOfSnapshot() != nil {
				break
			}
		}
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"team":"new"}`))
		m, err := calls.Recv()
		if u := m.GetUpsert().GetResource(); err != nil || u.GetKey() != "new" || string(u.GetValue()) != `{"count":1}` || len(groups) == 0 {
			t.Errorf("the change is %v, %v, after %q", m, err, groups)
		}
		for _, bad := range []*api.WatchListRequest{
			{Watch: "orders", By: []string{"team"}, Order: "n", Limit: 1}, {Watch: "orders", By: []string{"team"}, Fields: []string{"n"}},
			{Watch: "orders", By: []string{"a..b"}}, {Watch: "orders", Sum: "n"},
		} {
			calls, err := c.WatchList(t.Context(), bad)
			if err == nil {
				_, err = calls.Recv()
			}
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v: %v", bad, err)
			}
		}
	})
}

// TestSubscribersOfCounts: the list of subscribers says how what they follow is counted.
func TestSubscribersOfCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		var streams []*gatewaytest.Exchange
		for _, query := range []string{"by=team&sum=n", "by=team&sum=n", "by=n&filter=value.n>1", "by=team"} {
			streams = append(streams, r.get("/v1/watches/orders/counts/events?"+query))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		text := r.get("/v1/subscribers").Text()
		for _, want := range []string{
			`"views":[{"watch":"orders","by":"team","sum":"n"}]`, `"views":[{"watch":"orders","filter":"value.n \u003e 1","by":"n"}]`, `"views":[{"watch":"orders","by":"team"}]`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the list lacks %s: %s", want, text)
			}
		}
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"team":"new","n":2}`))
		synctest.Wait()
		var got []string
		for _, x := range streams {
			got = append(got, strings.Join(slices.Collect(strings.Lines(x.Take())), ""))
		}
		if !strings.Contains(got[0], `"sum":2`) || !strings.Contains(got[1], `"sum":2`) || strings.Contains(got[3], "sum") || !strings.Contains(got[3], `"key":"new"`) {
			t.Errorf("streams of different counts have %q", got)
		}
	})
}
