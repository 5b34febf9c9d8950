package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/store"
)

// documented is the OpenAPI document, and which of its answers were seen.
type documented struct {
	doc    *openapi3.T
	router routers.Router
	seen   map[string]bool // "GET /path 200"
}

func loadDocument(t *testing.T) *documented {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(watchtidev1.Document)
	if err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{wire.TypeSSE, wire.TypeNDJSON, "text/html", "text/javascript", "text/typescript"} {
		openapi3filter.RegisterBodyDecoder(text, openapi3filter.PlainBodyDecoder)
	}
	return &documented{doc: doc, router: router, seen: map[string]bool{}}
}

// digestOfList returns the digest of the resources of a list.
func digestOfList(t *testing.T, list string) string {
	t.Helper()
	var all struct {
		Resources []struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatalf("%v: %s", err, list)
	}
	var d digest.Digest
	for _, r := range all.Resources {
		d = d.Add(digest.Of(r.Key, r.Value, ""))
	}
	return d.String()
}

// documentedCase is a request and the status of its answer.
type documentedCase struct {
	method, path, body string
	headers            []string
	status             int
}

// TestEveryDocumentedPath sends a request for each path, method and answer in the
// OpenAPI document, and checks both sides against it: a request that is answered with
// 2xx or 3xx must be allowed, and every answer must be as described.
func TestEveryDocumentedPath(t *testing.T) {
	d := loadDocument(t)
	r := newAPIRig(t, Config{engine: gatewaytest.NewViews(t), HTTPSettings: HTTPSettings{DeliveryReports: true}})
	r.addStore("drafts")
	tag := r.get("/v1/watches/hosts/resources").Header.Get("ETag")
	long := strings.Repeat("x", 1025)
	state, none := "/v1/watches/hosts/digests/"+digestOfList(t, r.get("/v1/watches/hosts/resources").text), digest.Digest{Count: 1}.String()
	cases := []documentedCase{
		{"GET", "/v1/watches", "", nil, 200},
		{"GET", "/v1/watches?x=1", "", nil, 400},
		{"GET", "/v1/watches/notes", "", nil, 200},
		{"GET", "/v1/watches/silent", "", nil, 200},
		{"GET", "/v1/watches/notes?x=1", "", nil, 400},
		{"GET", "/v1/watches/x", "", nil, 404},

		{"GET", "/v1/watches/hosts/resources", "", nil, 200},
		{"GET", "/v1/watches/hosts/resources?page_size=1&prefix=default/", "", nil, 200},
		{"GET", "/v1/watches/hosts/resources?labels=!x&filter=value.n>1&fields=n,m&fields=o", "", nil, 200},
		{"GET", "/v1/watches/hosts/resources?filter=value.n=1", "", nil, 400},
		{"GET", "/v1/watches/hosts/resources", "", []string{"If-None-Match: " + tag}, 304},
		{"GET", "/v1/watches/hosts/resources?page_size=x", "", nil, 400},
		{"GET", "/v1/watches/x/resources", "", nil, 404},
		{"GET", "/v1/watches/silent/resources", "", nil, 503},

		{"GET", "/v1/watches/hosts/counts?by=n", "", nil, 200},
		{"GET", "/v1/watches/hosts/counts?by=n,m&by=o.p&sum=n&filter=value.n>1&labels=!x&prefix=default/&page_size=1", "", nil, 200},
		{"GET", "/v1/watches/hosts/counts?by=n", "", []string{"If-None-Match: " + r.get("/v1/watches/hosts/counts?by=n").Header.Get("ETag")}, 304},
		{"GET", "/v1/watches/hosts/counts", "", nil, 400},
		{"GET", "/v1/watches/x/counts?by=n", "", nil, 404},
		{"GET", "/v1/watches/silent/counts?by=n", "", nil, 503},

		{"PUT", "/v1/watches/notes/resources/a", `{"n":9007199254740993}`, []string{`If-None-Match: *`}, 201},
		{"PUT", "/v1/watches/notes/resources/a", `null`, []string{`If-Match: "2"`}, 200},
		{"PUT", "/v1/watches/notes/resources/b?validate_only=true", `[1]`, nil, 201},
		{"PUT", "/v1/watches/notes/resources/a", `{`, nil, 400},
		{"PUT", "/v1/watches/x/resources/a", `1`, nil, 404},
		{"PUT", "/v1/watches/hosts/resources/a", `1`, nil, 405},
		{"PUT", "/v1/watches/notes/resources/a", `1`, []string{`If-Match: "9"`}, 412},
		{"PUT", "/v1/watches/notes/resources/a", `"` + strings.Repeat("x", notebookLimit) + `"`, nil, 413},

		{"GET", "/v1/watches/notes/resources/a", "", nil, 200},
		{"GET", "/v1/watches/notes/resources/YQ==?key_encoding=base64", "", nil, 200},
		{"GET", "/v1/watches/hosts/resources/default%2Fa", "", nil, 200},
		{"GET", "/v1/watches/hosts/resources/default%2Fa?fields=n&filter=value.n==1&labels=!x&prefix=d", "", nil, 200},
		{"GET", "/v1/watches/hosts/resources/default%2Fa?filter=value.n==2", "", nil, 404},
		{"GET", "/v1/watches/notes/resources/a?fields=a[0]", "", nil, 400},
		{"GET", "/v1/watches/notes/resources/a?key_encoding=hex", "", nil, 400},
		{"GET", "/v1/watches/notes/resources/x", "", nil, 404},
		{"GET", "/v1/watches/silent/resources/a", "", nil, 503},

		{"DELETE", "/v1/watches/notes/resources/a", "", []string{`If-Match: "9"`}, 412},
		{"DELETE", "/v1/watches/notes/resources/a", "", []string{`If-Match: "3"`}, 200},
		{"DELETE", "/v1/watches/notes/resources/a", "", nil, 200},
		{"DELETE", "/v1/watches/notes/resources/a?x=1", "", nil, 400},
		{"DELETE", "/v1/watches/x/resources/a", "", nil, 404},
		{"DELETE", "/v1/watches/hosts/resources/a", "", nil, 405},
		{"DELETE", "/v1/watches/drafts/resources/" + strings.Repeat("k", store.MaxKeyBytes+1), "", nil, 413},

		{"GET", "/v1/watches/hosts/changes", "", nil, 200},
		{"GET", "/v1/watches/hosts/changes?wait=0s&after=hosts@e1-7", "", nil, 200},
		{"GET", "/v1/watches/hosts/changes?wait=500ms&after=hosts@e1-7&prefix=default/", "", nil, 200},
		{"GET", "/v1/watches/hosts/changes?wait=0s&labels=!x&filter=value.n>1&fields=n", "", nil, 200},
		{"GET", "/v1/watches/hosts/changes?wait=x", "", nil, 400},
		{"GET", "/v1/watches/x/changes", "", nil, 404},
		{"GET", "/v1/watches/hosts/changes?after=" + long, "", nil, 414},
		{"GET", "/v1/watches/silent/changes", "", nil, 503},
		{"GET", "/v1/watches/hosts/counts/changes?by=n&keys=default/a", "", nil, 200},
		{"GET", "/v1/watches/hosts/counts/changes", "", nil, 400},
		{"GET", "/v1/watches/x/counts/changes?by=n", "", nil, 404},
		{"GET", "/v1/watches/hosts/counts/changes?by=n&after=" + long, "", nil, 414},
		{"GET", "/v1/watches/silent/counts/changes?by=n", "", nil, 503},

		{"GET", "/healthz", "", nil, 200},
		{"GET", "/readyz", "", nil, 503}, // silent is not primed
		{"GET", "/metrics", "", nil, 200},
		{"GET", "/v1/client", "", nil, 200},
		{"GET", "/v1/client", "", []string{"X-Forwarded-For: 192.0.2.7"}, 200},
		{"GET", "/v1/topology", "", nil, 200},
		{"GET", "/v1/topology?x=1", "", nil, 400},
		{"GET", "/v1/topology?group=principal", "", nil, 200},
		{"GET", "/v1/topology?group=watch", "", nil, 400},
		{"GET", "/v1/subscribers?group=client_id&principal=anonymous", "", nil, 200},
		{"GET", "/v1/subscribers?group=application&search=a&limit=5", "", nil, 200},
		{"GET", "/v1/subscribers?group=colour", "", nil, 400},
		{"GET", "/v1/subscribers?sort=since", "", nil, 200},
		{"GET", "/v1/subscribers?sort=colour", "", nil, 400},
		{"GET", "/v1/client?x=1", "", nil, 400},
		{"POST", "/v1/delivery", `{"round_trip_ms":1.5,"painted":[{"watch":"hosts","revision":"7","ago_ms":3}]}`, nil, 204},
		{"POST", "/v1/delivery", `{"painted":[{"watch":"x","revision":"7","ago_ms":3}]}`, nil, 404},
		{"POST", "/v1/delivery", `{}`, nil, 400},
		{"POST", "/v1/delivery", `"` + strings.Repeat("x", introspection.MaxBytes) + `"`, nil, 413},
		{"GET", "/v1/subscribers", "", nil, 200},
		{"GET", "/v1/subscribers?watch=hosts&limit=1", "", nil, 200},
		{"GET", "/v1/subscribers?limit=1001", "", nil, 400},
		{"GET", "/v1/subscribers?watch=x", "", nil, 404},
		{"GET", "/v1/series", "", nil, 200},
		{"GET", "/v1/series?watch=hosts&step=10s&since=1700000000&limit=1", "", nil, 200},
		{"GET", "/v1/series?step=2s", "", nil, 400},
		{"GET", "/v1/series?watch=x", "", nil, 404},
		{"GET", "/v1/instance", "", nil, 200},
		{"GET", "/v1/instance?x=1", "", nil, 400},
		{"GET", "/v1/replicas", "", nil, 200},
		{"GET", "/v1/replicas?x=1", "", nil, 400},
		{"GET", "/v1/watches/hosts/history", "", nil, 200},
		{"GET", "/v1/watches/hosts/history?limit=x", "", nil, 400},
		{"GET", "/v1/watches/x/history", "", nil, 404},
		{"GET", "/v1/watches/hosts/history?after=hosts@e0-1", "", nil, 410},
		{"GET", "/v1/watches/silent/history", "", nil, 503},
		{"GET", state, "", nil, 200},
		{"GET", state + "x", "", nil, 400},
		{"GET", "/v1/watches/x/digests/" + none, "", nil, 404},
		{"GET", "/v1/watches/hosts/digests/" + none, "", nil, 410},
		{"GET", "/v1/watches/silent/digests/" + none, "", nil, 503},
		{"GET", state + "/keys?bucket=0", "", nil, 200},
		{"GET", state + "/keys?bucket=7", "", nil, 400},
		{"GET", "/v1/watches/x/digests/" + none + "/keys?bucket=0", "", nil, 404},
		{"GET", "/v1/watches/hosts/digests/" + none + "/keys?bucket=0", "", nil, 410},
		{"GET", "/v1/watches/silent/digests/" + none + "/keys?bucket=0", "", nil, 503},
		{"GET", state + "/resources?key=default/a&key=x", "", nil, 200},
		{"GET", state + "/resources?key=a&key_encoding=base64", "", nil, 400},
		{"GET", "/v1/watches/x/digests/" + none + "/resources?key=a", "", nil, 404},
		{"GET", "/v1/watches/hosts/digests/" + none + "/resources?key=a", "", nil, 410},
		{"GET", "/v1/watches/silent/digests/" + none + "/resources?key=a", "", nil, 503},
		{"GET", "/openapi.json", "", nil, 200},
		{"GET", "/client.js", "", nil, 200},
		{"GET", "/client.d.ts", "", nil, 200},
		{"GET", "/", "", nil, 200},
	}
	for _, stream := range []string{"/v1/events?watch=hosts", "/v1/watches/hosts/events?"} {
		cases = append(cases, streamCases(stream, long)...)
	}
	for _, c := range streamCases("/v1/watches/hosts/counts/events?by=n&sum=m", long) {
		if !strings.Contains(c.path, "fields") {
			cases = append(cases, c)
		}
	}
	for _, c := range cases {
		d.check(t, r, c)
	}
	r.registry.Remove("silent")
	d.check(t, r, documentedCase{"GET", "/readyz", "", nil, 200})
	d.checkGone(t, r)
	d.checkMoves(t)
	d.checkBodyTooLate(t)
	d.checkTooManyStreams(t)
	d.checkNoRoom(t)
	d.checkRenewal(t)
	d.checkCredentials(t)
	d.checkDoors(t)
	d.checkAllSeen(t)
}

