package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// anonymous matches members of answers that differ for each definition or request.
var anonymous = regexp.MustCompile(`"(?:epoch|position|retry_ms)":(?:"[^"]*"|[0-9]+)|retry: [0-9]+|orders@[a-z0-9]+|"stream":"[^"]*"`)

// unzipped returns the content of a gzip file.
func unzipped(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return "" // the answer to HEAD
	}
	z, err := gzip.NewReader(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestOnlyOperatorsSeeOperations checks what only operators see, on the public listener and
// on an operations listener that other machines can reach.
func TestOnlyOperatorsSeeOperations(t *testing.T) {
	r := newGuarded(t, nil)
	for _, path := range []string{"/metrics", "/v1/subscribers", "/v1/series", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/"} {
		for _, name := range []string{"nobody", "outsider", "ann", "agent"} {
			for _, at := range []*apiRig{r.apiRig, r.operations} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					if got := at.send(method, path, "", r.as(name)...); got.StatusCode < 400 || strings.Contains(got.text, "a profile") {
						t.Errorf("%s: %s %s: %s %.200s", name, method, got.Request.URL, got.Status, got.text)
					}
				}
			}
		}
		r.operations.get(path, r.as("sam")...).want(t, 200, "")
	}
	r.get("/metrics", r.as("sam")...).want(t, 200, "")
	r.get("/v1/subscribers?watch=orders", r.as("sam")...).want(t, 200, "")
	r.get("/debug/pprof/heap", r.as("sam")...).want(t, 404, "")
}

// TestPagesOfOtherSitesAreNoOperators checks that a page that somebody beside a listener on
// loopback visits can have nothing made that is for operators.
func TestPagesOfOtherSitesAreNoOperators(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.AllowedOrigins = []string{"https://app.example.com"} })
	open, err := New(Config{Registry: r.registry, Logger: slog.New(slog.DiscardHandler), Metrics: true, Profiles: http.HandlerFunc(profile)})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{"auth": r.gateway.OperationsHandler(), "no auth": open.OperationsHandler()} {
		for _, path := range []string{"/metrics", "/v1/subscribers", "/v1/series", "/v1/topology", "/v1/replicas", "/debug/pprof/heap?gc=1", "/debug/pprof/profile"} {
			for headers, want := range map[string]int{
				"": 200, "Sec-Fetch-Site=none": 200, "Sec-Fetch-Site=same-origin": 200, "Origin=http://localhost:8081": 200,
				"Sec-Fetch-Site=cross-site": 403, "Sec-Fetch-Site=same-site": 403, "Origin=https://evil.example.com": 403, "Origin=null": 403,
				"Sec-Fetch-Site=cross-site&Sec-Fetch-Mode=navigate": 403,
			} {
				ask := httptest.NewRequest(http.MethodGet, "http://localhost:8081"+path, http.NoBody)
				ask.RemoteAddr = "127.0.0.1:1"
				for pair := range strings.SplitSeq(headers, "&") {
					if key, value, ok := strings.Cut(pair, "="); ok {
						ask.Header.Set(key, value)
					}
				}
				got := httptest.NewRecorder()
				h.ServeHTTP(got, ask)
				if got.Code != want {
					t.Errorf("%s: %s with %q: %d %.200s, want %d", name, path, headers, got.Code, got.Body, want)
				}
			}
		}
	}
}

// TestWithoutOperationsRole checks that nobody is an operator of a listener that other
// machines can reach if no role is named.
func TestWithoutOperationsRole(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.Access.OperationsRole = "" })
	for _, path := range []string{"/metrics", "/v1/subscribers", "/v1/series", "/debug/pprof/heap"} {
		for _, at := range []*apiRig{r.apiRig, r.operations} {
			if got := at.get(path, r.as("sam")...); got.StatusCode < 400 {
				t.Errorf("%s: %s %.200s", got.Request.URL, got.Status, got.text)
			}
		}
	}
}

