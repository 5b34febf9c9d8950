package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// viewRig is a rig whose gateway has views. The watches orders and other are primed, and
// late is not.
type viewRig struct {
	*rig
	views *gatewaytest.Views
}

func newViewRig(t *testing.T, c Config) *viewRig {
	t.Helper()
	v := gatewaytest.NewViews(t)
	c.engine, c.Metrics = v, true
	r := &viewRig{rig: newRig(t, c, "orders", "other", "late"), views: v}
	r.Prime("orders", 3,
		gatewaytest.Resource("a/1", 1, `{"n":1,"team":"red","labels":{"zone":"x"},"more":[1,2]}`),
		gatewaytest.Resource("a/2", 2, `{"n":2,"team":"blue","labels":{"zone":"y"},"more":[]}`),
		gatewaytest.Resource("b/3", 3, `{"n":3,"team":"red","labels":{"zone":"y"},"more":null}`))
	r.Prime("other", 9, gatewaytest.Resource("a/1", 9, `{"n":9}`))
	return r
}

// asking returns a query with parameters: names and values in turn.
func asking(parameters ...string) string {
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		query.Add(parameters[i], parameters[i+1])
	}
	return "?" + query.Encode()
}

// lastID returns the last id of a stream.
func lastID(t *testing.T, text string) string {
	t.Helper()
	all := regexp.MustCompile(`(?m)^id: (.*)$`).FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		t.Fatalf("no id in %q", text)
	}
	return all[len(all)-1][1]
}

// upserts returns the keys and values that a stream, a list or a long poll has, in order.
func upserts(text string) (out []string) {
	for _, m := range regexp.MustCompile(`"key":"([^"]*)","revision":"\d+","value":([^\n]*?)\}(?:\n|,\{|\])`).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+" "+m[2])
	}
	return out
}

// TestStreamOfAView checks that a stream has what its parameters select, that what leaves
// is deleted, and that it resumes.
func TestStreamOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		path := "/v1/watches/orders/events" + asking("filter", "value.n > 1", "fields", "n", "fields", "team")
		x := r.get(path)
		first := x.Take()
		if got, want := upserts(first), []string{`a/2 {"n":2,"team":"blue"}`, `b/3 {"n":3,"team":"red"}`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		r.Commit("orders", 4, gatewaytest.Resource("a/2", 4, `{"n":0}`))
		r.Commit("orders", 5, gatewaytest.Resource("a/1", 5, `{"n":5,"x":1}`))
		r.Commit("orders", 6, gatewaytest.Resource("b/4", 6, `{"n":0}`))
		got := x.Take()
		if !strings.Contains(got, `{"type":"delete","watch":"orders","key":"a/2","revision":"4"}`) || !slices.Equal(upserts(got), []string{`a/1 {"n":5}`}) || strings.Contains(got, "b/4") {
			t.Errorf("then %s", got)
		}
		x.Cancel()
		r.Commit("orders", 7, gatewaytest.Resource("b/3", 7, `{"n":7}`), gatewaytest.Resource("b/5", 7, `{"n":1}`))
		synctest.Wait() // for the view to have it: a stream that resumes does not
		again := r.get(path+"&until=end_of_snapshot", "Last-Event-ID: "+lastID(t, first)).Text()
		if strings.Contains(again, `"type":"reset"`) || !slices.Equal(upserts(again), []string{`a/1 {"n":5}`, `b/3 {"n":7}`}) || !strings.Contains(again, `"key":"a/2"`) {
			t.Errorf("resumed: %s", again)
		}
	})
}