// checkRenewal renews a stream with a credential of its principal, and with others.
func (d *documented) checkRenewal(t *testing.T) {
	g := newGuard(t)
	g.static("ci", "staff")
	g.static("cd", "staff")
	r := newAPIRig(t, Config{Access: g.access(wholeWatches("hosts"))})
	req, err := http.NewRequest(http.MethodGet, r.url+"/v1/events?watch=hosts", nil)
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(g.as("ci"), ": ")
	req.Header.Set(name, value)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines, id := bufio.NewScanner(res.Body), ""
	for id == "" && lines.Scan() {
		if found := streamID.FindStringSubmatch(lines.Text()); found != nil {
			id = found[1]
		}
	}
	for header, status := range map[string]int{g.as("ci"): 204, g.as("cd"): 403} {
		d.check(t, r, documentedCase{"PUT", "/v1/streams/" + id, "", []string{header}, status})
	}
	d.check(t, r, documentedCase{"PUT", "/v1/streams/X", "", []string{g.as("ci")}, 404})
	d.check(t, r, documentedCase{"PUT", "/v1/streams/X", "{}", []string{g.as("ci")}, 400})
}

// checkMoves moves windows of streams.
func (d *documented) checkMoves(t *testing.T) {
	r := newAPIRig(t, Config{engine: gatewaytest.NewViews(t)})
	for watch, statuses := range map[string]map[string]int{"hosts": {"offset=1": 200, "offset=x": 400}, "silent": {"offset=1": 503}} {
		res, err := http.Get(r.url + "/v1/events?order=n&limit=1&watch=" + watch)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for lines, id := bufio.NewScanner(res.Body), ""; id == "" && lines.Scan(); {
			if found := streamID.FindStringSubmatch(lines.Text()); found != nil {
				id = found[1]
				for query, status := range statuses {
					d.check(t, r, documentedCase{"POST", "/v1/streams/" + id + "/window?" + query, "", nil, status})
				}
			}
		}
	}
	d.check(t, r, documentedCase{"POST", "/v1/streams/X/window", "", nil, 404})
}