// TestReasonsAreForOperators checks that only operators learn why the gateway is not ready.
func TestReasonsAreForOperators(t *testing.T) {
	r := newGuarded(t, nil)
	r.add(watch.Config{Name: "silent", Source: stream.SourceFunc(
		func(ctx context.Context, _ stream.Resume, _ stream.Sink) error { <-ctx.Done(); return ctx.Err() },
	)})
	for _, name := range []string{"nobody", "ann", "agent"} {
		for _, at := range []*apiRig{r.apiRig, r.operations} {
			if got := at.get("/readyz", r.as(name)...); got.StatusCode != 503 || strings.Contains(got.text, "silent") {
				t.Errorf("%s: %s %s", name, got.Status, got.text)
			}
		}
	}
}

// TestExpiredTokens checks that a browser's stream with a genuine token that has expired
// survives without data and without a seat, and that any other request gets a 401.
func TestExpiredTokens(t *testing.T) {
	provider := accesstest.NewProvider(t)
	r := newGuarded(t, func(c *Config) { c.Access.Credentials.Issuers, c.MaxSubscribers = []jwt.Issuer{provider.Issuer()}, 1 })
	claims := func(end time.Duration) string {
		return bearer(provider.Token(t, map[string]any{"groups": nil, "exp": time.Now().Add(end).Unix()}))
	}
	r.get("/v1/watches/orders/resources/o_1", claims(time.Hour)).want(t, 200, "")
	expired, old := claims(-10*time.Minute), claims(-2*time.Hour)
	for range 3 { // a seat would be taken by the first
		for _, path := range []string{"/v1/events?watch=orders", "/v1/watches/orders/events", "/v1/watches/orders/counts/events?by=a", "/v1/events?watch=vault", "/v1/events?watch=zzzzz"} {
			got := r.get(path, expired, "Accept: text/event-stream")
			got.want(t, 200, "")
			retry, _ := time.ParseDuration(between(got.text, "retry: ", "\n") + "ms")
			if retry < 30*time.Second || !strings.Contains(got.text, `"reason":"token_expired"`) || strings.Contains(got.text, "o_1") || strings.Contains(got.text, "hello") {
				t.Errorf("%s: retry %s: %s", path, retry, got.text)
			}
			r.isPrivate("an expired token", got)
		}
	}
	if n := r.gateway.admission.Count(); n != 0 {
		t.Errorf("%d seats are taken", n)
	}
	for _, c := range []struct{ method, path, token, accept string }{
		{"GET", "/v1/events?watch=orders", old, "text/event-stream"},
		{"GET", "/v1/events?watch=orders", expired, "application/x-ndjson"},
		{"GET", "/v1/watches/orders/resources", expired, "text/event-stream"},
		{"GET", "/v1/watches/orders/changes", expired, "text/event-stream"},
		{"GET", "/v1/watches/orders/resources/events", expired, "text/event-stream"},
		{"GET", "/v1/watches/orders/resources/a/events", expired, "text/event-stream"},
		{"PUT", "/v1/watches/orders/resources/events", expired, "text/event-stream"},
		{"DELETE", "/v1/watches/orders/resources/events", expired, "text/event-stream"},
		{"PUT", "/v1/events", expired, "text/event-stream"},
	} {
		got := r.send(c.method, c.path, bodyFor(c.method, "1"), c.token, "Accept: "+c.accept)
		if got.StatusCode != 401 || !strings.HasPrefix(got.Header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s %s: %s, WWW-Authenticate %q: %s", c.method, c.path, got.Status, got.Header.Get("WWW-Authenticate"), got.text)
		}
		r.isPrivate("an expired token", got)
	}
}

