package credential

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/accesstest"
	"pgregory.net/rapid"
)

func withCookie(c *http.Cookie) *http.Request { return newRequest("/", "Cookie", c.Name+"="+c.Value) }

// TestCookie has the attributes for the origin under which browsers reach the gateway.
func TestCookie(t *testing.T) {
	for _, c := range []struct {
		public, from string
		secure       bool
	}{
		{"https://events.example.com", "127.0.0.1:1", true},
		{"http://localhost:8080", "127.0.0.1:1", false},
		{"http://localhost:8080", "@", false},
		{"", "127.0.0.1:1", false},
		{"", "[::1]:1", false},
		{"", "@", true},
	} {
		r := newRig(t, func(cfg *Config) { cfg.PublicURL = c.public })
		q := from(withBearer(r.provider.Token(t, nil)), c.from)
		cookie := r.session(t, q)
		name := "watchtide-session"
		if c.secure {
			name = "__Host-watchtide-session"
		}
		if cookie.Name != name || cookie.Secure != c.secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" {
			t.Errorf("%+v: %s", c, cookie)
		}
		if left := time.Duration(cookie.MaxAge) * time.Second; left > 2*time.Hour || left < 2*time.Hour-time.Minute {
			t.Errorf("it lasts for %v, want an hour more than its token", left)
		}
		if err := cookie.Valid(); err != nil {
			t.Error(err)
		}
		if got := r.who(t, from(withCookie(cookie), c.from)); got != "jwt ann" {
			t.Errorf("%+v: %s", c, got)
		}
		id, err := r.Identify(from(withCookie(cookie), c.from))
		if err != nil {
			t.Fatal(err)
		}
		gone, ended := r.EndSession(from(withCookie(cookie), c.from))
		if ended == nil || ended.ID != id.ID || ended.Via != ViaSession || ended.Address != id.Address {
			t.Errorf("ended %+v, want %+v", ended, id)
		}
		if gone.Name != name || gone.MaxAge >= 0 || gone.Value != "" || gone.Secure != c.secure {
			t.Errorf("the end: %s", gone)
		}
		if got := r.who(t, from(withCookie(cookie), c.from)); got != "revoked" {
			t.Errorf("a copy of the cookie after the end: %s", got)
		}
	}
}

func TestEndWithoutASession(t *testing.T) {
	r := newRig(t, nil)
	of := r.session(t, withBearer(r.ci))
	for name, q := range map[string]*http.Request{
		"nothing":                 newRequest("/"),
		"a cookie of another key": newRequest("/", "Cookie", of.Name+"=x"),
		"two cookies":             newRequest("/", "Cookie", of.Name+"="+of.Value+"; "+of.Name+"="+of.Value),
		"another's page":          newRequest("/", "Cookie", of.Name+"="+of.Value, "Sec-Fetch-Site", "cross-site"),
	} {
		if c, ended := r.EndSession(q); c.MaxAge >= 0 || ended != nil {
			t.Errorf("%s: %s, ended %+v", name, c, ended)
		}
	}
	if len(r.ended.of) != 0 {
		t.Errorf("remembered %v", r.ended.of)
	}
}