// checkTooManyStreams has one client request a second stream, and a second view.
func (d *documented) checkTooManyStreams(t *testing.T) {
	v := gatewaytest.NewViews(t)
	r := newAPIRig(t, Config{StreamSettings: StreamSettings{MaxSubscribersPerClient: 1}, engine: v})
	res, err := http.Get(r.url + "/v1/events?watch=hosts&filter=value.n>1&labels=!x&fields=n&prefix=o")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	d.check(t, r, documentedCase{"GET", "/v1/subscribers", "", nil, 200})
	v.Refuse(&views.Refusal{Reason: views.TooManyOfAClient, Limit: 1})
	for _, path := range []string{"/v1/events?watch=hosts", "/v1/watches/hosts/events", "/v1/watches/hosts/changes", "/v1/watches/hosts/resources?fields=n"} {
		d.check(t, r, documentedCase{"GET", path, "", nil, 429})
	}
}

// checkCredentials sends requests to a gateway that asks who somebody is.
func (d *documented) checkCredentials(t *testing.T) {
	t.Helper()
	r := newDoorRig(t, false, nil)
	r.client.Jar = nil
	staff, wrong, foreign := []string{bearer(r.ann)}, []string{bearer("wrong")}, []string{"Origin: https://evil.example.com"}
	byTicket := "?ticket=" + url.QueryEscape(r.ticket(r.ann, "orders"))
	for _, c := range []documentedCase{
		{"GET", "/v1/session", "", nil, 200},
		{"GET", "/v1/session", "", []string{bearer(r.jwt("eve", nil))}, 200},
		{"GET", "/v1/session?x=1", "", nil, 400},
		{"GET", "/v1/session", "", wrong, 401},
		{"POST", "/v1/session", "", staff, 204},
		{"POST", "/v1/session", "x", staff, 400},
		{"POST", "/v1/session", "", nil, 401},
		{"POST", "/v1/session" + byTicket, "", nil, 403},
		{"DELETE", "/v1/session", "", nil, 204},
		{"DELETE", "/v1/session?x=1", "", nil, 400},
		{"DELETE", "/v1/session", "", wrong, 401},
		{"DELETE", "/v1/session", "", foreign, 403},
		{"POST", "/v1/tickets", `{"watches":["orders","open"]}`, staff, 200},
		{"POST", "/v1/tickets", `{"watches":[]}`, staff, 400},
		{"POST", "/v1/tickets", `{"watches":["open"]}`, nil, 401},
		{"POST", "/v1/tickets" + byTicket, `{"watches":["open"]}`, nil, 403},
		{"POST", "/v1/tickets", `{"watches":["hidden"]}`, staff, 404},
		{"POST", "/v1/tickets", `{"watches":["` + strings.Repeat("x", 9000) + `"]}`, staff, 413},
	} {
		d.checkAnswer(t, c, r.send(c.method, c.path, c.body, append(c.headers, "Content-Type: application/json")...))
	}
	d.checkTicketLater(t)
	d.checkLogins(t)
}