// TestWrongCredentials checks that a wrong credential is refused, also next to one that
// would do, and that none is taken from where it would be kept in logs.
func TestWrongCredentials(t *testing.T) {
	issuer := accesstest.NewProvider(t).Issuer()
	right := ""
	r := newGuarded(t, func(c *Config) { c.Access.Credentials.Issuers = []jwt.Issuer{issuer} })
	right = r.as("sam")[0]
	forged := accesstest.NewProvider(t).Token(t, map[string]any{"sub": "sam"})
	for name, headers := range map[string][]string{
		"an unknown token":     {"Authorization: Bearer zzz"},
		"another scheme":       {"Authorization: Basic c2FtOnNhbQ=="},
		"no token":             {"Authorization: Bearer "},
		"an empty header":      {"Authorization: "},
		"two tokens":           {right, r.as("ann")[0]},
		"the same token twice": {right, right},
		"two in one line":      {right + ", " + strings.TrimPrefix(right, "Authorization: ")},
		"a forged signature":   {"Authorization: Bearer " + forged},
	} {
		for _, path := range []string{"/v1/watches", "/v1/watches/orders/events?until=end_of_snapshot", "/v1/subscribers", "/metrics"} {
			got := r.get(path, headers...)
			if got.StatusCode != 401 && got.StatusCode != 429 || got.StatusCode == 401 && got.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %s: %s %s", name, path, got.Status, got.text)
			}
		}
	}
	for _, parameter := range []string{"access_token", "token", "authorization", "Authorization", "bearer"} {
		got := r.get("/v1/watches/vault/resources?" + parameter + "=" + r.tokens["sam"])
		if got.StatusCode < 400 || strings.Contains(got.text, r.tokens["sam"]) {
			t.Errorf("%s: %s %s", parameter, got.Status, got.text)
		}
	}
}