// TestOldPositionDelaysNobody checks that a view is not made again for clients that come with
// older and older positions: they are served from what there is, and the others go on.
func TestOldPositionDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		r.Commit("orders", 4, gatewaytest.Resource("a/2", 4, `{"n":0}`))
		r.Commit("orders", 5, gatewaytest.Resource("b/3", 5, `{"n":0}`))
		r.Commit("orders", 6, gatewaytest.Resource("a/1", 6, `{"n":6}`))
		path := "/v1/watches/orders/events" + asking("filter", "value.n > 1")
		live := r.get(path)
		id := lastID(t, live.Take())
		for _, c := range []struct {
			revision string
			deletes  int
		}{{"5", 0}, {"4", 1}, {"3", 2}} {
			text := r.get(path+"&until=end_of_snapshot", "Last-Event-ID: "+strings.TrimSuffix(id, "6")+c.revision).Text()
			if n := strings.Count(text, `"type":"delete"`); n != c.deletes || strings.Contains(text, `"type":"reset"`) {
				t.Errorf("from %s on, want %d deletes: %s", c.revision, c.deletes, text)
			}
		}
		if n := r.views.Stats().Builds; n != 1 {
			t.Errorf("the view was made %d times", n)
		}
		r.Commit("orders", 7, gatewaytest.Resource("a/2", 7, `{"n":7}`))
		if got := upserts(live.Take()); !slices.Equal(got, []string{`a/2 {"n":7}`}) {
			t.Errorf("the other client got %q", got)
		}
	})
}

// TestPositionBelongsToItsView checks that a position of another definition, or of the
// whole watch, is not resumed, and that one that is written differently is.
func TestPositionBelongsToItsView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		read := func(query, position string) string {
			t.Helper()
			return r.get("/v1/watches/orders/events"+query+"&until=end_of_snapshot", "Last-Event-ID: "+position).Text()
		}
		queries := []string{
			asking("format", "sse"), asking("filter", "value.n > 1"), asking("filter", "value.n > 2"), asking("labels", "zone=y"),
			asking("fields", "n"), asking("filter", "value.n > 1", "fields", "n"), asking("prefix", "a/"), asking("prefix", "a/", "filter", "value.n > 1"),
		}
		var positions []string
		for _, query := range queries {
			positions = append(positions, lastID(t, read(query, "")))
		}
		for i, query := range queries {
			for j, position := range positions {
				got := read(query, position)
				if strings.Contains(got, `"reason":"epoch_changed"`) != (i != j) || strings.Contains(got, `"type":"reset"`) != (i != j) {
					t.Errorf("%s resumes at %s: %s", query, position, got)
				}
			}
		}
		if got := read(asking("filter", "(1) < value.n  ", "labels", ""), positions[1]); strings.Contains(got, "reset") != strings.Contains(got, "epoch_changed") {
			t.Errorf("got %s", got)
		}
		if got := read(asking("filter", " value.n>1"), positions[1]); strings.Contains(got, "reset") {
			t.Errorf("the same view in other words: %s", got)
		}
	})
}

// TestStreamOfSeveralViews checks that each watch of a stream is narrowed by itself.
func TestStreamOfSeveralViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		got := r.get("/v1/events" + asking("watch", "orders", "watch", "other", "labels.orders", "zone=y", "filter.orders", "value.n != 2",
			"fields.other", "m", "until", "end_of_snapshot", "prefix.other", "a/")).Text()
		if want := []string{`b/3 {"n":3,"team":"red","labels":{"zone":"y"},"more":null}`, `a/1 {}`}; !slices.Equal(upserts(got), want) {
			t.Errorf("got %q, want %q, of %s", upserts(got), want, got)
		}
	})
}