// checkLogins has a browser sign in with a provider.
func (d *documented) checkLogins(t *testing.T) {
	t.Helper()
	r := newLoginRig(t, nil)
	r.client.Jar = nil
	check := func(r *doorRig, status int, path string, headers ...string) reply {
		c := documentedCase{"GET", path, "", headers, status}
		got := r.send(c.method, c.path, c.body, headers...)
		d.checkAnswer(t, c, got)
		return got
	}
	finish := func(status int, claims map[string]any) {
		begun := check(r, 303, "/v1/login?return=/x")
		answer := r.provider.SignIn(t, begun.Header.Get("Location"), claims).Encode()
		cookie := begun.Cookies()[1]
		check(r, status, credential.CallbackPath+"?"+answer, "Cookie: "+cookie.Name+"="+cookie.Value)
	}
	finish(303, nil)
	finish(400, map[string]any{"more": strings.Repeat("x", 5000)})
	finish(401, map[string]any{"nonce": "x"})
	r.provider.Misbehave(func(*http.Request) *http.Response { return accesstest.Answer(500, nil) })
	finish(503, nil)
	check(r, 400, "/v1/login?return=//x")
	check(r, 403, "/v1/login", "Sec-Fetch-Site: cross-site")
	check(r, 200, "/v1/session")
	down := newLoginRig(t, func(c *Config) {
		p := accesstest.NewProvider(t)
		p.Misbehave(func(*http.Request) *http.Response { return accesstest.Answer(500, nil) })
		c.Access.Credentials.Issuers[0].Transport = p
	})
	check(down, 503, "/v1/login")
}