// TestRenewedSessionIsTheSameOne, so that its end ends the streams that were opened before
// too. Nobody continues a session that is not theirs, or that has ended.
func TestRenewedSessionIsTheSameOne(t *testing.T) {
	revoked := &revocations{}
	r := newRig(t, func(c *Config) { c.Revocations = revoked })
	before := r.session(t, withBearer(r.provider.Token(t, nil)))
	first, err := r.Identify(withCookie(before))
	if err != nil {
		t.Fatal(err)
	}
	renew := func(token string, headers ...string) string {
		t.Helper()
		q := newRequest("/v1/session", append(headers, "Authorization", "Bearer "+token)...)
		q.AddCookie(before)
		id, err := r.Identify(withCookie(r.session(t, q)))
		if err != nil {
			t.Fatal(err)
		}
		return id.ID
	}
	again, bob := r.provider.Token(t, map[string]any{"n": 2}), r.provider.Token(t, map[string]any{"sub": "bob"})
	if got := renew(again, "Sec-Fetch-Site", "same-origin"); got != first.ID {
		t.Errorf("renewed, the session %s is %s", first.ID, got)
	}
	for what, got := range map[string]string{
		"of another principal": renew(bob),
		"of another mechanism": renew(r.ci),
		"with another's page":  renew(again, "Sec-Fetch-Site", "cross-site"),
		"with a second cookie": renew(again, "Cookie", before.Name+"=x"),
	} {
		if got == first.ID || got == "" {
			t.Errorf("%s: the session is %q, the one before was %s", what, got, first.ID)
		}
	}
	revoked.keys = map[string]bool{"session/" + first.ID: true}
	if got := renew(again); got == first.ID {
		t.Error("a revoked session continues")
	}
	revoked.keys = nil
	r.EndSession(withCookie(before))
	if got := renew(again); got == first.ID {
		t.Error("an ended session continues")
	}
}

// TestLoginAsAnotherEndsTheSession that the browser had until then, and nobody else's.
func TestLoginAsAnotherEndsTheSession(t *testing.T) {
	for name, c := range map[string]struct {
		sub   string
		large bool
		site  string
		want  string // who the cookie of before is taken for
	}{
		"another":                      {"bob", false, "same-origin", "revoked"},
		"the same one":                 {"ann", false, "same-origin", "jwt ann"},
		"another, on a page elsewhere": {"bob", false, "cross-site", "jwt ann"},
		"another, who is refused":      {"bob", true, "same-origin", "jwt ann"},
	} {
		r := newRig(t, nil)
		before := r.session(t, withBearer(r.provider.Token(t, nil)))
		claims := map[string]any{"sub": c.sub}
		if c.large {
			claims["x"] = strings.Repeat("x", maxCookie)
		}
		q := newRequest("/v1/session", "Sec-Fetch-Site", c.site, "Authorization", "Bearer "+r.provider.Token(t, claims))
		q.AddCookie(before)
		id, err := r.Identify(q)
		if err != nil {
			t.Fatal(err)
		}
		login, err := r.NewSession(q, id)
		if (err != nil) != c.large {
			t.Fatal(err)
		}
		if got := r.who(t, withCookie(before)); got != c.want || (c.want == "revoked") != (login != nil && login.Ended != nil) {
			t.Errorf("%s: the cookie of before is of %s: %+v", name, got, login)
		}
	}
}

// TestSessionIsItsToken: the same principal with the same claims, with an ID of its own.
func TestSessionIsItsToken(t *testing.T) {
	r := newRig(t, nil)
	claims := map[string]any{"n": 9007199254740993, "f": 1.5, "deep": map[string]any{"a": []any{1, "b", nil, true}}, "t": "<é\u2028>"}
	for _, q := range []*http.Request{withBearer(r.provider.Token(t, claims)), withBearer(r.ci)} {
		direct, err := r.Identify(q)
		if err != nil {
			t.Fatal(err)
		}
		login, err := r.NewSession(q, direct)
		if err != nil {
			t.Fatal(err)
		}
		cookie, p := login.Cookie, login.Principal
		session, err := r.Identify(withCookie(cookie))
		if err != nil {
			t.Fatal(err)
		}
		if session.Via != ViaSession || session.ID == "" || session.ID != p.ID || direct.ID != "" || !session.Is(direct.Principal) {
			t.Errorf("%+v of %+v", session, direct)
		}
		if !reflect.DeepEqual(session.Claims, direct.Claims) || fmt.Sprint(session.Groups) != fmt.Sprint(direct.Groups) || session.May("any") != true {
			t.Errorf("%+v of %+v", session, direct)
		}
		if !direct.Expires.IsZero() && !session.Expires.Equal(direct.Expires) || session.Expires.IsZero() {
			t.Errorf("expires at %v, the token at %v", session.Expires, direct.Expires)
		}
		if another := r.session(t, q); another.Value == cookie.Value {
			t.Error("two sessions are one")
		}
	}
}