// TestTickets checks that a ticket opens the watches that it is for, and nothing else.
func TestTickets(t *testing.T) {
	r := newGuarded(t, nil)
	who := r.gateway.now.Load().who
	ask := httptest.NewRequest(http.MethodPost, "/v1/tickets", http.NoBody)
	ask.RemoteAddr = "127.0.0.1:1"
	ask.Header.Set("Authorization", "Bearer "+r.tokens["sam"])
	id, err := who.Identify(ask)
	if err != nil {
		t.Fatal(err)
	}
	ticket, _, err := who.NewTicket(id, []string{"orders"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.get("/v1/watches/orders/events?until=end_of_snapshot&ticket=" + ticket); got.StatusCode != 200 || !strings.Contains(got.text, "o_2") {
		t.Errorf("the watch of the ticket: %s %s", got.Status, got.text)
	}
	if got := r.get("/v1/events?watch=orders&until=end_of_snapshot&ticket=" + ticket); got.StatusCode != 200 || !strings.Contains(got.text, "o_2") {
		t.Errorf("the watch of the ticket: %s %s", got.Status, got.text)
	}
	for _, path := range []string{"/v1/events?watch=vault&", "/v1/events?watch=orders&watch=vault&", "/v1/watches/vault/events?", "/v1/watches/vault?", "/v1/watches/vault-eu?", "/v1/watches/vault/resources?"} {
		got := r.get(path + "ticket=" + ticket)
		if got.StatusCode != 404 || strings.Contains(got.text, ticket) {
			t.Errorf("%s: %s %s", path, got.Status, got.text)
		}
	}
	if got := r.get("/v1/watches?ticket=" + ticket); strings.Contains(got.text, "vault") {
		t.Errorf("the list of watches: %s", got.text)
	}
	for _, path := range []string{"/metrics?", "/v1/subscribers?", "/v1/series?"} {
		if got := r.get(path + "ticket=" + ticket); got.StatusCode < 400 {
			t.Errorf("%s: a ticket for a watch makes an operator: %s", path, got.Status)
		}
	}
	for _, query := range map[string]string{"twice": "ticket=" + ticket + "&ticket=" + ticket, "changed": "ticket=" + flipped(ticket), "empty": "ticket=", "encoded": "%74icket=wrong"} {
		r.get("/v1/watches/orders/events?until=end_of_snapshot&"+query).want(t, 401, "")
	}
}

// flipped returns text with another letter in its middle.
func flipped(text string) string {
	i, letter := len(text)/2, "A"
	if text[i] == 'A' {
		letter = "B"
	}
	return text[:i] + letter + text[i+1:]
}

// TestTicketsOnlyRead checks that a ticket, which URLs and the logs of proxies show, changes
// nothing through any door, and that it says so before a body is read.
func TestTicketsOnlyRead(t *testing.T) {
	r := newGuarded(t, nil)
	r.send("PUT", "/v1/watches/vault/resources/k", "1", r.as("sam")...).want(t, 201, "")
	made := r.send("POST", "/v1/tickets", `{"watches":["vault","vault-eu"]}`, r.as("sam")...)
	with := "ticket=" + between(made.text, `"ticket":"`, `"`)
	r.get("/v1/watches/vault/resources/k?"+with).want(t, 200, "")
	for _, door := range []struct{ method, path, body string }{
		{"PUT", "/v1/watches/vault/resources/k?", "2"},
		{"PUT", "/v1/watches/vault/resources/new?", "2"},
		{"PUT", "/v1/watches/vault-eu/resources/new?", "2"},
		{"PUT", "/v1/watches/vault/resources/k?validate_only=true&", "2"},
		{"PUT", "/v1/watches/vault/resources/k?", "no JSON"},
		{"DELETE", "/v1/watches/vault/resources/k?", ""},
		{"DELETE", "/v1/watches/vault/resources/none?validate_only=true&", ""},
		{"POST", "/v1/session?", ""},
		{"POST", "/v1/tickets?", `{"watches":["vault"]}`},
	} {
		got := r.send(door.method, door.path+with, door.body)
		if got.StatusCode != 403 || !strings.Contains(got.text, "send ") || len(got.Cookies()) > 0 {
			t.Errorf("%s %s: %s %s", door.method, door.path, got.Status, got.text)
		}
	}
	for _, method := range []string{"PATCH", "POST"} {
		if got := r.send(method, "/v1/watches/vault/resources/k?"+with, "2"); got.StatusCode != 405 {
			t.Errorf("%s: %s %s", method, got.Status, got.text)
		}
	}
	after := r.get("/v1/watches/vault/resources/k?" + with)
	if after.want(t, 200, ""); !strings.Contains(after.text, `"value":1`) || after.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%s, allowed %q", after.text, after.Header.Get("Allow"))
	}
	if got := r.get("/v1/watches/vault?" + with); !strings.Contains(got.text, `"writable":false`) {
		t.Errorf("the watch is %s", got.text)
	}
	r.send("PUT", "/v1/watches/vault/resources/k", "2", r.as("sam")...).want(t, 200, "")
}

// TestForeignPages checks that a page of another site cannot use the cookie of its user.
func TestForeignPages(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.AllowedOrigins = []string{"https://app.example.com"} })
	who := r.gateway.now.Load().who
	ask := httptest.NewRequest(http.MethodPost, r.url+"/v1/session", http.NoBody)
	ask.RemoteAddr = "127.0.0.1:1"
	ask.Header.Set("Authorization", "Bearer "+r.tokens["sam"])
	id, err := who.Identify(ask)
	if err != nil {
		t.Fatal(err)
	}
	login, err := who.NewSession(ask, id)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method string, headers ...string) reply {
		return r.send(method, "/v1/watches/vault/resources/k", bodyFor(method, "1"), append(headers, "Cookie: "+login.Cookie.Name+"="+login.Cookie.Value)...)
	}
	send("PUT", "Sec-Fetch-Site: same-origin").want(t, 201, "")
	send("GET").want(t, 200, "") // a script
	for _, headers := range [][]string{
		{"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Sec-Fetch-Site: cross-site", "Origin: https://evil.example.com"},
		{"Origin: https://evil.example.com"}, {"Origin: null"}, {"Origin: https://app.example.com.evil.example.com"},
		{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"}, {"Origin: " + r.url, "Origin: https://evil.example.com"},
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if got := send(method, headers...); got.StatusCode != 401 && got.StatusCode != 404 {
				t.Errorf("%s %q: %s %s", method, headers, got.Status, got.text)
			}
		}
	}
	twice := login.Cookie.Name + "=" + login.Cookie.Value
	r.get("/v1/watches/vault", "Cookie: "+twice+"; "+twice).want(t, 401, "")
}