// checkDoors sends a request of each operation that is refused before anything is looked up:
// with a credential that is not accepted, with one that everybody on the way can read, from an
// address that has sent too many, and for a foreign host. Reading with a ticket is allowed.
func (d *documented) checkDoors(t *testing.T) {
	t.Helper()
	r := newLoginRig(t, func(c *Config) { c.DeliveryReports = true })
	send := func(c documentedCase, from, host, credential string) reply {
		req := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		req.RemoteAddr, req.Host = from+":1", host
		req.Header.Set("Content-Type", "application/json")
		if credential != "" {
			req.Header.Set("Authorization", "Bearer "+credential)
		}
		w := httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(w, req)
		return reply{w.Result(), w.Body.String()}
	}
	addresses := 0
	fresh := func() string {
		addresses++
		return fmt.Sprint("127.0.1.", addresses)
	}
	const here, elsewhere, guesser = "127.0.0.1", "192.0.2.1", "127.0.0.2"
	for range 20 {
		send(documentedCase{method: "GET", path: "/v1/watches"}, guesser, "localhost", "wrong")
	}
	state := digestOfList(t, send(documentedCase{method: "GET", path: "/v1/watches/orders/resources"}, here, "localhost", r.ann).text)
	for path, item := range d.doc.Paths.Map() {
		at := strings.NewReplacer("{watch}", "orders", "{key}", "a", "{stream}", "X", "{digest}", state).Replace(path)
		switch {
		case path == "/v1/events":
			at += "?watch=orders"
		case strings.Contains(path, "/counts"):
			at += "?by=status"
		case strings.HasSuffix(path, "/keys"):
			at += "?bucket=0"
		case strings.HasSuffix(path, "{digest}/resources"):
			at += "?key=a"
		}
		for method, o := range item.Operations() {
			for status, by := range map[int][3]string{
				401: {fresh(), "localhost", "wrong"}, 403: {elsewhere, "localhost", r.ann}, 429: {guesser, "localhost", "wrong"}, 421: {here, "evil.example.com", ""},
			} {
				switch {
				case o.Responses.Status(status) != nil:
					c := documentedCase{method, at, bodyFor(method, "1"), nil, status}
					d.checkAnswer(t, c, send(c, by[0], by[1], by[2]))
				case path == loginPath && status == 401: // the credentials of a browser that signs in do not matter
				case strings.HasPrefix(path, "/v1/"):
					t.Errorf("%s %s: %d is not documented", method, path, status)
				}
			}
			if method == http.MethodGet && o.Parameters.GetByInAndName("query", "ticket") != nil {
				d.checkTicket(t, r, at)
			}
		}
	}
}