// TestWhatMakesASession: nothing but a token.
func TestWhatMakesASession(t *testing.T) {
	r := newRig(t, nil)
	cookie := r.session(t, withBearer(r.ci))
	for name, c := range map[string]struct {
		request *http.Request
		want    access.Reason
	}{
		"nothing":       {newRequest("/"), access.CredentialRequired},
		"a session":     {withCookie(cookie), access.CredentialNotUsable},
		"a ticket":      {newRequest("/?ticket=" + r.ticket(t, withBearer(r.ci), "a")), access.CredentialNotUsable},
		"a certificate": {withCertificate(newRequest("/"), certificate(t, "spiffe://a/b")), access.CredentialNotUsable},
	} {
		id, err := r.Identify(c.request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.NewSession(c.request, id); err == nil || refused(t, err).Reason != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClaimsThatDoNotFit: a browser would drop the cookie without a word.
func TestClaimsThatDoNotFit(t *testing.T) {
	r := newRig(t, nil)
	fits := false
	for n := 500; n < 5000; n += 250 {
		q := withBearer(r.provider.Token(t, map[string]any{"x": strings.Repeat("x", n)}))
		id, err := r.Identify(q)
		if err != nil {
			t.Fatal(err)
		}
		login, err := r.NewSession(q, id)
		if err == nil {
			fits = true
			cookie := login.Cookie
			if size := len("__Host-") + len(cookie.Name) + 1 + len(cookie.Value); size > maxCookie {
				t.Errorf("a cookie of %d bytes", size)
			}
			if got := r.who(t, withCookie(cookie)); got != "jwt ann" {
				t.Errorf("%d bytes: %s", n, got)
			}
			continue
		}
		if e := refused(t, err); e.Reason != access.CredentialTooLarge || e.Status != 400 || !strings.Contains(e.Text, "of 4071 at most") {
			t.Errorf("%d bytes: %+v", n, e)
		}
		if n < 2000 {
			t.Errorf("%d bytes of claims do not fit", n)
		}
	}
	if !fits {
		t.Error("nothing fits")
	}
}

// TestExpiredSession is told apart for an hour.
func TestExpiredSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		made := map[string]*http.Request{
			"a session":                        withCookie(r.session(t, withBearer(r.provider.Token(t, nil)))),
			"a token":                          withBearer(r.provider.Token(t, nil)),
			"a session of a token without end": withCookie(r.session(t, withBearer(r.ci))),
		}
		for name, q := range made {
			if _, err := r.Identify(q); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(time.Hour)
		for range 3 * failuresAtOnce { // it does not count as a failure
			for _, name := range []string{"a session", "a token"} {
				_, err := r.Identify(made[name])
				if e := refused(t, err); e.Reason != access.TokenExpired || e.Expired == nil || e.Expired.Name != "ann" || e.Status != 401 {
					t.Fatalf("%s: %+v", name, e)
				}
			}
		}
		time.Sleep(time.Hour)
		_, err := r.Identify(made["a session"])
		if e := refused(t, err); e.Reason != access.TokenExpired || e.Expired != nil {
			t.Errorf("after two hours: %+v", e)
		}
		if got := r.who(t, made["a session of a token without end"]); got != "token ci" {
			t.Errorf("got %s", got)
		}
		time.Sleep(sessionLife - 2*time.Hour)
		if got := r.who(t, made["a session of a token without end"]); got != "token_expired" {
			t.Errorf("got %s", got)
		}
	})
}

func TestTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.TicketTTL = time.Minute })
		token := map[string]any{"exp": time.Now().Add(time.Hour).Unix()}
		q := withBearer(r.provider.Token(t, token))
		id, err := r.Identify(q)
		if err != nil {
			t.Fatal(err)
		}
		text, until, err := r.NewTicket(id, []string{"orders", "carts"})
		if err != nil || time.Until(until) != time.Minute {
			t.Fatalf("until %v, %v", until, err)
		}
		if strings.ContainsFunc(text, func(c rune) bool { return c > '~' || strings.ContainsRune("&=+%#?/ ", c) }) {
			t.Errorf("%q has to be escaped in a URL", text)
		}
		use := newRequest("/v1/events?watch=orders&ticket=" + text)
		opened, err := r.Identify(use)
		if err != nil {
			t.Fatal(err)
		}
		if !opened.Is(id.Principal) || opened.Via != ViaTicket || !opened.May("orders") || !opened.May("carts") || opened.May("users") || opened.May("") {
			t.Errorf("%+v", opened)
		}
		if !opened.Expires.Equal(id.Expires) {
			t.Errorf("the stream ends at %v, the credential at %v", opened.Expires, id.Expires)
		}
		if got := r.who(t, use); got != "jwt ann" {
			t.Errorf("a second time: %s", got)
		}
		if _, _, err := r.NewTicket(opened, []string{"users"}); err == nil || refused(t, err).Reason != access.CredentialNotUsable {
			t.Errorf("a ticket of a ticket: %v", err)
		}
		time.Sleep(time.Minute)
		_, err = r.Identify(use)
		if e := refused(t, err); e.Reason != access.TokenExpired || e.Expired == nil {
			t.Errorf("a minute later: %+v", e)
		}
		time.Sleep(time.Hour)
		_, err = r.Identify(use)
		if e := refused(t, err); e.Reason != access.TokenExpired || e.Expired != nil {
			t.Errorf("an hour later: %+v", e)
		}
	})
}