// TestCertificatesOfProxies checks that the certificate which a trusted proxy presents for
// itself makes nobody of its clients, and that headers with certificates are not read.
func TestCertificatesOfProxies(t *testing.T) {
	p, err := access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "robots", When: `principal.mechanism == "certificate"`}},
		Watches: []access.WatchRules{{Name: "vault", Rules: []access.Rule{{Role: "robots", Read: "true"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newGuarded(t, func(c *Config) {
		proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		c.TrustedProxies, c.Access.Policy, c.Access.OperationsRole = proxies, p, ""
		c.Access.Credentials = credential.Config{Certificates: credential.SubjectURI, TrustedProxies: proxies}
	})
	leaf := &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/robot"}}, NotAfter: time.Now().Add(time.Hour)}
	for address, want := range map[string]int{"198.51.100.7:1": 200, "192.0.2.7:1": 401} {
		ask := httptest.NewRequest(http.MethodGet, "https://localhost/v1/watches/vault", http.NoBody)
		ask.RemoteAddr = address
		ask.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf, leaf}}}
		got := httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(got, ask)
		if got.Code != want {
			t.Errorf("%s: %d %s, want %d", address, got.Code, got.Body, want)
		}
		ask.TLS.VerifiedChains = nil
		ask.Header.Set("X-Forwarded-Client-Cert", "URI=spiffe://example.com/robot")
		ask.Header.Set("X-Client-Cert", "spiffe://example.com/robot")
		got = httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(got, ask)
		if got.Code != 401 {
			t.Errorf("%s: with a header only: %d %s", address, got.Code, got.Body)
		}
	}
}

// over returns a context of calls by a principal.
func (r *guarded) over(name string) context.Context {
	if name == "nobody" {
		return r.t.Context()
	}
	return metadata.AppendToOutgoingContext(r.t.Context(), "authorization", "Bearer "+r.tokens[name])
}

// TestNobodySeesWhatIsHiddenOverGRPC is TestNobodySeesWhatIsHidden for gRPC.
func TestNobodySeesWhatIsHiddenOverGRPC(t *testing.T) {
	r := newGuarded(t, nil)
	for name, hidden := range hides {
		for _, of := range []string{"orders", "vault", "vault-eu", "closed"} {
			for call, got := range r.calls(r.over(name), of) {
				text := strings.ReplaceAll(got.text, of, "") // the request names it
				if strings.HasSuffix(call, "Resource") {
					text = strings.ReplaceAll(text, "o_2", "")
				}
				for _, part := range hidden {
					if strings.Contains(text, part) {
						t.Errorf("%s: %s of %s: %q is in\n%s", name, call, of, part, got.text)
					}
				}
				if c := got.code; of != "orders" && call != "ListWatches" && c != codes.NotFound && c != codes.Unauthenticated {
					t.Errorf("%s: %s of %s: %s %s", name, call, of, c, got.text)
				}
			}
		}
	}
	for call, got := range r.calls(r.over("sam"), "orders") {
		if reads := []string{"ListResources", "GetResource", "WatchList"}; slices.Contains(reads, call) && !strings.Contains(got.text, "s3cret-2") {
			t.Errorf("staff: %s: %s", call, got.text)
		}
	}
	if r.made != 0 {
		t.Errorf("%d watches were made for whom they are hidden from", r.made)
	}
}

// answered is what a call was answered with: everything that it sent, and its error.
type answered struct {
	code codes.Code
	text string
}