// checkTicket reads with a ticket.
func (d *documented) checkTicket(t *testing.T, r *doorRig, path string) {
	t.Helper()
	query := url.Values{"ticket": {r.ticket(r.ann, "orders")}}
	path, given, _ := strings.Cut(path, "?")
	if strings.HasSuffix(path, "/events") {
		query.Set("until", "end_of_snapshot")
	}
	c := documentedCase{"GET", path + "?" + given + "&" + query.Encode(), "", nil, 200}
	d.checkAnswer(t, c, r.send(c.method, c.path, ""))
}

// checkTicketLater requests a ticket with a body that does not come, and one for whose body
// there is no room.
func (d *documented) checkTicketLater(t *testing.T) {
	t.Helper()
	c := documentedCase{method: "POST", path: "/v1/tickets", body: "{", status: 408}
	text, line, err := access.NewToken("ann", nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := access.ParseTokens([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Access: &Access{
		Credentials: credential.Config{Tokens: table, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
		Policy:      doorPolicy(t),
	}}
	var late, full reply
	synctest.Test(t, func(t *testing.T) {
		head := announced(c.method, c.path, "Content-Length: 2\r\n"+bearer(text))
		late.Response, late.text, _ = newRig(t, cfg).dial(head + c.body).answer(t)
		r := newRig(t, cfg)
		for i := range limits.ClientShare {
			other := limits.ClientOf(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
			defer r.gateway.bodies.Bytes.TryTake(other, math.MaxInt64).Release()
		}
		full.Response, full.text, _ = r.dial(head + c.body).answer(t)
	})
	d.checkAnswer(t, c, late)
	c.status = 503
	d.checkAnswer(t, c, full)
}

// checkNoRoom sends requests while the budgets for bodies and answers are taken.
func (d *documented) checkNoRoom(t *testing.T) {
	t.Helper()
	for _, c := range []documentedCase{
		{"PUT", "/v1/watches/notes/resources/a", "1", nil, 503}, {"GET", "/v1/watches", "", nil, 503}, {"GET", "/v1/series", "", nil, 503},
	} {
		var got reply
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{Metrics: true})
			if _, err := r.Registry.Add(streamConfig("notes", newNotebook())); err != nil {
				t.Fatal(err)
			}
			for i := range limits.ClientShare {
				other := limits.ClientOf(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
				for _, b := range []*limits.Budget{r.gateway.now.Load().unary.Bodies.Bytes, r.gateway.now.Load().unary.Answers.Bytes} {
					defer b.TryTake(other, math.MaxInt64).Release()
				}
			}
			head := announced(c.method, c.path, "Content-Length: "+strconv.Itoa(len(c.body)))
			got.Response, got.text, _ = r.dial(head + c.body).answer(t)
		})
		d.checkAnswer(t, c, got)
	}
}

// streamCases returns the cases of a streaming path; path includes the start of its
// query.
func streamCases(path, long string) []documentedCase {
	const until = "&until=end_of_snapshot"
	unknown := strings.ReplaceAll(path, "hosts", "x")
	silent := strings.ReplaceAll(path, "hosts", "silent")
	return []documentedCase{
		{"GET", path + until, "", []string{"Accept: text/event-stream"}, 200},
		{"GET", path + until, "", []string{"Accept: application/x-ndjson"}, 200},
		{"GET", path + until + "&format=ndjson&prefix=default/&last_event_id=hosts@e1-7", "", nil, 200},
		{"GET", path + until, "", []string{"Last-Event-ID: hosts@e0-1"}, 200},
		{"GET", path + until + "&filter=value.n>1&labels=!x&fields=n&fields=a.b,c", "", nil, 200},
		{"GET", path + until + "&lastEventId=hosts@e0-1", "", nil, 200},
		{"GET", path + "&filter=x", "", nil, 400},
		{"GET", unknown, "", nil, 404},
		{"GET", path, "", []string{"Accept: application/xml"}, 406},
		{"GET", path + "&last_event_id=" + long, "", nil, 414},
		{"GET", silent + until, "", nil, 503},
	}
}

// check sends the request of a case, and checks it and its answer.
func (d *documented) check(t *testing.T, r *apiRig, c documentedCase) {
	t.Helper()
	d.checkAnswer(t, c, r.send(c.method, c.path, c.body, append(c.headers, "Content-Type: application/json")...))
}

// checkAnswer checks the request of a case and its answer.
func (d *documented) checkAnswer(t *testing.T, c documentedCase, got reply) {
	t.Helper()
	name := fmt.Sprintf("%s %.80s", c.method, c.path)
	if got.StatusCode != c.status {
		t.Errorf("%s: %s %.300s, want %d", name, got.Status, got.text, c.status)
		return
	}
	input := d.input(t, c)
	if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil && c.status < 400 {
		t.Errorf("%s is answered with %d, but not allowed: %v", name, c.status, err)
	}
	err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: got.StatusCode, Header: got.Header,
		Body:    io.NopCloser(strings.NewReader(got.text)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		t.Errorf("%s: the answer %d is not as documented: %v", name, c.status, err)
	}
	d.checkEvents(t, name, got)
	d.seen[fmt.Sprintf("%s %s %d", c.method, input.Route.Path, c.status)] = true
}

func (d *documented) input(t *testing.T, c documentedCase) *openapi3filter.RequestValidationInput {
	t.Helper()
	// Without a host: the document's server is "/".
	req, err := http.NewRequest(c.method, c.path, bytes.NewReader([]byte(c.body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range append(c.headers, "Content-Type: application/json") {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	if req.URL.RawPath != "" { // the router splits decoded paths
		req.URL.Path = strings.ReplaceAll(req.URL.RawPath, "%2F", "~")
		req.URL.RawPath = ""
	}
	route, parameters, err := d.router.FindRoute(req)
	if err != nil {
		t.Fatalf("%s %s is not in the document: %v", c.method, c.path, err)
	}
	// Any credential, and none, is allowed everywhere but where a session is made.
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	return &openapi3filter.RequestValidationInput{Request: req, PathParams: parameters, Route: route, Options: options}
}

// checkEvents checks each line of a stream against the schema of its format.
func (d *documented) checkEvents(t *testing.T, name string, got reply) {
	t.Helper()
	kind, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
	events := 0
	for line := range strings.Lines(got.text) {
		schema := "Line"
		if kind == wire.TypeSSE {
			schema = "Event"
			var isData bool
			if line, isData = strings.CutPrefix(line, "data: "); !isData {
				continue
			}
		} else if kind != wire.TypeNDJSON {
			return
		}
		var event any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%s: %v in %q", name, err, line)
		}
		if err := d.doc.Components.Schemas[schema].Value.VisitJSON(event); err != nil {
			t.Errorf("%s: %s: %v", name, line, err)
		}
		events++
	}
	if events < 3 && kind != "" && got.StatusCode == 200 {
		t.Errorf("%s: only %d events", name, events)
	}
}

// checkGone checks the one answer that needs preparation: a page of a revision that
// is gone, since the upstream was restored.
func (d *documented) checkGone(t *testing.T, r *apiRig) {
	t.Helper()
	for _, key := range []string{"a", "b"} {
		r.send("PUT", "/v1/watches/notes/resources/"+key, "1").want(t, 201, "")
	}
	token := r.page(t, "page_size=1").NextPageToken
	r.registry.Remove("notes")
	restored := newNotebook()
	restored.epoch = "e2"
	r.add(streamConfig("notes", restored))
	r.primed("notes")
	d.check(t, r, documentedCase{"GET", "/v1/watches/notes/resources?page_token=" + url.QueryEscape(token), "", nil, 410})
}

// checkBodyTooLate checks the answers that take time.
func (d *documented) checkBodyTooLate(t *testing.T) {
	t.Helper()
	for _, c := range []documentedCase{
		{method: "PUT", path: "/v1/watches/notes/resources/a", body: "{", status: 408},
		{method: "POST", path: "/v1/delivery", body: "{", status: 408},
	} {
		var got reply
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{HTTPSettings: HTTPSettings{DeliveryReports: true}})
			if _, err := r.Registry.Add(streamConfig("notes", newNotebook())); err != nil {
				t.Fatal(err)
			}
			got.Response, got.text, _ = r.dial(announced(c.method, c.path, "Content-Length: 2") + c.body).answer(t)
		})
		d.checkAnswer(t, c, got)
	}
}

func (d *documented) checkAllSeen(t *testing.T) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(d.doc.Paths.Map())) {
		for method, operation := range d.doc.Paths.Value(path).Operations() {
			for _, status := range slices.Sorted(maps.Keys(operation.Responses.Map())) {
				name := method + " " + path + " " + status
				if !d.seen[name] {
					t.Errorf("%s is documented, and no request of this test has it", name)
				}
			}
		}
	}
}