// TestViewsAreServedSideBySide checks that streams of different views of one watch get each
// their own changes, also once they are up to date.
func TestViewsAreServedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		streams := map[string][]*gatewaytest.Exchange{}
		for _, filter := range []string{"value.n > 5", "value.n < 5", "value.n > 5 && value.team == 'x'", ""} {
			for range 3 {
				x := r.get("/v1/watches/orders/events" + asking("filter", filter))
				x.Take()
				streams[filter] = append(streams[filter], x)
			}
		}
		r.Commit("orders", 10, gatewaytest.Resource("c", 10, `{"n":10}`))
		r.Commit("orders", 11, gatewaytest.Resource("d", 11, `{"n":1}`))
		for filter, want := range map[string][]string{
			"value.n > 5": {`c {"n":10}`}, "value.n < 5": {`d {"n":1}`}, "value.n > 5 && value.team == 'x'": nil, "": {`c {"n":10}`, `d {"n":1}`},
		} {
			for _, x := range streams[filter] {
				if got := upserts(x.Take()); !slices.Equal(got, want) {
					t.Errorf("%q: got %q, want %q", filter, got, want)
				}
			}
		}
	})
}

// TestNothingNarrowed checks that parameters without a value, or without an effect, change
// nothing.
func TestNothingNarrowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		want := lastID(t, r.get("/v1/watches/orders/events?until=end_of_snapshot").Text())
		for _, query := range []string{"prefix=&labels=&filter=&fields=", "labels=+", "fields.orders=&filter.orders=&fields="} {
			if got := lastID(t, r.get("/v1/watches/orders/events?until=end_of_snapshot&"+query).Text()); got != want {
				t.Errorf("%s: position %s, want %s", query, got, want)
			}
		}
		for _, path := range []string{"/resources?filter=", "/resources/a%2F1?fields=", "/changes?labels=&fields=&fields="} {
			if x := r.get("/v1/watches/orders" + path); x.StatusCode != 200 || !strings.Contains(x.Text(), `"team":"red"`) {
				t.Errorf("%s: %s %s", path, x.Status, x.Text())
			}
		}
		if asked := r.views.Clients(); len(asked) != 0 {
			t.Errorf("%d views were opened", len(asked))
		}
	})
}

// doors returns a path of each kind of request for a watch, with a query.
func doors(watch, query string) map[string]string {
	at := "/v1/watches/" + watch
	return map[string]string{
		"stream": at + "/events" + query, "list": at + "/resources" + query, "one": at + "/resources/a%2F1" + query, "poll": at + "/changes" + query,
	}
}

// TestBadViews checks that every door says what is wrong with a parameter, and where.
func TestBadViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		for _, test := range []struct {
			parameter, value, detail  string
			offset, line, column, got int
		}{
			{"filter", "value.n = 1", "filter, column 9: = is no operator: did you mean ==?", 8, 1, 9, 0},
			{"filter", "key == \"é\" &&\n  vaule.x == 1", `filter, line 2, column 3: there is no variable "vaule": did you mean "value"?`, 17, 2, 3, 0},
			{"labels", "a=b,c in [x]", "labels, column 5: ", 4, 1, 5, 0},
			{"fields", "a,b[0]", "fields, column 4: there are no indices", 3, 1, 4, 0},
			{"prefix", strings.Repeat("x", 2049), "prefix, column 2049: the text is 2049 bytes long", 2048, 1, 2049, 0},
		} {
			for door, path := range doors("orders", asking(test.parameter, test.value)) {
				for _, method := range []string{"GET", "HEAD"} {
					x := r.request(method, path)
					if method == "HEAD" {
						if x.StatusCode != 400 {
							t.Errorf("HEAD of %s: %s", door, x.Status)
						}
						continue
					}
					p := refusedAs(t, x)
					if p.Status != 400 || p.Parameter != test.parameter || p.Watch != "orders" || !strings.Contains(p.Detail, test.detail) {
						t.Errorf("%s: %+v", door, p)
					}
					if p.Place == nil || p.Offset != test.offset || p.Line != test.line || p.Column != test.column {
						t.Errorf("%s: place %+v in %q", door, p.Place, test.value)
					}
				}
			}
		}
		p := refusedAs(t, r.get("/v1/events"+asking("watch", "other", "watch", "orders", "filter.orders", "value.n ==")))
		if p.Parameter != "filter.orders" || p.Watch != "orders" || !strings.HasPrefix(p.Detail, "filter.orders, column 11: ") {
			t.Errorf("%+v", p)
		}
		p = refusedAs(t, r.get("/v1/watches/orders/resources"+asking("fields", "a", "fields", "b.", "fields", "c")))
		if p.Parameter != "fields" || !strings.HasPrefix(p.Detail, "fields (value 2 of 3), column 3: ") {
			t.Errorf("%+v", p)
		}
		if x := r.get("/v1/watches/orders/resources?filter=true&filter=false"); refusedAs(t, x).Parameter != "filter" {
			t.Errorf("filter twice: %s", x.Text())
		}
	})
}