// calls makes every call about a watch. None of them changes anything.
func (r *guarded) calls(ctx context.Context, of string) map[string]answered {
	r.t.Helper()
	out := map[string]answered{}
	note := func(call string, m proto.Message, err error) {
		sent, failed := proto.Marshal(m)
		if failed != nil {
			r.t.Fatal(failed)
		}
		out[call] = answered{status.Code(err), out[call].text + string(sent) + fmt.Sprintln(err)}
	}
	watches, err := r.grpc.ListWatches(ctx, &api.ListWatchesRequest{})
	note("ListWatches", watches, err)
	one, err := r.grpc.GetWatch(ctx, &api.GetWatchRequest{Watch: of})
	note("GetWatch", one, err)
	list, err := r.grpc.ListResources(ctx, &api.ListResourcesRequest{Watch: of, Filter: "true"})
	note("ListResources", list, err)
	got, err := r.grpc.GetResource(ctx, &api.GetResourceRequest{Watch: of, Key: "o_2"})
	note("GetResource", got, err)
	put, err := r.grpc.PutResource(ctx, &api.PutResourceRequest{Watch: of, Key: "o_2", Value: []byte("1"), ValidateOnly: true})
	note("PutResource", put, err)
	gone, err := r.grpc.DeleteResource(ctx, &api.DeleteResourceRequest{Watch: of, Key: "o_2", ValidateOnly: true})
	note("DeleteResource", gone, err)
	follow, err := r.grpc.WatchList(ctx, &api.WatchListRequest{Watch: of, UntilEndOfSnapshot: true})
	for err == nil {
		var event *api.WatchListResponse
		event, err = follow.Recv()
		note("WatchList", event, err)
	}
	return out
}

// TestWrongCredentialsOverGRPC checks that no call is made for somebody who is not known.
func TestWrongCredentialsOverGRPC(t *testing.T) {
	r := newGuarded(t, nil)
	right := "Bearer " + r.tokens["sam"]
	for name, pairs := range map[string][]string{
		"unknown": {"authorization", "Bearer zzz"}, "twice": {"authorization", right, "authorization", right}, "empty": {"authorization", ""},
	} {
		for call, got := range r.calls(metadata.AppendToOutgoingContext(t.Context(), pairs...), "orders") {
			if got.code != codes.Unauthenticated && got.code != codes.ResourceExhausted || strings.Contains(got.text, "o_1") {
				t.Errorf("%s: %s: %s %s", name, call, got.code, got.text)
			}
		}
	}
}

// TestOddPaths checks that no way to write a path leads past the question who asks.
func TestOddPaths(t *testing.T) {
	r := newGuarded(t, nil)
	address := strings.TrimPrefix(r.url, "http://")
	for _, path := range []string{
		"//v1/watches/orders/resources", "/v1//watches/orders/resources", "/v1/watches//orders/resources", "/./v1/watches/orders/resources", "/x/../v1/watches/orders/resources",
		"/%76%31/watches/orders/resources", "/v1%2Fwatches%2Forders%2Fresources", "/v1/watches/%6Frders/resources", "/v1/watches/orders/resources/o%5F1", "/v1/watches/orders/resources/./o_1",
		"/V1/watches/orders/resources", "/v1/watches/orders/resources/", "/v1/watches/orders/resources;x=/healthz", "/v1/watches/orders/resources?/healthz", "/v1/watches/orders/resources#/healthz",
		"http://localhost/v1/watches/orders/resources", "http:/v1/watches/orders/resources", "/healthz/../v1/watches/orders/resources", "/assets/../v1/watches/orders/resources",
		"/metrics/", "//metrics", "/%6Detrics", "/debug//pprof/heap", "/%64ebug/pprof/heap", "/v1/%73ubscribers", "/v1/subscribers/", "*",
	} {
		for _, head := range []string{"", "X-HTTP-Method-Override: GET\r\n", "X-Original-URL: /healthz\r\n", "X-Rewrite-URL: /v1/watches/orders/resources\r\n", "X-Forwarded-User: sam\r\n"} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", path, head)
			answer, err := io.ReadAll(conn)
			conn.Close()
			if err != nil {
				t.Fatal(err)
			}
			if text := string(answer); !strings.HasPrefix(text, "HTTP/1.1 4") || strings.Contains(text, "s3cret") || strings.Contains(text, "watchtide_") {
				t.Errorf("%s with %q: %.300s", path, head, text)
			}
		}
	}
}