// TestTicketEndsWithItsCredential, and keeps the session that it came from.
func TestTicketEndsWithItsCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		cookie := r.session(t, withBearer(r.provider.Token(t, map[string]any{"exp": time.Now().Add(10 * time.Second).Unix()})))
		id, err := r.Identify(withCookie(cookie))
		if err != nil {
			t.Fatal(err)
		}
		text, until, err := r.NewTicket(id, []string{"a"})
		if err != nil || time.Until(until) != 10*time.Second {
			t.Errorf("until %v, %v", until, err)
		}
		opened, err := r.Identify(newRequest("/?ticket=" + text))
		if err != nil || opened.ID != id.ID || opened.ID == "" {
			t.Errorf("%+v, %v", opened, err)
		}
		r.EndSession(withCookie(cookie))
		if got := r.who(t, newRequest("/?ticket="+text)); got != "revoked" {
			t.Errorf("after the end of the session: %s", got)
		}
	})
}

func TestTicketsThatCannotBe(t *testing.T) {
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		request *http.Request
		watches []string
		want    access.Reason
	}{
		"anonymous":  {newRequest("/"), []string{"a"}, access.CredentialRequired},
		"no watches": {withBearer(r.ci), nil, access.CredentialNotUsable},
		"too large":  {withBearer(r.ci), []string{strings.Repeat("a", maxTicket)}, access.CredentialTooLarge},
	} {
		id, err := r.Identify(c.request)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.NewTicket(id, c.watches); err == nil || refused(t, err).Reason != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSealedIsForOnePurpose: a ticket is no session, and the other way round.
func TestSealedIsForOnePurpose(t *testing.T) {
	r := newRig(t, nil)
	cookie, ticket := r.session(t, withBearer(r.ci)), r.ticket(t, withBearer(r.ci), "a")
	if got := r.who(t, newRequest("/?ticket="+cookie.Value)); got != "invalid_token" {
		t.Errorf("a session as a ticket: %s", got)
	}
	if got := r.who(t, newRequest("/", "Cookie", cookie.Name+"="+ticket)); got != "invalid_token" {
		t.Errorf("a ticket as a session: %s", got)
	}
	for _, junk := range []string{`{}`, `null`, `[]`, `{"m":"anonymous"}`, `{"m":"root","n":"a"}`, `{"m":"jwt","i":"https://other","n":"a"}`, `{"m":"token","n":"ci"}`, `{"m":"token","n":"","t":""}`} {
		text := r.ring.Seal(access.Session, []byte(junk))
		if got := r.who(t, newRequest("/", "Cookie", cookie.Name+"="+text)); got != "invalid_token" && got != "too_many_failures" {
			t.Errorf("%s is sealed, and is %s", junk, got)
		}
	}
}

// TestReplicasShareKeys, also while keys are being replaced.
func TestReplicasShareKeys(t *testing.T) {
	r := newRig(t, nil)
	cookie := r.session(t, withBearer(r.provider.Token(t, nil)))
	next := r.cfg
	next.Keys = []access.SealKey{{7}, testKey}
	if got := (rig{Authenticator: newAuthenticator(t, next)}).who(t, withCookie(cookie)); got != "jwt ann" {
		t.Errorf("a replica with a newer key: %s", got)
	}
	next.Keys = []access.SealKey{{7}}
	if got := (rig{Authenticator: newAuthenticator(t, next)}).who(t, withCookie(cookie)); got != "invalid_token" {
		t.Errorf("a replica without the key: %s", got)
	}
	next.Issuers = nil
	next.Keys = []access.SealKey{testKey}
	if got := (rig{Authenticator: newAuthenticator(t, next)}).who(t, withCookie(cookie)); got != "invalid_token" {
		t.Errorf("a replica without the issuer: %s", got)
	}
}

// TestSealedKeepsEverything of any principal that it takes.
func TestSealedKeepsEverything(t *testing.T) {
	r := newRig(t, nil)
	signed, err := r.Identify(withBearer(r.provider.Token(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	text := rapid.StringMatching(`[a-z<>&"\\é\x00-\x1f]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.SliceOf(rapid.Map(text, func(text string) string { return "g" + text })).Draw(t, "groups")
		p := &access.Principal{
			Mechanism: access.JWT, Issuer: accesstest.URL, Name: "n" + text.Draw(t, "name"), Groups: groups,
			Claims: map[string]any{
				"x" + text.Draw(t, "claim"): rapid.OneOf(rapid.Map(rapid.Int64(), toAny), rapid.Map(text, toAny), rapid.Map(rapid.Bool(), toAny)).Draw(t, "value"),
				"aud":                       "watchtide",
			},
			Signature: signed.Signature,
			Expires:   time.UnixMilli(time.Now().UnixMilli() + rapid.Int64Range(10_000, 1<<40).Draw(t, "expires")), ID: text.Draw(t, "id"),
		}
		p.Claims["sub"], p.Claims["groups"] = p.Name, listOf(groups)
		id := &Identity{Principal: p, Via: ViaAuthorization}
		ticket, _, err := r.NewTicket(id, []string{"a"})
		if err != nil {
			if e, ok := err.(*access.Refusal); ok && e.Reason == access.CredentialTooLarge {
				return
			}
			t.Fatal(err)
		}
		got, err := r.Identify(newRequest("/?ticket=" + ticket))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Groups) == 0 {
			p.Groups = nil
		}
		if !reflect.DeepEqual(got.Principal, p) {
			t.Fatalf("%+v of %+v", got.Principal, p)
		}
	})
}

func toAny[T any](v T) any { return v }

func listOf(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// FuzzSealed looks for sealed contents that make the check panic.
func FuzzSealed(f *testing.F) {
	r := newRig(f, nil)
	f.Add(`{"m":"jwt","i":"https://idp.example.com","n":"a","e":99999999999999,"w":["a"],"u":1}`)
	f.Add(`{"m":"token","n":"ci","t":"x"}`)
	f.Fuzz(func(t *testing.T, contents string) {
		for _, open := range []func(string) (*Identity, error){r.openSession, r.openTicket} {
			for _, p := range []access.SealPurpose{access.Session, access.Ticket} {
				id, err := open(r.ring.Seal(p, []byte(contents)))
				if err != nil {
					refused(t, err)
				} else if id.IsAnonymous() {
					t.Errorf("%s is anonymous", contents)
				}
			}
		}
	})
}
