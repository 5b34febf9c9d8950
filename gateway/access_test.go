package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// orderRules are the rules of the watch orders in the tests of access.
var orderRules = []access.Rule{
	{Role: "staff", Read: "true", Write: "true", Delete: "true"},
	{Role: "acme", Read: "value.tenant == role.tenant", Fields: []string{"status", "eta"}},
	{Role: "anyone", Read: `value.owner == principal.name && principal.name != ""`, Write: `new.owner == principal.name && principal.name != ""`, Delete: `old.owner == principal.name && principal.name != ""`},
}

// guardedPolicy is the policy of the tests of access.
func guardedPolicy(t *testing.T) *access.Policy {
	t.Helper()
	onlyStaff := []access.Rule{{Role: "staff", Read: "true", Write: "true", Delete: "true"}}
	p, err := access.CompilePolicy(access.PolicyConfig{
		Roles: []access.Role{
			{Name: "staff", When: `"staff" in principal.groups`},
			{Name: "acme", When: `"acme" in principal.groups`, With: []access.RoleValue{{Name: "tenant", Expression: `"acme"`}}},
			{Name: "anyone", When: "true"},
		},
		Watches: []access.WatchRules{
			{Name: "orders", Rules: orderRules},
			{Name: "vault", Rules: onlyStaff},
			{Name: "vault-{region}", Rules: onlyStaff},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// guarded is a gateway that asks who makes a request. It has the watch orders, of which
// everybody sees another part; vault and the template vault-{region}, which are for staff;
// and closed, which has no rules.
type guarded struct {
	*apiRig
	operations *apiRig // what an operations listener serves that other machines can reach
	tokens     map[string]string
	revisions  map[string]uint64
	made       int // watches of the template
}

// The resources of the watch orders. None of what ann and acme may not see is a part of
// what they may see.
var orders = map[string]string{
	"o_1": `{"tenant":"acme","owner":"ann","status":"is_open","eta":1,"margin":"s3cret-1"}`,
	"o_2": `{"tenant":"globex","owner":"bob","status":"is_lost","eta":2,"margin":"s3cret-2"}`,
	"o_3": `{"tenant":"acme","owner":"eve","status":"is_paid","eta":3,"margin":"s3cret-3"}`,
}

func newGuarded(t *testing.T, change func(*Config)) *guarded {
	t.Helper()
	r := &guarded{apiRig: &apiRig{t: t, registry: watch.NewRegistry()}, tokens: map[string]string{}, revisions: map[string]uint64{}}
	t.Cleanup(r.registry.Close)
	embedded := store.New(store.Config{})
	for _, name := range []string{"orders", "vault", "closed"} {
		r.add(watch.Config{Name: name, SourceName: "embedded", Source: embedded.Source(name), Writer: embedded.Writer(name)})
		r.primed(name)
	}
	for _, key := range slices.Sorted(maps.Keys(orders)) {
		stored, _, err := embedded.Writer("orders").Put(t.Context(), stream.PutRequest{Key: key, Value: []byte(orders[key])})
		if err != nil {
			t.Fatal(err)
		}
		r.revisions[key] = stored.Revision
	}
	r.holds("orders", len(orders))
	_, err := r.registry.AddTemplate(watch.TemplateConfig{
		Name: "vault-{region}", Match: func(name string) bool { return strings.HasPrefix(name, "vault-") },
		Make: func(name, _ string) (watch.Config, error) {
			r.made++
			return watch.Config{SourceName: "embedded", Source: embedded.Source(name), Writer: embedded.Writer(name)}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Registry: r.registry, Logger: slog.New(slog.DiscardHandler), StreamSettings: StreamSettings{PrimeWait: 5 * time.Second}, Metrics: true, Instance: "test", Profiles: http.HandlerFunc(profile)}
	c.Access = &Access{Policy: guardedPolicy(t), OperationsRole: "staff", Credentials: credential.Config{Tokens: r.newTokens()}}
	if change != nil {
		change(&c)
	}
	if r.gateway, err = New(c); err != nil {
		t.Fatal(err)
	}
	serve := func(h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	r.url = serve(r.gateway.Handler())
	r.grpc = dialGRPC(t, r.gateway)
	r.operations = &apiRig{t: t, url: serve(r.gateway.operationsHandler(otherMachines{}))}
	return r
}

// profile stands for the profiles of the process.
func profile(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a profile") }

// otherMachines is an address that other machines can reach.
type otherMachines struct{}

func (otherMachines) Network() string { return "tcp" }
func (otherMachines) String() string  { return "192.0.2.1:8081" }

// newTokens makes a token for each principal.
func (r *guarded) newTokens() *access.TokenTable {
	r.t.Helper()
	var lines []string
	for name, groups := range map[string][]string{"sam": {"staff"}, "agent": {"acme"}, "ann": nil, "outsider": nil} {
		text, line, err := access.NewToken(name, groups)
		if err != nil {
			r.t.Fatal(err)
		}
		r.tokens[name] = text
		lines = append(lines, line)
	}
	table, err := access.ParseTokens([]byte(strings.Join(lines, "\n")))
	if err != nil {
		r.t.Fatal(err)
	}
	return table
}

// as returns the header with the token of a principal; nobody has none.
func (r *guarded) as(name string) []string {
	if name == "nobody" {
		return nil
	}
	return []string{"Authorization: Bearer " + r.tokens[name]}
}

// hides is what nobody but these principals may ever read, in any answer about orders.
var hides = map[string][]string{
	"nobody":   {"o_1", "o_2", "o_3", "s3cret", "globex", "is_lost", "is_open", "is_paid", "vault"},
	"outsider": {"o_1", "o_2", "o_3", "s3cret", "globex", "is_lost", "is_open", "is_paid", "vault"},
	"ann":      {"o_2", "o_3", "s3cret-2", "s3cret-3", "globex", "is_lost", "is_paid", "vault"},
	"agent":    {"o_2", "s3cret", "globex", "is_lost", "owner", "margin", "vault"},
}

// waysToRead are all ways to read.
var waysToRead = []string{
	"/v1/events?watch=orders&until=end_of_snapshot",
	"/v1/events?watch=orders&until=end_of_snapshot&format=ndjson",
	"/v1/watches/orders/events?until=end_of_snapshot",
	"/v1/watches/orders/events?until=end_of_snapshot&fields=status,owner2,tenant2",
	"/v1/watches/orders/events?until=end_of_snapshot&last_event_id=orders:x:1",
	"/v1/watches/orders/resources",
	"/v1/watches/orders/resources?page_size=1",
	"/v1/watches/orders/changes?wait=1ms",
	"/v1/watches/orders/changes?wait=1ms&filter=true",
	"/v1/watches/orders/history",
	"/v1/watches/orders/history?limit=1",
	"/v1/watches/orders/history?key=o_2",
	"/v1/watches/orders/history?filter=true",
	"/v1/watches/orders/counts?by=status",
	"/v1/watches/orders/counts?by=owner,tenant,margin,note&sum=margin",
	"/v1/watches/orders/counts/events?by=status,tenant&until=end_of_snapshot",
	"/v1/watches/orders/counts/events?by=owner&sum=margin&filter=true&until=end_of_snapshot",
	"/v1/watches/orders",
	"/v1/watches",
	"/v1/subscribers", "/v1/series", "/metrics", "/debug/pprof/heap",
	"/healthz", "/readyz", "/openapi.json",
}

// TestNobodySeesWhatIsHidden checks each way to read for each principal: no byte of what a
// principal may not see is in any answer.
func TestNobodySeesWhatIsHidden(t *testing.T) {
	r := newGuarded(t, nil)
	for name, hidden := range hides {
		for _, door := range waysToRead {
			for _, encoding := range []string{"identity", "gzip", "zstd"} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					got := r.send(method, door, "", append(r.as(name), "Accept-Encoding: "+encoding)...)
					r.conceals(name, got, hidden)
				}
			}
		}
	}
	if all := r.get("/v1/watches/orders/resources", r.as("sam")...); strings.Count(all.text, "s3cret") != 3 {
		t.Errorf("staff sees %s", all.text)
	}
}

// conceals checks that an answer has none of what is hidden.
func (r *guarded) conceals(name string, got reply, hidden []string) {
	r.t.Helper()
	text := got.text
	switch got.Header.Get("Content-Encoding") {
	case "gzip":
		text = unzipped(r.t, text)
	case "zstd":
		d, err := zstd.NewReader(strings.NewReader(text), zstd.WithDecoderConcurrency(1))
		if err != nil {
			r.t.Fatal(err)
		}
		defer d.Close()
		all, err := io.ReadAll(d)
		if text = string(all); err != nil {
			r.t.Errorf("%s: %v", got.Request.URL, err)
		}
	}
	for key := range got.Header {
		text += "\n" + got.Header.Get(key)
	}
	for _, part := range hidden {
		if got.Request.URL.Path != "/openapi.json" && strings.Contains(text, part) {
			r.t.Errorf("%s: %s %s: %q is in\n%.800s", name, got.Request.Method, got.Request.URL, part, text)
		}
	}
}

// TestEverybodySeesTheirs checks that the tests of what is hidden can fail: what may be
// seen is seen.
func TestEverybodySeesTheirs(t *testing.T) {
	r := newGuarded(t, nil)
	for name, want := range map[string]string{
		"ann":   `{"key":"o_1","revision":"1","value":` + orders["o_1"] + `}`,
		"agent": `{"key":"o_1","revision":"1","value":{"status":"is_open","eta":1}},{"key":"o_3","revision":"3","value":{"status":"is_paid","eta":3}}`,
	} {
		if got := r.get("/v1/watches/orders/resources", r.as(name)...); !strings.Contains(got.text, want) {
			t.Errorf("%s: %s\nwant %s", name, got.text, want)
		}
	}
}

// TestFiguresAreOfWholeWatches: who may see only a part of a watch is told so, with no
// figures of the rest. How the upstream fares is no secret.
func TestFiguresAreOfWholeWatches(t *testing.T) {
	r := newGuarded(t, nil)
	for name, want := range map[string]string{
		"sam": `"count":3,`,
		"ann": `"count":0,"bytes":0,"subscribers":0,`,
	} {
		got := r.get("/v1/watches/orders", r.as(name)...).text
		if !strings.Contains(got, want) || !strings.Contains(got, `"upstream":{"connected":true,"since":"`) || strings.Contains(got, `"partial":true`) != (name != "sam") {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
}

// TestAnswersAreForOnePrincipal checks that no cache keeps an answer, whatever it is.
func TestAnswersAreForOnePrincipal(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.AllowedOrigins = []string{"https://app.example.com"} })
	for _, path := range append(slices.Clone(waysToRead), "/v1/watches/vault", "/v1/watches/orders/resources/o_1", "/v1/watches/orders/resources/o_9", "/v1/watches/orders/resources?filter=(") {
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		for name, headers := range map[string][]string{
			"nobody": nil, "ann": r.as("ann"), "sam": r.as("sam"), "a wrong token": {"Authorization: Bearer wrong"},
			"a page": append(r.as("ann"), "Origin: https://app.example.com", "Accept: text/event-stream"),
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
				r.isPrivate(name, r.send(method, path, bodyFor(method, "1"), headers...))
			}
		}
	}
	tag := r.get("/v1/watches/orders/resources", r.as("ann")...).Header.Get("ETag")
	same := r.get("/v1/watches/orders/resources", append(r.as("ann"), "If-None-Match: "+tag)...)
	same.want(t, 304, "")
	r.isPrivate("304", same)
}

// isPrivate checks the headers of an answer that no cache may keep.
func (r *guarded) isPrivate(name string, got reply) {
	r.t.Helper()
	control, vary := strings.Join(got.Header.Values("Cache-Control"), ", "), strings.Join(got.Header.Values("Vary"), ", ")
	for header, has := range map[string]bool{
		"Cache-Control private":  strings.Contains(control, "private"),
		"Cache-Control no-store": strings.Contains(control, "no-store"),
		"Vary Authorization":     strings.Contains(vary, "Authorization"),
		"Vary Cookie":            strings.Contains(vary, "Cookie"),
	} {
		if !has {
			r.t.Errorf("%s: %s %s: %s: no %s: Cache-Control %q, Vary %q", name, got.Request.Method, got.Request.URL, got.Status, header, control, vary)
		}
	}
}

// TestHiddenAndMissingWatchesAreTheSame checks that the answer about a hidden watch, or to a
// name of which a hidden template would make a watch, is that about one that does not exist.
func TestHiddenAndMissingWatchesAreTheSame(t *testing.T) {
	r := newGuarded(t, nil)
	r.get("/v1/watches/vault-eu", r.as("sam")...).want(t, 200, "") // is made, and then it is there
	made := r.made
	for hidden, missing := range map[string]string{"vault": "zzzzz", "vault-eu": "zzzzz-eu", "vault-us": "zzzzz-us", "closed": "zzzzzz"} {
		for name := range hides {
			for _, path := range []string{
				"/v1/events?watch=%s", "/v1/events?watch=orders&watch=%s", "/v1/events?watch=%s&filter.%[1]s=(", "/v1/watches/%s/events", "/v1/watches/%s/changes", "/v1/watches/%s",
				"/v1/watches/%s/resources", "/v1/watches/%s/resources?filter=(", "/v1/watches/%s/resources?page_size=0&page_token=x", "/v1/watches/%s/resources/k", "/v1/subscribers?watch=%s", "/v1/series?watch=%s",
				"/v1/watches/%s/counts?by=a", "/v1/watches/%s/counts", "/v1/watches/%s/counts/events?by=a", "/v1/watches/%s/counts/events?by=(",
				"/v1/watches/%s/history", "/v1/watches/%s/history?key=k&limit=1", "/v1/watches/%s/history?after=%[1]s@e1-1", "/v1/watches/%s/history?before=x", "/v1/watches/%s/history?filter=(",
			} {
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
					for _, more := range []string{"Accept: */*", "Accept: text/event-stream", "If-None-Match: *", `If-Match: "1"`} {
						headers := append(r.as(name), more)
						a := r.send(method, fmt.Sprintf(path, hidden), bodyFor(method, "{}"), headers...)
						b := r.send(method, fmt.Sprintf(path, missing), bodyFor(method, "{}"), headers...)
						wantSame(t, name, a, b, missing, hidden)
					}
				}
			}
		}
	}
	if r.made != made {
		t.Errorf("%d watches were made for whom they are hidden from", r.made-made)
	}
}

// wantSame checks that two answers are the same apart from a name.
func wantSame(t *testing.T, who string, a, b reply, of, by string) {
	t.Helper()
	if got, want := a.shown(), strings.ReplaceAll(b.shown(), of, by); got != want {
		t.Errorf("%s: %s %s:\n got %s\nwant %s", who, a.Request.Method, a.Request.URL, got, want)
	}
}

// shown is what a client sees of an answer, apart from the time.
func (a reply) shown() string {
	header := a.Header.Clone()
	header.Del("Date")
	if header.Get("Retry-After") != "" {
		header.Set("Retry-After", "some time")
	}
	return fmt.Sprintf("%s %v %s", a.Status, header, a.text)
}

// TestHiddenAndMissingResourcesAreTheSame checks that the answer about a hidden resource is
// that about one that does not exist, whatever the request wants of it.
func TestHiddenAndMissingResourcesAreTheSame(t *testing.T) {
	r := newGuarded(t, nil)
	path := "/v1/watches/orders/resources/"
	tag := fmt.Sprintf(`"%d"`, r.revisions["o_2"])
	for name := range hides {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
			for _, query := range []string{"", "?validate_only=true", "?validate_only=false", "?filter=true", `?filter=value.margin%3D%3D"s3cret-2"`, "?fields=margin", "?prefix=o_"} {
				for _, header := range []string{"X: y", "If-Match: " + tag, `If-Match: "999"`, "If-None-Match: *", "If-None-Match: " + tag} {
					for _, body := range []string{`{"owner":"bob"}`, `{"owner":""}`, "not JSON"} {
						headers := append(r.as(name), header)
						a := r.send(method, path+"o_2"+query, bodyFor(method, body), headers...)
						b := r.send(method, path+"o_9"+query, bodyFor(method, body), headers...)
						wantSame(t, name, a, b, "o_9", "o_2")
					}
				}
			}
		}
		mine := append(r.as(name), "If-Match: "+tag)
		body := `{"owner":"` + name + `"}`
		wantSame(t, name, r.send("PUT", path+"o_2", body, mine...), r.send("PUT", path+"o_9", body, mine...), "o_9", "o_2")
	}
	if got := r.get(path+"o_2", r.as("sam")...); !strings.Contains(got.text, orders["o_2"]) {
		t.Errorf("it was changed: %s", got.text)
	}
}

// TestWritesWithoutACredential checks that a client that may see a watch, but may not write there
// without a credential, is asked for one.
func TestWritesWithoutACredential(t *testing.T) {
	public, err := access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "staff", When: `"staff" in principal.groups`}, {Name: "anyone", When: "true"}},
		Watches: []access.WatchRules{{Name: "orders", Rules: []access.Rule{{Role: "staff", Write: "true", Delete: "true"}, {Role: "anyone", Read: "true"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newGuarded(t, func(c *Config) { c.Access.Policy = public })
	for i, method := range []string{"PUT", "DELETE"} {
		write := func(headers ...string) reply {
			return r.send(method, "/v1/watches/orders/resources/o_1", bodyFor(method, `{}`), headers...)
		}
		got := write()
		got.wantProblem(t, 401, "", "send Authorization: Bearer")
		if got.Header.Get("WWW-Authenticate") == "" || !strings.Contains(got.text, `"key":"o_1"`) {
			t.Errorf("%s: %v %s", method, got.Header, got.text)
		}
		if n := counter(t, r.gateway, "watchtide_auth_failures_total", "reason", "credential_missing"); n != float64(i+1) {
			t.Errorf("%v refusals are counted, want %d", n, i+1)
		}
		write(r.as("ann")...).wantProblem(t, 403, "", "no rule")
		write(r.as("sam")...).want(t, 200, "")
	}
}

// unfinished is a page of a history that goes on.
var unfinished = regexp.MustCompile(`"next":"[^"]`)

// TestHiddenFieldsAreNoOracle checks that what narrows a request sees nothing that is
// hidden: a filter that is true of a hidden field finds as much as one that is false.
func TestHiddenFieldsAreNoOracle(t *testing.T) {
	r := newGuarded(t, nil)
	for name := range hides {
		for _, pair := range [][2]string{
			{`filter=value.margin.startsWith("s3cret-2")`, `filter=value.margin.startsWith("z3cret-2")`},
			{`filter=value.tenant=="globex"`, `filter=value.tenant=="zlobex"`},
			{`filter=value.status=="is_lost"`, `filter=value.status=="is_zost"`},
			{`filter=key=="o_2"`, `filter=key=="o_9"`},
			{`prefix=o_2`, `prefix=o_9`},
			{`fields=owner2.x&prefix=o_2`, `fields=owner2.x&prefix=o_9`},
			{`labels=a%3Db&prefix=o_2`, `labels=a%3Db&prefix=o_9`},
		} {
			for _, path := range []string{"resources?", "changes?wait=1ms&", "events?until=end_of_snapshot&", "resources/o_2?", "history?", "history?key=o_2&"} {
				yes := strings.NewReplacer("s3cret", "X", "z3cret", "X", "globex", "X", "zlobex", "X", "is_lost", "X", "zost", "X", "o_9", "o_2")
				var shown [2]string
				for i, query := range pair {
					target := "/v1/watches/orders/" + path + strings.ReplaceAll(query, `"`, "%22")
					got := r.get(target, r.as(name)...)
					for range 100 { // a page ends early on a busy machine
						if !unfinished.MatchString(got.text) {
							break
						}
						got = r.get(target, r.as(name)...)
					}
					shown[i] = yes.Replace(anonymous.ReplaceAllString(got.Status+got.text, "…"))
				}
				if shown[0] != shown[1] {
					t.Errorf("%s: %s%s:\n%s\n%s", name, path, pair[0], shown[0], shown[1])
				}
			}
		}
	}
}

// TestTagsOfOthers checks that a position, a tag and a page of one principal are worth
// nothing to another.
func TestTagsOfOthers(t *testing.T) {
	r := newGuarded(t, nil)
	const list = "/v1/watches/orders/resources"
	all := r.get(list+"?page_size=1", r.as("sam")...)
	tag, position, next := all.Header.Get("ETag"), between(all.text, `"position":"`, `"`), between(all.text, `"next_page_token":"`, `"`)
	if next == "" {
		t.Fatalf("no second page: %s", all.text)
	}
	for name, hidden := range hides {
		if name == "nobody" {
			continue // has to say who it is, whatever it asks for
		}
		page := r.get(list+"?page_size=1&page_token="+next, r.as(name)...)
		r.conceals(name, page, hidden)
		if page.StatusCode != 400 && page.StatusCode != 410 {
			t.Errorf("%s: the page of another: %s %s", name, page.Status, page.text)
		}
		r.get(list, append(r.as(name), "If-None-Match: "+tag)...).want(t, 200, "")
		older := between(r.get("/v1/watches/orders/history?limit=1", r.as("sam")...).text, `"next":"`, `"`)
		for _, place := range []string{"after=" + position, "before=" + older} {
			got := r.get("/v1/watches/orders/history?"+place, r.as(name)...)
			r.conceals(name, got, hidden)
			if got.StatusCode != 410 {
				t.Errorf("%s: the place of another, %s: %s %s", name, place, got.Status, got.text)
			}
		}
		for _, path := range []string{"events?until=end_of_snapshot&last_event_id=", "changes?wait=1ms&after="} {
			got := r.get("/v1/watches/orders/"+path+position, r.as(name)...)
			r.conceals(name, got, hidden)
			if !strings.Contains(got.text, `"type":"reset"`) && !strings.Contains(got.text, "event: reset") {
				t.Errorf("%s: %s is continued: %s", name, path, got.text)
			}
		}
	}
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