// TestHeadOpensNoView checks that HEAD of a stream checks its parameters and opens nothing.
func TestHeadOpensNoView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		if x := r.request(http.MethodHead, "/v1/watches/orders/events"+asking("filter", "value.n > 1")); x.StatusCode != 200 {
			t.Error(x.Status)
		}
		if n := len(r.views.Clients()); n != 0 {
			t.Errorf("%d views were opened", n)
		}
	})
}

// TestViewThatIsNotPrimed checks that a stream begins with a status, and that whoever needs
// the state gets a 503.
func TestViewThatIsNotPrimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		query := asking("filter", "value.n > 1")
		x := r.get("/v1/watches/late/events" + query)
		if got := x.Take(); x.StatusCode != 200 || !strings.Contains(got, `"state":"priming"`) || strings.Contains(got, "reset") {
			t.Errorf("%s %s", x.Status, got)
		}
		all := doors("late", query)
		all["until"] = all["stream"] + "&until=end_of_snapshot"
		delete(all, "stream")
		for door, path := range all {
			x := r.get(path)
			if p := refusedAs(t, x); p.Status != 503 || p.Watch != "late" || x.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %+v", door, p)
			}
		}
		r.Prime("late", 1, gatewaytest.Resource("a/1", 1, `{"n":2}`))
		if got := upserts(x.Take()); !slices.Equal(got, []string{`a/1 {"n":2}`}) {
			t.Errorf("once it is primed: %q", got)
		}
	})
}

// TestRefusedViews checks the answer to a view that is not opened because of a limit.
func TestRefusedViews(t *testing.T) {
	for reason, test := range map[string]struct {
		status int
		text   string
	}{
		views.TooMany:          {503, `watch \"orders\" has no view for you yet, and there are as many views as allowed, 7`},
		views.TooManyOfAClient: {429, `client 192.0.2.1 has as many different views as allowed, 7`},
		views.TooManyOrders:    {429, `client 192.0.2.1 has windows in as many different orders as allowed, 7`},
		views.TooManyWindows:   {429, `client 192.0.2.1 has as many different windows of one order as allowed, 7`},
		views.NoMemory:         {503, `the memory for views is used up`},
		"another":              {503, `as many views as allowed, 7`},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newViewRig(t, behindProxy(Config{}))
				const me = "X-Forwarded-For: 192.0.2.1"
				r.views.Refuse(&views.Refusal{Reason: reason, Limit: 7})
				all := doors("orders", asking("filter", "value.n > 1"))
				for _, door := range []string{"stream", "poll", "list"} {
					x := r.get(all[door], me)
					if got := x.Text(); x.StatusCode != test.status || x.Header.Get("Retry-After") == "" || !strings.Contains(got, test.text) || !strings.Contains(got, `"watch":"orders"`) {
						t.Errorf("%s: %s %v %s", door, x.Status, x.Header, got)
					}
				}
				if got := r.get("/v1/events"+asking("watch", "other", "watch", "orders", "filter.orders", "true"), me).Text(); !strings.Contains(got, `"watch":"orders","parameter":"filter.orders"`) {
					t.Errorf("one watch of several: %s", got)
				}
				browser := r.get(all["stream"], me, eventStream)
				if got := browser.Text(); browser.StatusCode != 200 || !strings.Contains(got, `"reason":"overloaded"`) || strings.Contains(got, "hello") {
					t.Errorf("a browser: %s %s", browser.Status, got)
				}
				if x := r.get(all["one"], me); x.StatusCode != 404 { // it needs no view
					t.Errorf("a resource: %s", x.Status)
				}
				counted := reason
				if reason == "another" {
					counted = views.TooMany
				}
				for transport, want := range map[string]float64{"sse": 3, "poll": 1, "list": 1} {
					if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", transport, "reason", counted); n != want {
						t.Errorf("%s: %v refusals are counted, want %v", transport, n, want)
					}
				}
				if n := r.gateway.admission.Count(); n != 0 {
					t.Errorf("%d streams are open", n)
				}
				if asked := r.views.Clients(); len(asked) != 5 || asked[0] != "192.0.2.1" || asked[4] != "192.0.2.1" {
					t.Errorf("views were asked for by %q", asked)
				}
				r.views.Refuse(nil)
				if x := r.get(all["list"], me); x.StatusCode != 200 {
					t.Errorf("afterwards: %s", x.Status)
				}
			})
		})
	}
}

