package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
	"github.com/watchtide/watchtide/stream/watch"
)

// doorRig is a gateway that asks who somebody is, behind a real server on its own port. The
// watch orders is for members of the group staff, open is for everybody, and hidden is for
// nobody.
type doorRig struct {
	t        *testing.T
	gateway  *Gateway
	server   *httptest.Server
	client   *http.Client
	logged   *lockedText
	provider *accesstest.Provider
	ann, ci  string // static tokens: of the staff, and of no group
}

// doorKey seals the sessions and tickets of a doorRig.
var doorKey = access.SealKey{7}

func newDoorRig(t *testing.T, overTLS bool, change func(*Config)) *doorRig {
	t.Helper()
	r := &doorRig{t: t, logged: &lockedText{}, provider: accesstest.NewProvider(t)}
	ann, annLine, err := access.NewToken("ann", []string{"staff"})
	if err != nil {
		t.Fatal(err)
	}
	ci, ciLine, err := access.NewToken("ci", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.ann, r.ci = ann, ci
	table, err := access.ParseTokens([]byte(annLine + "\n" + ciLine))
	if err != nil {
		t.Fatal(err)
	}
	registry := watch.NewRegistry()
	t.Cleanup(registry.Close)
	for _, name := range []string{"orders", "open", "hidden"} {
		w, err := registry.Add(watch.Config{Name: name, SourceName: "bus", Source: fixed(gatewaytest.Resource("a", 5, `{"n":1}`))})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Prime(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{
		Registry: registry, Metrics: true, StreamSettings: StreamSettings{Drain: -1, DrainDelay: -1},
		Logger: slog.New(slog.NewTextHandler(r.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Access: &Access{
			Credentials:    credential.Config{Keys: []access.SealKey{doorKey}, Tokens: table, Issuers: []jwt.Issuer{r.provider.Issuer()}},
			Policy:         doorPolicy(t),
			OperationsRole: "staff",
		},
	}
	if change != nil {
		change(&cfg)
	}
	if r.gateway, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	r.server = httptest.NewUnstartedServer(r.gateway.Handler())
	if overTLS {
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	t.Cleanup(r.server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.client = r.server.Client()
	r.client.Jar = jar
	return r
}

func doorPolicy(t *testing.T) *access.Policy {
	t.Helper()
	p, err := access.CompilePolicy(access.PolicyConfig{
		Roles: []access.Role{{Name: "anyone", When: "true"}, {Name: "staff", When: `"staff" in principal.groups`}},
		Watches: []access.WatchRules{
			{Name: "orders", Rules: []access.Rule{{Role: "staff", Read: "true"}}},
			{Name: "open", Rules: []access.Rule{{Role: "anyone", Read: "true"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// jwt returns a token of somebody of the staff.
func (r *doorRig) jwt(name string, changes map[string]any) string {
	r.t.Helper()
	claims := map[string]any{"sub": name}
	maps.Copy(claims, changes)
	return r.provider.Token(r.t, claims)
}

// send sends a request with the cookies that the client has; headers are "Name: value".
func (r *doorRig) send(method, path, body string, headers ...string) reply {
	r.t.Helper()
	return sendBy(r.t, r.client, method, r.server.URL+path, body, headers)
}

func bearer(text string) string { return "Authorization: Bearer " + text }

// who returns the name and the mechanism of who a request is taken for.
func (r *doorRig) who(headers ...string) string {
	r.t.Helper()
	answer := r.send("GET", "/v1/session", "", headers...)
	if answer.StatusCode != http.StatusOK {
		return answer.Status
	}
	var id struct{ Name, Mechanism string }
	if err := json.Unmarshal([]byte(answer.text), &id); err != nil {
		r.t.Fatalf("%v in %s", err, answer.text)
	}
	return strings.TrimSpace(id.Mechanism + " " + id.Name)
}

// ticket returns a ticket for watches.
func (r *doorRig) ticket(with string, watches ...string) string {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"watches": watches})
	if err != nil {
		r.t.Fatal(err)
	}
	answer := r.send("POST", "/v1/tickets", string(body), bearer(with))
	answer.want(r.t, http.StatusOK, "")
	var got struct {
		Ticket  string
		Expires time.Time
	}
	if err := json.Unmarshal([]byte(answer.text), &got); err != nil || got.Ticket == "" {
		r.t.Fatalf("%v in %s", err, answer.text)
	}
	if left := time.Until(got.Expires); left <= 0 || left > credential.DefaultTicketTTL {
		r.t.Errorf("a ticket can be used for %s", left)
	}
	return got.Ticket
}

func (r *doorRig) count(metric, label, value string) float64 {
	return counter(r.t, r.gateway, metric, label, value)
}

// sessionCookie returns the cookie that an answer sets.
func sessionCookie(t *testing.T, a reply) *http.Cookie {
	t.Helper()
	all := a.Cookies()
	if len(all) != 1 {
		t.Fatalf("%d cookies in %v", len(all), a.Header)
	}
	return all[0]
}

// TestSession logs in with a token, over TLS and over loopback, and out again.
func TestSession(t *testing.T) {
	for name, overTLS := range map[string]bool{"TLS": true, "loopback": false} {
		t.Run(name, func(t *testing.T) {
			r := newDoorRig(t, overTLS, nil)
			r.send("GET", "/v1/session", "").want(t, 200, `{"name":"","issuer":"","mechanism":"anonymous"}`+"\n")
			in := r.send("POST", "/v1/session", "", bearer(r.jwt("eve", nil)))
			in.want(t, 204, "")
			cookie := sessionCookie(t, in)
			if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure != overTLS || cookie.Path != "/" || cookie.Domain != "" ||
				strings.HasPrefix(cookie.Name, "__Host-") != overTLS {
				t.Errorf("cookie %v", cookie)
			}
			if life := time.Duration(cookie.MaxAge) * time.Second; life < 2*time.Hour-time.Minute || life > 2*time.Hour {
				t.Errorf("the cookie is kept for %s, want an hour more than the token", life)
			}
			r.send("GET", "/v1/watches/orders/resources", "").want(t, 200, "")
			if got := r.who(); got != "jwt eve" {
				t.Errorf("with the cookie: %s", got)
			}
			out := r.send("DELETE", "/v1/session", "")
			out.want(t, 204, "")
			if gone := sessionCookie(t, out); gone.MaxAge >= 0 || gone.Name != cookie.Name || gone.Value != "" {
				t.Errorf("the cookie is not removed: %v", gone)
			}
			if got := r.who(); got != "anonymous" {
				t.Errorf("after the session: %s", got)
			}
			if got := r.who("Cookie: " + cookie.Name + "=" + cookie.Value); got != "401 Unauthorized" {
				t.Errorf("with a copy of the cookie of the ended session: %s", got)
			}
		})
	}
}

// TestSessionBehindProxy checks that the public URL decides about the kind of cookie.
func TestSessionBehindProxy(t *testing.T) {
	for public, secure := range map[string]bool{"https://events.example.com": true, "http://localhost:8080": false} {
		r := newDoorRig(t, false, func(c *Config) {
			c.Access.Credentials.PublicURL = public
			c.Hosts = []string{"events.example.com"}
		})
		r.client.Jar = nil
		cookie := sessionCookie(t, r.send("POST", "/v1/session", "", bearer(r.ann)))
		if cookie.Secure != secure || strings.HasPrefix(cookie.Name, "__Host-") != secure {
			t.Errorf("%s: %v", public, cookie)
		}
		value := "Cookie: " + cookie.Name + "=" + cookie.Value
		if got := r.who(value, "Origin: "+public); got != "token ann" {
			t.Errorf("%s: a page of the gateway: %s", public, got)
		}
		if got := r.who(value, "Origin: https://evil.example.com"); got != "anonymous" {
			t.Errorf("%s: another page: %s", public, got)
		}
	}
}

// TestSessionAnswer checks what a page is told of whom it acts for.
func TestSessionAnswer(t *testing.T) {
	r := newDoorRig(t, false, nil)
	type answer struct {
		Name, Issuer, Mechanism, Tag string
		Expires                      *time.Time
	}
	of := func(with string) (a answer) {
		t.Helper()
		got := r.send("GET", "/v1/session", "", bearer(with))
		got.want(t, 200, "")
		if err := json.Unmarshal([]byte(got.text), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	eve, again, bob, ann := of(r.jwt("eve", nil)), of(r.jwt("eve", map[string]any{"groups": nil})), of(r.jwt("bob", nil)), of(r.ann)
	if eve.Name != "eve" || eve.Issuer != accesstest.URL || eve.Mechanism != "jwt" || eve.Tag == "" || eve.Expires == nil || time.Until(*eve.Expires) > time.Hour {
		t.Errorf("%+v", eve)
	}
	if again.Tag != eve.Tag || bob.Tag == eve.Tag || ann.Tag == eve.Tag {
		t.Errorf("tags: eve %s and %s, bob %s, ann %s", eve.Tag, again.Tag, bob.Tag, ann.Tag)
	}
	if ann.Mechanism != "token" || ann.Issuer != "" || ann.Expires != nil {
		t.Errorf("%+v", ann)
	}
}

// TestSessionIsMadeOfTokenOnly checks that nothing else than Authorization makes a session.
func TestSessionIsMadeOfTokenOnly(t *testing.T) {
	r := newDoorRig(t, false, nil)
	nobody := r.send("POST", "/v1/session", "")
	nobody.wantProblem(t, 401, "", "send Authorization")
	if got := nobody.Header.Get("WWW-Authenticate"); got != `Bearer realm="watchtide"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	r.send("POST", "/v1/session?ticket="+url.QueryEscape(r.ticket(r.ann, "orders")), "").wantProblem(t, 403, "", "send Authorization")
	r.send("POST", "/v1/session", "x", bearer(r.ann)).wantProblem(t, 400, "body", "want none for POST")
	r.send("POST", "/v1/session?x=1", "", bearer(r.ann)).wantProblem(t, 400, "x", "want none here")
	r.send("POST", "/v1/session", "", bearer(r.jwt("eve", map[string]any{"more": strings.Repeat("x", 5000)}))).wantProblem(t, 400, "", "fewer claims")
	if got := r.who(); got != "anonymous" {
		t.Errorf("after refusals: %s", got)
	}
	r.send("POST", "/v1/session", "", bearer(r.ann)).want(t, 204, "")
	r.send("POST", "/v1/session", "").wantProblem(t, 403, "", "send Authorization")
}

// TestSessionOfAnotherPage checks that a foreign page can neither use a session nor end it.
func TestSessionOfAnotherPage(t *testing.T) {
	r := newDoorRig(t, false, func(c *Config) { c.AllowedOrigins = []string{"https://app.example.com"} })
	r.send("POST", "/v1/session", "", bearer(r.ann)).want(t, 204, "")
	for _, foreign := range []string{"Origin: https://evil.example.com", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		if got := r.who(foreign); got != "anonymous" {
			t.Errorf("%s: %s", foreign, got)
		}
		out := r.send("DELETE", "/v1/session", "", foreign)
		out.wantProblem(t, 403, "", "another site")
		if len(out.Cookies()) != 0 {
			t.Errorf("%s: %v", foreign, out.Cookies())
		}
		r.send("POST", "/v1/tickets", `{"watches":["orders"]}`, foreign).wantProblem(t, 401, "", "send one")
		if got := r.who(); got != "token ann" {
			t.Errorf("after %s: %s", foreign, got)
		}
	}
	r.send("POST", "/v1/session", "", "X-HTTP-Method-Override: DELETE").wantProblem(t, 403, "", "send Authorization")
	if got := r.who("Sec-Fetch-Site: same-origin"); got != "token ann" {
		t.Errorf("a page of the gateway: %s", got)
	}
}

// TestSessionThatIsNotAccepted checks that a browser can get rid of a cookie that is of no
// use, and that no other text is taken for one.
func TestSessionThatIsNotAccepted(t *testing.T) {
	r := newDoorRig(t, false, nil)
	const name = "Cookie: watchtide-session="
	ticket := r.ticket(r.ann, "orders")
	cookie := sessionCookie(t, r.send("POST", "/v1/session", "", bearer(r.ann))).Value
	r.client.Jar = nil
	if got := r.who("Cookie: __Host-watchtide-session=" + cookie); got != "anonymous" {
		t.Errorf("a cookie with the other name: %s", got)
	}
	r.send("GET", "/v1/watches?ticket="+url.QueryEscape(cookie), "").wantProblem(t, 401, "", "ticket was not issued")
	for about, header := range map[string]string{
		"a ticket":    name + ticket,
		"nothing":     name,
		"two cookies": name + cookie + "; watchtide-session=" + cookie,
		"shortened":   name + cookie[:len(cookie)-1],
	} {
		if got := r.who(header); got != "401 Unauthorized" {
			t.Errorf("%s: %s", about, got)
		}
		out := r.send("DELETE", "/v1/session", "", header)
		out.want(t, 204, "")
		if sessionCookie(t, out).MaxAge >= 0 {
			t.Errorf("%s: the cookie stays", about)
		}
	}
	r.send("DELETE", "/v1/session", "", name+cookie, bearer("wrong")).wantProblem(t, 401, "", "unknown")
	for range 10 {
		r.who(name)
	}
	if got := r.who(name); got != "429 Too Many Requests" {
		t.Errorf("after too many failures: %s", got)
	}
	r.send("DELETE", "/v1/session", "", name).want(t, 204, "")
	if got := r.who(name + cookie); got != "token ann" {
		t.Errorf("the cookie itself: %s", got)
	}
}

// TestTicket reads everything that a ticket is for, and nothing else.
func TestTicket(t *testing.T) {
	r := newDoorRig(t, false, nil)
	ticket := "ticket=" + url.QueryEscape(r.ticket(r.jwt("eve", nil), "orders", "orders"))
	for _, path := range []string{
		"/v1/watches/orders", "/v1/watches/orders/resources", "/v1/watches/orders/resources/a", "/v1/watches/orders/changes?wait=0s", "/v1/watches",
		"/v1/events?watch=orders&until=end_of_snapshot", "/v1/watches/orders/events?until=end_of_snapshot",
	} {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		r.send("GET", path, "").want(t, map[bool]int{true: 200, false: 401}[path == "/v1/watches"], "")
		r.send("GET", path+separator+ticket, "").want(t, 200, "")
		r.send("GET", path+separator+strings.Replace(ticket, "ticket", "%74icket", 1), "").want(t, 200, "")
	}
	r.send("GET", "/v1/watches/open?"+ticket, "").wantProblem(t, 404, "", `no watch "open"`)
	r.send("GET", "/v1/events?watch=orders&watch=open&"+ticket, "").wantProblem(t, 404, "", `no watch "open"`)
	r.send("POST", "/v1/tickets?"+ticket, `{"watches":["orders"]}`).wantProblem(t, 403, "", "not made of another ticket")
	r.send("GET", "/v1/watches/orders?"+ticket+"&"+ticket, "").wantProblem(t, 401, "", "more than once")
	r.send("GET", "/v1/watches/orders?ticket=%zz", "", bearer(r.ann)).want(t, 200, "")
	for _, invalid := range []string{"ticket=", "ticket", "ticket=%zz", "ticket=a;b", ticket + "x", ticket + ";x=1"} {
		r.send("GET", "/v1/watches/open?"+invalid, "").want(t, 401, "")
	}
	r.send("GET", "/v1/watches/orders?Ticket=x", "").wantProblem(t, 400, "Ticket", "want none here")
}

// TestTicketRefused checks the requests for which there is no ticket.
func TestTicketRefused(t *testing.T) {
	r := newDoorRig(t, false, nil)
	names := make([]string, 65)
	for i := range names {
		names[i] = `"w` + strconv.Itoa(i) + `"`
	}
	for _, c := range []struct {
		body, detail string
		status       int
	}{
		{`{"watches":["orders"]}`, `there is no watch "orders"`, 404}, // hidden from ci
		{`{"watches":["hidden"]}`, `there is no watch "hidden"`, 404},
		{`{"watches":["open","nowhere"]}`, `there is no watch "nowhere"`, 404},
		{`{"watches":[]}`, "names no watch", 400},
		{`{}`, "names no watch", 400},
		{``, "is empty", 400},
		{`[]`, "line 1, column 1: want an object", 400},
		{`null`, "line 1, column 1: want an object", 400},
		{"{\n \"watch\": [\"open\"]}", `line 2, column 2: unknown member "watch"`, 400},
		{`{"Watches":["open"]}`, `unknown member "Watches"`, 400},
		{`{"watches":["open"],"watches":["open"]}`, `line 1, column 21: the member "watches" is given twice`, 400},
		{`{"watches":"open"}`, "line 1, column 12: want a list", 400},
		{`{"watches":["open", 1]}`, "line 1, column 21: want the name of a watch", 400},
		{`{"watches":["open", null]}`, "line 1, column 21: want the name", 400},
		{`{"watches":["open", [] ]}`, "line 1, column 21: want the name", 400},
		{`{"watches":[""]}`, "want the name of a watch", 400},
		{`{"watches":["open"`, "is not JSON", 400},
		{`{"watches":["open"]} 1`, "is not JSON", 400},
		{`{"watches":[` + strings.Join(names, ",") + `]}`, "more than 64 watches", 400},
		{`{"watches":["` + strings.Repeat("x", 9000) + `"]}`, "body", 413},
	} {
		answer := r.send("POST", "/v1/tickets", c.body, bearer(r.ci))
		if answer.StatusCode != c.status || !strings.Contains(answer.text, strings.Trim(mustJSON(t, c.detail), `"`)) {
			t.Errorf("%.80s: %s %s, want %d %s", c.body, answer.Status, answer.text, c.status, c.detail)
		}
	}
	r.send("POST", "/v1/tickets", `{"watches":["orders"]}`).wantProblem(t, 401, "", "send one")
	unknown, hidden := r.send("POST", "/v1/tickets", `{"watches":["orderz"]}`, bearer(r.ci)), r.send("POST", "/v1/tickets", `{"watches":["orders"]}`, bearer(r.ci))
	if strings.ReplaceAll(unknown.text, "orderz", "orders") != hidden.text {
		t.Errorf("a hidden watch is not answered like an unknown one:\n%s%s", hidden.text, unknown.text)
	}
}

func mustJSON(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTicketIsNowhere checks that nobody but its owner ever sees a ticket.
func TestTicketIsNowhere(t *testing.T) {
	r := newDoorRig(t, false, nil)
	ticket := r.ticket(r.ann, "open")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open, err := http.NewRequestWithContext(ctx, "GET", r.server.URL+"/v1/events?watch=open&ticket="+url.QueryEscape(ticket), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.client.Do(open)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, path := range []string{"/v1/subscribers", "/v1/series", "/metrics"} {
		got := r.send("GET", path, "", bearer(r.ann))
		got.want(t, 200, "")
		if strings.Contains(got.text, ticket) {
			t.Errorf("%s has the ticket", path)
		}
	}
	for _, path := range []string{"/v1/events?watch=nowhere", "/v1/events?wotch=open", "/v1/nothing?", "/v1/watches/open/resources?filter=x"} {
		got := r.send("GET", path+"&ticket="+url.QueryEscape(ticket), "")
		if got.StatusCode < 400 || strings.Contains(got.text, ticket) || strings.Contains(got.text, "ticket") {
			t.Errorf("%s: %s %s", path, got.Status, got.text)
		}
	}
	res.Body.Close()
	r.server.Close()
	if strings.Contains(r.logged.String(), ticket) {
		t.Error("the log has the ticket")
	}
}

// TestCredentialsWithoutAccess checks that a gateway that asks nobody has no endpoints for
// credentials, and that its parameters are as they were.
func TestCredentialsWithoutAccess(t *testing.T) {
	r := newDoorRig(t, false, func(c *Config) { c.Access, c.AllowedOrigins = nil, []string{"https://app.example.com"} })
	for _, c := range [][2]string{{"GET", "/v1/session"}, {"POST", "/v1/session"}, {"DELETE", "/v1/session"}, {"POST", "/v1/tickets"}} {
		r.send(c[0], c[1], "").wantProblem(t, 404, "", "there is nothing at "+c[1])
	}
	r.send("GET", "/v1/watches?ticket=x", "").wantProblem(t, 400, "ticket", "unknown parameter")
	if got := r.preflight(); got != "GET, HEAD, POST, PUT, DELETE" {
		t.Errorf("methods %s", got)
	}
}

func (r *doorRig) preflight() string {
	return r.send("OPTIONS", "/v1/session", "", "Origin: https://app.example.com", "Access-Control-Request-Method: POST").Header.Get("Access-Control-Allow-Methods")
}

// TestCredentialMethods checks which methods the endpoints have.
func TestCredentialMethods(t *testing.T) {
	r := newDoorRig(t, false, func(c *Config) { c.AllowedOrigins = []string{"https://app.example.com"} })
	for path, allowed := range map[string]string{"/v1/session": "GET, HEAD, POST, DELETE", "/v1/tickets": "POST"} {
		got := r.send("PUT", path, "")
		got.wantProblem(t, 405, "", "PUT is not a method of "+path)
		if got.Header.Get("Allow") != allowed {
			t.Errorf("%s: Allow %q", path, got.Header.Get("Allow"))
		}
	}
	r.send("GET", "/v1/tickets", "").wantProblem(t, 405, "", "want POST")
	r.send("POST", "/v1/watches", "").wantProblem(t, 405, "", "want GET")
	r.send("HEAD", "/v1/session", "").want(t, 200, "")
	if got := r.preflight(); got != "GET, HEAD, POST, PUT, DELETE" {
		t.Errorf("methods %s", got)
	}
}

// TestCredentialsFromElsewhere checks that credentials without TLS are taken from this
// machine and from trusted proxies only.
func TestCredentialsFromElsewhere(t *testing.T) {
	r := newDoorRig(t, false, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
		c.Access.Credentials.TrustedProxies = c.TrustedProxies
	})
	for from, want := range map[string]int{"192.0.2.1:1": 204, "192.0.2.2:1": 403, "127.0.0.1:1": 204} {
		req := httptest.NewRequest("POST", "http://127.0.0.1/v1/session", http.NoBody)
		req.RemoteAddr = from
		req.Header.Set("Authorization", "Bearer "+r.ann)
		w := httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("from %s: %d %s, want %d", from, w.Code, w.Body, want)
		}
	}
	req := httptest.NewRequest("POST", "https://127.0.0.1/v1/session", http.NoBody)
	req.RemoteAddr, req.TLS = "192.0.2.2:1", &tls.ConnectionState{}
	req.Header.Set("Authorization", "Bearer "+r.ann)
	w := httptest.NewRecorder()
	r.gateway.Handler().ServeHTTP(w, req)
	if w.Code != 204 {
		t.Errorf("over TLS: %d %s", w.Code, w.Body)
	}
}

// TestCredentialMetrics checks what is counted, in labels that no client can choose.
func TestCredentialMetrics(t *testing.T) {
	r := newDoorRig(t, false, nil)
	r.who()
	r.who(bearer(r.ann))
	r.who(bearer(r.jwt("eve", nil)))
	r.who(bearer("wrong"))
	r.who(bearer(r.jwt("eve", map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})))
	r.send("POST", "/v1/session", "") // anonymous, and refused
	for _, path := range []string{"/v1/watches/hidden", "/v1/events?watch=hidden", "/v1/watches/none/changes"} {
		r.send("GET", path, "").want(t, 401, "")
	}
	for mechanism, want := range map[string]float64{"anonymous": 5, "token": 1, "jwt": 1, "certificate": 0} {
		if got := r.count("watchtide_auth_total", "mechanism", mechanism); got != want {
			t.Errorf("%s: %v, want %v", mechanism, got, want)
		}
	}
	for reason, want := range map[string]float64{"invalid_token": 1, "token_expired": 1, "credential_required": 1, "credential_missing": 3, "revoked": 0} {
		if got := r.count("watchtide_auth_failures_total", "reason", reason); got != want {
			t.Errorf("%s: %v, want %v", reason, got, want)
		}
	}
}

// lockedText is written by many goroutines.
type lockedText struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

// Write implements io.Writer.
func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what has been written.
func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestCredentialRefusedBeforeBody checks that a request whose credential is not accepted
// cannot hold its connection with a body that does not come.
func TestCredentialRefusedBeforeBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Access: &Access{Policy: doorPolicy(t)}})
		c := r.dial(announced("POST", "/v1/tickets", "Content-Length: 2\r\n"+bearer("wrong")) + "{")
		if res, body, took := c.answer(t); res.StatusCode != http.StatusForbidden || took > unary.BodyTimeout {
			t.Errorf("%s after %s: %s", res.Status, took, body)
		}
	})
}
