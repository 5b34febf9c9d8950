package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// colors is a cluster whose namespaces are colors. The names of users are those of [guarded].
type colors struct {
	cluster.Server

	mu sync.Mutex
	// Guarded by mu.
	may  map[string]bool // "user namespace"
	down bool
}

func (c *colors) ReviewAccess(_ context.Context, u cluster.User, a cluster.Attributes) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return false, errors.New("it is down")
	}
	return a.Resource == "orders" && c.may[u.Name+" "+a.Namespace], nil
}

func (c *colors) Namespaces(context.Context, int) ([]string, error) {
	return []string{"red", "green", "blue", "re"}, nil
}

func (c *colors) FollowRules(context.Context, func(string)) error {
	return errors.New("rules cannot be followed here")
}

// let gives rights, or takes them.
func (c *colors) let(user string, may bool, namespaces ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range namespaces {
		c.may[user+" "+name] = may
	}
}

func (c *colors) fail(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

const colorsRefresh = 200 * time.Millisecond

// newColored returns a gateway that lets a cluster say who may read what of the watch orders, which has
// a resource in each namespace, and some in none.
func newColored(t *testing.T, hold time.Duration) (*guarded, *colors) {
	t.Helper()
	return newColoredWith(t, hold, false)
}

// newColoredWith is newColored where the cluster may decide about writes too.
func newColoredWith(t *testing.T, hold time.Duration, writes bool) (*guarded, *colors) {
	t.Helper()
	c := &colors{may: map[string]bool{"sam ": true, "ann red": true, "agent red": true, "agent green": true}}
	r := newGuarded(t, func(g *Config) {
		policy, err := access.CompilePolicy(access.PolicyConfig{
			Roles: []access.Role{{Name: "staff", When: `"staff" in principal.groups`}},
			Watches: []access.WatchRules{
				{Name: "orders", Cluster: &access.ClusterResource{Resource: "orders", Writes: writes}},
				{Name: "firsts", Cluster: &access.ClusterResource{Resource: "orders"}},
				{Name: "vault-{region}", Cluster: &access.ClusterResource{Resource: "orders"}},
				{Name: "vault", Rules: []access.Rule{{Role: "staff", Read: "true"}}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		g.Access.Policy = policy
		g.Access.Rights = cluster.NewRights(cluster.RightsConfig{
			Server: c, Log: slog.New(slog.DiscardHandler), Refresh: colorsRefresh, Hold: hold, ReviewsPerSecond: 5000,
			UserOf: func(p *access.Principal) (cluster.User, bool) {
				return cluster.User{Name: p.Name}, p.Mechanism == access.Token
			},
		})
	})
	t.Cleanup(r.gateway.learn(t.Context()))
	for _, color := range []string{"red", "green", "blue", "re"} {
		r.write(color+"/a", `{"is":"s3cret-`+color+`"}`)
	}
	return r, c
}

// write changes a resource past the rules, which let nobody write, and waits until the watch has it.
func (r *guarded) write(key, value string) {
	r.t.Helper()
	w, _ := r.registry.Watch("orders")
	stored, _, err := w.Writer().Put(r.t.Context(), stream.PutRequest{Key: key, Value: []byte(value)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.eventually("the write", func() bool { return w.Snapshot().Revision() >= stored.Revision })
}

// coloredHides is what nobody but these may read, in any answer.
var coloredHides = map[string][]string{
	"nobody":   {"red/", "green/", "blue/", "re/", "s3cret", "o_1"},
	"outsider": {"red/", "green/", "blue/", "re/", "s3cret", "o_1"},
	"ann":      {"green/", "blue/", `"re/`, "s3cret-green", "s3cret-blue", `s3cret-re"`, "s3cret-1", "o_1"},
	"agent":    {"blue/", `"re/`, "s3cret-blue", `s3cret-re"`, "s3cret-1", "o_1"},
}

// TestClusterDecidesAtEveryDoor: no byte of a namespace that somebody may not list and watch is in any
// answer, and what may be seen is.
func TestClusterDecidesAtEveryDoor(t *testing.T) {
	r, _ := newColored(t, time.Minute)
	doors := append(slices.Clone(waysToRead),
		"/v1/watches/orders/resources/red%2Fa", "/v1/watches/orders/resources/blue%2Fa", "/v1/watches/orders/resources/o_1",
		"/v1/watches/orders/resources?prefix=blue/", "/v1/watches/orders/resources?filter=value.is.startsWith('s3cret')",
		"/v1/events?watch=orders&until=end_of_snapshot&digest=1", "/v1/watches/orders/digests", "/v1/watches/orders/history?key=blue%2Fa")
	for name, hidden := range coloredHides {
		for _, door := range doors {
			if strings.Contains(door, "blue") {
				door = strings.ReplaceAll(door, "blue", "b%6Cue") // or it is in the answer because it was asked for
			}
			got := r.get(door, r.as(name)...)
			got.text = strings.ReplaceAll(got.text, `no resource with the key \"blue/a\"`, "")
			got.text = strings.ReplaceAll(got.text, `"key":"blue/a"`, "")
			if got.StatusCode == 404 {
				continue // whose text has the key that was asked for
			}
			r.conceals(name, got, hidden)
		}
	}
	for name, want := range map[string]int{"sam": 7, "agent": 2, "ann": 1} {
		got := r.get("/v1/watches/orders/resources", r.as(name)...)
		if strings.Count(got.text, `"key":`) != want || !strings.Contains(got.text, fmt.Sprintf(`"count":%d`, want)) {
			t.Errorf("%s: %s, want %d", name, got.text, want)
		}
	}
	for path, want := range map[string]int{"orders/resources/red%2Fa": 200, "orders/resources/blue%2Fa": 404, "orders/resources/o_1": 404, "orders": 200} {
		r.get("/v1/watches/"+path, r.as("ann")...).want(t, want, "")
		r.get("/v1/watches/"+path, r.as("outsider")...).want(t, 404, "")
		r.get("/v1/watches/"+path, r.as("sam")...).want(t, 200, "")
		if got := r.get("/v1/watches/" + path); got.StatusCode != 401 {
			t.Errorf("nobody: %s", got.Status)
		}
	}
	for name, want := range map[string]bool{"ann": true, "outsider": false} {
		if got := r.get("/v1/watches", r.as(name)...); strings.Contains(got.text, `"orders"`) != want {
			t.Errorf("%s: %s", name, got.text)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		for _, name := range []string{"ann", "sam"} {
			got := r.send(method, "/v1/watches/orders/resources/red%2Fa", `{"is":"mine"}`, r.as(name)...)
			if method == http.MethodPut && got.StatusCode < 400 || strings.Contains(got.text, `"deleted":true`) {
				t.Errorf("%s may %s: %s", name, method, got.text)
			}
		}
	}
	r.get("/v1/watches/orders/resources/red%2Fa", r.as("ann")...).want(t, 200, "")
}

// TestClusterDecidesAboutWrites: what a principal that the cluster knows writes goes to the upstream, which decides. The
// answer has nothing that the principal may not read. A principal that sees nothing of the watch writes nothing.
func TestClusterDecidesAboutWrites(t *testing.T) {
	r, c := newColoredWith(t, time.Minute, true)
	put := func(name, key string) reply {
		return r.send(http.MethodPut, "/v1/watches/orders/resources/"+strings.ReplaceAll(key, "/", "%2F"), `{"is":"new"}`, r.as(name)...)
	}
	put("ann", "red/a").want(t, 200, "")
	put("ann", "red/b").want(t, 201, "")
	r.conceals("ann", put("ann", "green/a"), []string{"s3cret"}) // the store lets her; a cluster would be asked
	put("outsider", "red/a").want(t, 404, "")
	if got := put("nobody", "red/a"); got.StatusCode != 401 {
		t.Errorf("nobody: %s", got.Status)
	}
	c.let("ann", false, "red")
	r.eventually("her loss", func() bool { return put("ann", "red/a").StatusCode == 404 })
	for name, want := range map[string]bool{"sam": true, "agent": true} {
		got := r.get("/v1/watches/orders", r.as(name)...)
		if strings.Contains(got.text, `"writable":true`) != want {
			t.Errorf("%s: %s", name, got.text)
		}
	}
	for path, want := range map[string]string{"red%2Fa": "GET, HEAD, PUT, DELETE", "b%6Cue%2Fa": "GET, HEAD", "none": "GET, HEAD"} {
		if got := r.get("/v1/watches/orders/resources/"+path, r.as("agent")...).Header.Get("Allow"); got != want {
			t.Errorf("%s allows %q, want %q", path, got, want)
		}
	}
	r.send(http.MethodDelete, "/v1/watches/orders/resources/red%2Fa", "", r.as("agent")...).want(t, 200, "")
	if got := r.get("/v1/watches/orders/resources", r.as("agent")...); strings.Contains(got.text, "red/a") || !strings.Contains(got.text, "red/b") {
		t.Errorf("after a delete: %s", got.text)
	}
}

// TestClusterDecidesOverGRPC is like TestClusterDecidesAtEveryDoor.
func TestClusterDecidesOverGRPC(t *testing.T) {
	r, _ := newColored(t, time.Minute)
	client := r.grpc
	as := func(name string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+r.tokens[name])
	}
	for name, want := range map[string]string{"sam": "7", "agent": "2", "ann": "1", "outsider": "NotFound"} {
		page, err := client.ListResources(as(name), &api.ListResourcesRequest{Watch: "orders"})
		if got := fmt.Sprint(len(page.GetResources())); err == nil && got != want || err != nil && status.Code(err).String() != want {
			t.Errorf("%s lists %s: %v, want %s", name, got, err, want)
		}
		calls, err := client.WatchList(as(name), &api.WatchListRequest{Watch: "orders", UntilEndOfSnapshot: true})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			e, err := calls.Recv()
			if err != nil {
				break
			}
			if e.GetUpsert() != nil {
				n++
			}
			for _, part := range coloredHides[name] {
				if strings.Contains(strings.ReplaceAll(e.String(), " ", ""), part) {
					t.Errorf("%s: %q is in %v", name, part, e)
				}
			}
		}
		if got := fmt.Sprint(n); want != "NotFound" && got != want {
			t.Errorf("%s watches %s, want %s", name, got, want)
		}
		_, err = client.GetResource(as(name), &api.GetResourceRequest{Watch: "orders", Key: "blue/a"})
		if code := status.Code(err); (code == codes.OK) != (name == "sam") {
			t.Errorf("%s gets %v", name, err)
		}
	}
}

// TestClusterTakesAndGives: an open stream goes on with what its client may list and watch now.
func TestClusterTakesAndGives(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	for _, path := range []string{"/v1/events?watch=orders", "/v1/watches/orders/events?format=ndjson", "/v1/watches/orders/events?format=ndjson&filter=value.is!=''"} {
		r, c := newColored(t, time.Minute)
		l := r.follow("ann", path, "identity")
		l.hidden = coloredHides["ann"]
		l.until("s3cret-red")
		l.until("end_of_snapshot")
		r.write("blue/b", `{"is":"s3cret-blue"}`)
		c.let("ann", true, "green")
		l.hidden = []string{"blue/", `"re/`, "s3cret-blue"}
		l.until("reset")
		l.until("green/a")
		l.until("end_of_snapshot")
		c.let("ann", false, "red")
		l.until("reset")
		l.hidden = append(l.hidden, "red/", "s3cret-red")
		l.until("end_of_snapshot")
		r.write("red/b", `{"is":"s3cret-red"}`)
		r.write("green/b", `{"is":"s3cret-green"}`)
		l.until("green/b")
		c.let("ann", false, "green")
		l.hidden = append(l.hidden, "green/")
		l.until("reset")
		l.until("goodbye")
		if last := strings.Join(l.seen[len(l.seen)-2:], " "); !strings.Contains(last, "revoked") {
			l.until("revoked")
		}
		r.get("/v1/watches/orders/resources", r.as("ann")...).want(t, 404, "")
		c.let("ann", true, "") // everywhere
		r.eventually("everything", func() bool {
			return strings.Count(r.get("/v1/watches/orders/resources", r.as("ann")...).text, `"key":`) == 10
		})
	}
}

// TestClusterDecidesAboutViewsAndTemplates: of a declared view and of a watch of a template, everybody sees the
// namespaces of the resource that it leads to, and open streams follow.
func TestClusterDecidesAboutViewsAndTemplates(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	r, c := newColored(t, time.Minute)
	d, err := view.Parse(view.Params{Filter: "key.endsWith('/a')"})
	if err != nil {
		t.Fatal(err)
	}
	own := views.NewDeclared()
	t.Cleanup(own.Close)
	r.add(watch.Config{Name: "firsts", SourceName: "embedded", View: own.View("orders", func() (*watch.Watch, error) { return r.registry.Open("orders") }, d)})
	r.primed("firsts")
	r.write("red/b", `{"is":"s3cret-red"}`)
	made, err := r.registry.Open("vault-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"red/a", "green/a", "blue/a", "re/a", "o_1"} {
		if _, _, err := made.Writer().Put(t.Context(), stream.PutRequest{Key: key, Value: []byte(`{"is":"s3cret-` + strings.TrimSuffix(key, "/a") + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][2]int{"sam": {4, 5}, "agent": {2, 2}, "ann": {1, 1}} {
		for i, of := range []string{"firsts", "vault-1"} {
			path := "/v1/watches/" + of + "/resources"
			r.eventually(fmt.Sprintf("%s to see %d of %s", name, want[i], of), func() bool {
				got := r.get(path, r.as(name)...)
				r.conceals(name, got, coloredHides[name])
				return strings.Count(got.text, `"key":`) == want[i]
			})
		}
	}
	for _, of := range []string{"firsts", "vault-1"} {
		r.get("/v1/watches/"+of+"/resources", r.as("outsider")...).want(t, 404, "")
		l := r.follow("ann", "/v1/events?watch="+of, "identity")
		l.hidden = []string{"blue/", `"re/`, "s3cret-blue", "/b"}
		l.until("red/a")
		l.until("end_of_snapshot")
		c.let("ann", true, "green")
		l.until("reset")
		l.until("green/a")
		l.until("end_of_snapshot")
		c.let("ann", false, "green")
		l.until("reset")
		l.hidden = append(l.hidden, "green/")
		l.until("end_of_snapshot")
	}
}

func (r *guarded) eventually(what string, so func() bool) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !so(); <-tick.C {
		if time.Now().After(end) {
			r.t.Fatalf("still waiting for %s", what)
		}
	}
}

// TestClusterDoesNotAnswer: what was granted holds for a while. Then nothing is sent any more, and
// clients are told to come back, not that they have lost their rights.
func TestClusterDoesNotAnswer(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	r, c := newColored(t, 3*time.Second)
	l := r.follow("ann", "/v1/events?watch=orders", "identity")
	l.until("end_of_snapshot")
	began := time.Now()
	c.fail(true)
	r.write("red/b", `{"is":"s3cret-red"}`)
	l.until("red/b")
	l.until("reset")
	l.hidden = []string{"red/", "s3cret"}
	l.until("overloaded")
	if took := time.Since(began); took < 2*time.Second || took > 6*time.Second {
		t.Errorf("it held for %v", took)
	}
	list := r.get("/v1/watches/orders/resources", r.as("ann")...)
	if list.StatusCode != 503 || list.Header.Get("Retry-After") == "" || strings.Contains(list.text, "s3cret") {
		t.Errorf("%s %s", list.Status, list.text)
	}
	page := r.get("/v1/events?watch=orders", append(r.as("ann"), "Accept: text/event-stream")...)
	if page.StatusCode != 200 || !strings.Contains(page.text, "overloaded") || strings.Contains(page.text, "s3cret") {
		t.Errorf("%s %s", page.Status, page.text)
	}
	if got := counter(t, r.gateway, "watchtide_refusals_total", "transport", "sse", "reason", "rights"); got == 0 {
		t.Error("no refusal is counted")
	}
	c.fail(false)
	r.eventually("an answer", func() bool {
		got := r.get("/v1/watches/orders/resources", r.as("ann")...)
		return got.StatusCode == 200 && strings.Contains(got.text, "red/b")
	})
}

// TestClusterRightsOutliveAReload: with the same cluster, a reload leaves open streams alone, and they go
// on to follow.
func TestClusterRightsOutliveAReload(t *testing.T) {
	r, c := newColored(t, time.Minute)
	l := r.follow("ann", "/v1/events?watch=orders", "identity")
	l.hidden = []string{"blue/", "s3cret-blue", "goodbye"}
	l.until("end_of_snapshot")
	for range 3 {
		if err := r.gateway.Reload(r.gateway.now.Load().cfg); err != nil {
			t.Fatal(err)
		}
	}
	r.write("red/b", `{"is":"s3cret-red"}`)
	l.until("red/b")
	c.let("ann", true, "green")
	l.until("green/a")
}

// TestClusterChangesALongPoll: a long poll that waits is answered when what its client may read
// changes, with a position that tells nothing.
func TestClusterChangesALongPoll(t *testing.T) {
	r, c := newColored(t, time.Minute)
	position := between(r.get("/v1/watches/orders/changes?wait=1ms", r.as("ann")...).text, `"position":"`, `"`)
	answered := make(chan reply, 1)
	go func() { answered <- r.get("/v1/watches/orders/changes?wait=30s&after="+position, r.as("ann")...) }()
	c.let("ann", true, "green")
	select {
	case got := <-answered:
		r.conceals("ann", got, []string{"blue/", "s3cret-blue", "s3cret-1"})
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
	r.eventually("green", func() bool {
		got := r.get("/v1/watches/orders/changes?wait=1ms&after="+position, r.as("ann")...)
		r.conceals("ann", got, []string{"blue/", "s3cret-blue", "s3cret-1"})
		return strings.Contains(got.text, "green/a")
	})
}