// TestRevocations checks that who is in the watch of revocations is refused, and that nobody
// but those whom it may concern waits for it.
func TestRevocations(t *testing.T) {
	primed := make(chan struct{})
	r := newGuarded(t, func(c *Config) {
		c.Access.Revoked = "revocations"
		_, err := c.Registry.Add(watch.Config{Name: "revocations", Source: stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
			<-primed
			if err := errors.Join(sink.Reset("e"), sink.Upsert(stream.Resource{Key: "token/ann", Revision: 1, Value: []byte("1")}), sink.Commit(1)); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})})
		if err != nil {
			t.Fatal(err)
		}
	})
	r.get("/v1/watches/orders").want(t, 401, "")
	r.get("/v1/watches").want(t, 200, "")
	early := r.get("/v1/watches/orders", r.as("ann")...)
	early.want(t, 503, "")
	r.isPrivate("not primed", early)
	if got := r.get("/v1/watches/orders/events", append(r.as("ann"), "Accept: text/event-stream")...); got.StatusCode != 200 || !strings.Contains(got.text, `"reason":"overloaded"`) || strings.Contains(got.text, "o_1") {
		t.Errorf("a browser's stream: %s %s", got.Status, got.text)
	}
	close(primed)
	r.primed("revocations")
	r.get("/v1/watches/orders", r.as("ann")...).want(t, 401, "")
	r.get("/v1/watches/orders/events", append(r.as("ann"), "Accept: text/event-stream")...).want(t, 401, "")
	r.get("/v1/watches/orders", r.as("agent")...).want(t, 200, "")
}

// TestAccessWithoutPolicy checks what a program gets that embeds a gateway and forgets one.
func TestAccessWithoutPolicy(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	if _, err := New(Config{Registry: registry, Access: &Access{}}); err == nil || !strings.Contains(err.Error(), "Access.Policy is missing") {
		t.Errorf("no policy: %v", err)
	}
	bad := credential.Config{Certificates: "cn"}
	if _, err := New(Config{Registry: registry, Access: &Access{Policy: access.EmptyPolicy(), Credentials: bad}}); err == nil || !strings.Contains(err.Error(), "Access.Credentials") {
		t.Errorf("a mistake in the credentials: %v", err)
	}
	r := newGuarded(t, func(c *Config) { c.Access.Policy = access.EmptyPolicy() })
	for name := range hides {
		for _, path := range []string{"/v1/watches/orders", "/v1/watches/orders/resources", "/v1/events?watch=orders", "/v1/subscribers", "/v1/series", "/metrics"} {
			if got := r.get(path, r.as(name)...); got.StatusCode < 400 {
				t.Errorf("%s: %s: %s %s", name, path, got.Status, got.text)
			}
		}
		if got := r.get("/v1/watches", r.as(name)...); !strings.Contains(got.text, `"watches":[]`) {
			t.Errorf("%s: %s", name, got.text)
		}
	}
}

// TestTicketsNameNoHiddenWatch checks that who asks for a ticket does not learn whether a
// watch is hidden from them or does not exist.
func TestTicketsNameNoHiddenWatch(t *testing.T) {
	r := newGuarded(t, nil)
	ask := func(who, of string) string {
		got := r.send(http.MethodPost, "/v1/tickets", `{"watches":["`+of+`"]}`, append(r.as(who), "Content-Type: application/json")...)
		text := sealedTicket.ReplaceAllString(got.text, "…")
		return got.Status + strings.ReplaceAll(text, of, "NAME")
	}
	for name := range hides {
		for hidden, missing := range map[string]string{"vault": "zzzzz", "vault-eu": "zzzzz-eu", "closed": "zzzzzz"} {
			if a, b := ask(name, hidden), ask(name, missing); a != b {
				t.Errorf("%s: %s: %s\n%s: %s", name, hidden, a, missing, b)
			}
		}
	}
}

// sealedTicket matches what differs from one ticket to the next.
var sealedTicket = regexp.MustCompile(`"(?:ticket|expires)":"[^"]*"`)
