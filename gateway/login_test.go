package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
)

// newLoginRig returns a gateway over TLS whose users sign in with the provider of the rig. The
// client follows no redirects.
func newLoginRig(t *testing.T, change func(*Config)) *doorRig {
	t.Helper()
	provider := accesstest.NewProvider(t)
	r := newDoorRig(t, true, func(c *Config) {
		a := &c.Access.Credentials
		a.Issuers, a.PublicURL = []jwt.Issuer{provider.Remote()}, "https://events.example.com"
		a.SignIn = &credential.SignIn{Issuer: accesstest.URL, ClientID: accesstest.ClientID, ClientSecret: accesstest.ClientSecret}
		if change != nil {
			change(c)
		}
	})
	r.provider = provider
	t.Cleanup(r.gateway.learn(context.Background()))
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return r
}

// begin begins a sign-in, and returns the path with which the browser comes back from the provider.
func (r *doorRig) begin(back string) (callback string) {
	r.t.Helper()
	a := r.send("GET", "/v1/login?return="+url.QueryEscape(back), "", "Sec-Fetch-Site: same-origin")
	a.want(r.t, http.StatusSeeOther, "")
	wantUnseen(r.t, a)
	return credential.CallbackPath + "?" + r.provider.SignIn(r.t, a.Header.Get("Location"), nil).Encode()
}

// wantUnseen checks that nobody learns the address of the answer, or stores it.
func wantUnseen(t *testing.T, a reply) {
	t.Helper()
	if a.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("%s: headers %v", a.Request.URL.Path, a.Header)
	}
}

// TestLogin signs in with a provider, and out again.
func TestLogin(t *testing.T) {
	out := &lockedText{}
	r := newLoginRig(t, func(c *Config) { c.Access.Audit = out })
	r.send("GET", "/v1/session", "").want(t, 200, `{"name":"","issuer":"","mechanism":"anonymous","login":{"name":"idp.example.com"}}`+"\n")
	callback := r.begin("/#/watches/orders")
	in := r.send("GET", callback, "", "Sec-Fetch-Site: cross-site", "Accept: text/html")
	in.want(t, http.StatusSeeOther, "")
	wantUnseen(t, in)
	if got := in.Header.Get("Location"); got != "https://events.example.com/#/watches/orders" {
		t.Errorf("the browser is sent to %q", got)
	}
	if got := r.who(); got != "jwt ann" {
		t.Errorf("signed in as %s", got)
	}
	r.send("GET", "/v1/watches/orders/resources", "").want(t, 200, "")
	again := r.send("GET", callback, "", "Accept: text/html")
	again.want(t, http.StatusUnauthorized, "")
	r.send("DELETE", "/v1/session", "").want(t, 204, "")
	if got := r.who(); got != "anonymous" {
		t.Errorf("signed out: %s", got)
	}
	r.gateway.audit.Close(auditPatience)
	u, _ := url.Parse(callback)
	for _, line := range []string{`"decision":"allowed","action":"login","mechanism":"jwt","issuer":"https://idp.example.com","name":"ann","via":"provider"`, `"decision":"denied","action":"login"`, `"reason":"login_refused"`} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the audit log lacks %s:\n%s", line, out)
		}
	}
	for _, secret := range []string{u.Query().Get("code"), u.Query().Get("state"), "ACCESS", accesstest.ClientSecret} {
		if strings.Contains(out.String()+r.logged.String()+again.text, secret) {
			t.Errorf("%q is shown", secret)
		}
	}
}

// TestLoginCSRF: no other site can begin a sign-in, or end one with its own account.
func TestLoginCSRF(t *testing.T) {
	r := newLoginRig(t, nil)
	for _, site := range []string{"cross-site", "same-site"} {
		a := r.send("GET", "/v1/login", "", "Sec-Fetch-Site: "+site)
		a.wantProblem(t, 403, "", "a page of another site")
		if len(a.Cookies()) != 0 {
			t.Errorf("%s: cookies %v", site, a.Cookies())
		}
	}
	ofMallory := newLoginRig(t, nil).begin("/")
	r.begin("/")
	r.send("GET", ofMallory, "").wantProblem(t, 401, "", "sign in again")
	if got := r.who(); got != "anonymous" {
		t.Errorf("signed in as %s", got)
	}
}