// TestViewThatFails checks that an error which is no refusal reveals nothing.
func TestViewThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		r.views.Refuse(errors.New("secret"))
		all := doors("orders", asking("filter", "value.n > 1"))
		for _, door := range []string{"stream", "poll", "list"} {
			if p := refusedAs(t, r.get(all[door])); p.Status != 500 || strings.Contains(p.Detail, "secret") {
				t.Errorf("%s: %+v", door, p)
			}
		}
	})
}

// TestListOfAView checks its pages, its ETag and its page tokens.
func TestListOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		path := "/v1/watches/orders/resources" + asking("labels", "zone=y", "fields", "n", "page_size", "1")
		one := r.get(path)
		text := one.Text()
		token := regexp.MustCompile(`"next_page_token":"([^"]+)"`).FindStringSubmatch(text)
		if len(token) == 0 || !strings.Contains(text, `"count":2`) || !strings.Contains(text, `"value":{"n":2}`) {
			t.Fatalf("%s %s", one.Status, text)
		}
		next := asking("page_token", token[1])[1:]
		if got := r.get(path + "&" + next).Text(); !strings.Contains(got, `"value":{"n":3}`) || !strings.Contains(got, `"next_page_token":""`) {
			t.Errorf("page 2: %s", got)
		}
		for _, other := range []string{asking("labels", "zone=x", "fields", "n"), "?page_size=1"} {
			if x := r.get("/v1/watches/orders/resources" + other + "&" + next); x.StatusCode != 410 {
				t.Errorf("the token of another view: %s %s", x.Status, x.Text())
			}
		}
		tag := one.Header.Get("ETag")
		if x := r.get(path, "If-None-Match: "+tag); x.StatusCode != 304 || x.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match: %s", x.Status)
		}
		if x := r.get("/v1/watches/orders/resources", "If-None-Match: "+tag); x.StatusCode != 200 || x.Header.Get("ETag") == tag {
			t.Errorf("the ETag of a view for all of the watch: %s", x.Status)
		}
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"n":4,"labels":{"zone":"y"}}`))
		synctest.Wait()
		if x := r.get(path, "If-None-Match: "+tag); x.StatusCode != 200 {
			t.Errorf("If-None-Match after a change: %s", x.Status)
		}
	})
}

// TestResourceOfAView checks that a resource that is not in the view does not exist, and
// that its ETag is of the view if that has only a part of it.
func TestResourceOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		const at = "/v1/watches/orders/resources/"
		whole := r.get(at + "a%2F1")
		tags := map[string]bool{whole.Header.Get("ETag"): true}
		for query, want := range map[string]string{
			asking("fields", "n"):                              `{"key":"a/1","revision":"1","value":{"n":1}}`,
			asking("fields", "n,team"):                         `{"key":"a/1","revision":"1","value":{"n":1,"team":"red"}}`,
			asking("labels", "zone=x", "fields", "more"):       `{"key":"a/1","revision":"1","value":{"more":[1,2]}}`,
			asking("prefix", "a/"):                             strings.TrimSpace(whole.Text()),
			asking("filter", "value.n == 1", "prefix", "a/"):   strings.TrimSpace(whole.Text()),
			asking("fields", "n", "filter", "revision == 1"):   `{"key":"a/1","revision":"1","value":{"n":1}}`,
			asking("fields", "none", "filter", `key == "a/1"`): `{"key":"a/1","revision":"1","value":{}}`,
		} {
			x := r.get(at + "a%2F1" + query)
			tag := x.Header.Get("ETag")
			got := strings.TrimSpace(x.Text())
			sameAsWhole := !strings.Contains(query, "fields")
			if x.StatusCode != 200 || got != want || tags[tag] != sameAsWhole || !strings.HasPrefix(tag, `"1`) {
				t.Errorf("%s: %s %s, ETag %s", query, x.Status, got, tag)
			}
			tags[tag] = true
		}
		missing := r.get(at + "zzz" + asking("filter", "value.n > 1")).Text()
		for _, query := range []string{asking("filter", "value.n > 1"), asking("labels", "zone=y"), asking("prefix", "b"), asking("filter", "value.absent == 1")} {
			x := r.get(at + "a%2F1" + query)
			if got := x.Text(); x.StatusCode != 404 || strings.ReplaceAll(got, "a/1", "zzz") != missing {
				t.Errorf("%s: %s %s, want as %s", query, x.Status, got, missing)
			}
		}
		if n := len(r.views.Clients()); n != 0 {
			t.Errorf("%d views were opened", n)
		}
	})
}

// TestWriteWithTheTagOfAView checks that a client cannot replace what it has not seen.
func TestWriteWithTheTagOfAView(t *testing.T) {
	r := newAPIRig(t, Config{engine: gatewaytest.NewViews(t)})
	const path = "/v1/watches/notes/resources/a"
	r.send("PUT", path, `{"n":1,"m":2}`).want(t, 201, "")
	tag := r.get(path + "?fields=n").Header.Get("ETag")
	r.send("PUT", path, `{"n":2}`, "If-Match: "+tag).wantProblem(t, 400, "If-Match", "of a part of the resource")
	r.send("PUT", path+"?fields=n", `{"n":2}`).wantProblem(t, 400, "fields", "unknown parameter")
	r.get(path).want(t, 200, `{"key":"a","revision":"2","value":{"n":1,"m":2}}`+"\n")
}

// TestLongPollOfAView checks that only changes of the view are answers.
func TestLongPollOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		path := "/v1/watches/orders/changes" + asking("filter", "value.n > 2", "fields", "n", "wait", "10s")
		position := func(text string) string {
			t.Helper()
			m := regexp.MustCompile(`"position":"([^"]+)"`).FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("no position in %s", text)
			}
			return m[1]
		}
		first := r.get(path).Text()
		if got := upserts(first); !slices.Equal(got, []string{`b/3 {"n":3}`}) {
			t.Errorf("got %q of %s", got, first)
		}
		poll := make(chan *gatewaytest.Exchange, 1)
		go func() { poll <- r.get(path + "&after=" + position(first)) }()
		synctest.Wait()
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"n":0}`))
		synctest.Wait()
		if len(poll) > 0 {
			t.Fatal("answered without a change of the view")
		}
		r.Commit("orders", 5, gatewaytest.Resource("d", 5, `{"n":5}`))
		second := (<-poll).Text()
		if got := upserts(second); !slices.Equal(got, []string{`d {"n":5}`}) {
			t.Errorf("got %q of %s", got, second)
		}
		if got := r.get("/v1/watches/orders/changes" + asking("filter", "value.n > 2", "after", position(second))).Text(); !strings.Contains(got, "epoch_changed") {
			t.Errorf("the position of another view: %s", got)
		}
	})
}

// TestLabelsAt checks that labels are where the watch says.
func TestLabelsAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		r.Add(watch.Config{Name: "pods", LabelsAt: "metadata.labels"})
		r.Prime("pods", 1, gatewaytest.Resource("a", 1, `{"metadata":{"labels":{"app":"web"}}}`), gatewaytest.Resource("b", 1, `{"labels":{"app":"web"}}`))
		got := r.get("/v1/watches/pods/events?labels=app%3Dweb&until=end_of_snapshot").Text()
		if all := upserts(got); len(all) != 1 || !strings.HasPrefix(all[0], "a ") {
			t.Errorf("got %q", all)
		}
	})
}

// TestRemovedWatchOfAView checks that the streams of its views end too.
func TestRemovedWatchOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		x := r.get("/v1/watches/orders/events" + asking("filter", "value.n > 1"))
		x.Take()
		r.Registry.Remove("orders")
		synctest.Wait()
		time.Sleep(slack())
		if got := x.Take(); !strings.Contains(got, `"watch_removed"`) {
			t.Errorf("got %s", got)
		}
	})
}

// TestSubscribersShowViews checks that the list shows which part of a watch a stream
// follows, in canonical form.
func TestSubscribersShowViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		check := func(path string, want ...introspection.View) {
			t.Helper()
			x := r.get(path)
			x.Take()
			if got := r.only().Views; !slices.Equal(got, want) {
				t.Errorf("%s: %+v, want %+v", path, got, want)
			}
			x.Cancel()
			synctest.Wait()
			time.Sleep(slack())
			if left := r.subscribers("").Left; len(left) == 0 || !slices.Equal(left[0].Views, want) {
				t.Errorf("%s: not among those that left: %+v", path, left)
			}
		}
		check("/v1/events?watch=orders&watch=other&fields.other=b,a&fields.other=a.c&labels.other=z+in+(b,a)",
			introspection.View{Watch: "other", Labels: "z in (a,b)", Fields: "a,b"})
		check("/v1/watches/orders/events"+asking("filter", "value.n>1", "prefix", "\xff"),
			introspection.View{Watch: "orders", Filter: "value.n > 1", Prefix: "\uFFFD"})
		check("/v1/watches/orders/events?prefix=a", introspection.View{Watch: "orders", Prefix: "a"})
		check("/v1/watches/orders/events")
		after := lastID(t, r.get("/v1/watches/orders/events?filter=value.n==1&until=end_of_snapshot").Text())
		go func() { r.get("/v1/watches/orders/changes" + asking("filter", "value.n==1", "after", after)) }()
		synctest.Wait()
		if got := r.only().Views; !slices.Equal(got, []introspection.View{{Watch: "orders", Filter: "value.n == 1"}}) {
			t.Errorf("a long poll: %+v", got)
		}
		time.Sleep(time.Minute)
	})
}

var _ stream.ValueLimiter = limitedWriter{}

// limitedWriter limits values to a few bytes.
type limitedWriter struct{ stream.Writer }

// MaxValueBytes implements stream.ValueLimiter.
func (limitedWriter) MaxValueBytes() int64 { return 100 }

// TestCostOfAFilterDependsOnTheWatch checks that a filter that would be too costly for
// large values is admitted where there are none.
func TestCostOfAFilterDependsOnTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newViewRig(t, Config{})
		r.Add(watch.Config{Name: "small", Writer: limitedWriter{}})
		r.Prime("small", 1)
		query := asking("filter", `value.l.all(x, value.b.contains(x))`)
		if p := refusedAs(t, r.get("/v1/watches/orders/resources"+query)); p.Parameter != "filter" || p.Status != 400 {
			t.Errorf("for large values: %+v", p)
		}
		if x := r.get("/v1/watches/small/resources" + query); x.StatusCode != 200 {
			t.Errorf("for small values: %s %s", x.Status, x.Text())
		}
	})
}