// TestLoginLeadsNowhereElse refuses every return that is no path of this gateway.
func TestLoginLeadsNowhereElse(t *testing.T) {
	r := newLoginRig(t, nil)
	for _, back := range []string{"//evil.example.com", `/\evil.example.com`, "https://evil.example.com", "javascript:alert(1)", "/\r\nSet-Cookie: a=b", "x"} {
		a := r.send("GET", "/v1/login?return="+url.QueryEscape(back), "")
		a.wantProblem(t, 400, "return", "want a path of this gateway")
		if len(a.Cookies()) != 0 || a.Header.Get("Location") != "" {
			t.Errorf("%q: headers %v", back, a.Header)
		}
	}
	r.send("GET", "/v1/login?next=/", "").wantProblem(t, 400, "next", "unknown")
}

// TestLoginWithASession: one that is not accepted any more is no obstacle, and another one ends.
func TestLoginWithASession(t *testing.T) {
	r := newLoginRig(t, nil)
	r.send("GET", r.begin("/"), "", "Cookie: __Host-watchtide-session=broken", "Authorization: Bearer wrong").want(t, 303, "")
	cookie := sessionCookie(t, r.send("POST", "/v1/session", "", bearer(r.ann)))
	copied := "Cookie: " + cookie.Name + "=" + cookie.Value
	callback := r.begin("/")
	if got := r.who(); got != "anonymous" {
		t.Errorf("while at the provider: %s", got)
	}
	if got := r.who(copied); got != "401 Unauthorized" {
		t.Errorf("with a copy of the cookie that the browser had: %s", got)
	}
	r.send("GET", callback, "").want(t, 303, "")
	if got := r.who(); got != "jwt ann" {
		t.Errorf("afterwards: %s", got)
	}
}

// TestLoginThatFails is a page for a browser, in which nothing is a link or a script of others.
func TestLoginThatFails(t *testing.T) {
	r := newLoginRig(t, nil)
	callback := r.begin("/") + "&error=" + url.QueryEscape("<script>alert(1)</script>")
	a := r.send("GET", callback, "", "Accept: text/html,application/xhtml+xml")
	a.want(t, 401, "")
	wantUnseen(t, a)
	if a.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "default-src 'none'") ||
		!strings.Contains(a.text, "an error that is not of the protocol") || strings.Contains(a.text, "alert(1)") || !strings.Contains(a.text, `href="../../"`) {
		t.Errorf("%v\n%s", a.Header, a.text)
	}
	r.provider.Misbehave(func(q *http.Request) *http.Response { return accesstest.Answer(500, "down") })
	b := r.send("GET", r.begin("/"), "")
	b.wantProblem(t, 503, "", "status 500")
	if b.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to come back")
	}
}

// TestLoginIsOnlyThereIfConfigured: without it, nothing is told of it.
func TestLoginIsOnlyThereIfConfigured(t *testing.T) {
	r := newDoorRig(t, false, nil)
	for _, path := range []string{loginPath, credential.CallbackPath} {
		r.send("GET", path, "").wantProblem(t, 404, "", "")
	}
	var session map[string]any
	if err := json.Unmarshal([]byte(r.send("GET", "/v1/session", "").text), &session); err != nil || session["login"] != nil {
		t.Errorf("%v, %v", session, err)
	}
}

// TestLoginFromElsewhere needs TLS, and is for the hosts of the gateway.
func TestLoginFromElsewhere(t *testing.T) {
	r := newLoginRig(t, nil)
	for _, path := range []string{loginPath, credential.CallbackPath} {
		req := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		req.RemoteAddr, req.Host = "192.0.2.1:1", "localhost"
		w := httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(w, req)
		reply{w.Result(), w.Body.String()}.want(t, 403, "")
	}
}
