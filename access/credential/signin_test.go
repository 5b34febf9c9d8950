package credential

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
	"pgregory.net/rapid"
)

const public = "https://events.example.com"

// signInTest runs a test in a bubble, with a gateway whose users sign in with the provider.
func signInTest(t *testing.T, change func(*Config), test func(*testing.T, rig)) {
	t.Helper()
	signInTestWith(t, nil, change, test)
}

// signInTestWith is signInTest with a provider that misbehaves from the start (see
// accesstest.Provider.Misbehave): before the gateway asks it for anything.
func signInTestWith(t *testing.T, misbehave func(*http.Request) *http.Response, change func(*Config), test func(*testing.T, rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var provider *accesstest.Provider
		r := newRig(t, func(c *Config) {
			provider = accesstest.NewProvider(t)
			provider.Misbehave(misbehave)
			c.Issuers, c.PublicURL = []jwt.Issuer{provider.Remote()}, public
			c.SignIn = &SignIn{Issuer: accesstest.URL, ClientID: accesstest.ClientID, ClientSecret: accesstest.ClientSecret, Scopes: []string{"profile"}}
			if change != nil {
				change(c)
			}
		})
		r.provider = provider
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		test(t, r)
		stop()
		<-done
	})
}

// browser is a browser at the gateway.
type browser struct {
	t       *testing.T
	r       rig
	address string
	cookie  *http.Cookie // of the sign-in; nil: it has none
}

func (r rig) browser(t *testing.T) *browser { return &browser{t, r, "192.0.2.1:5", nil} }

func (b *browser) get(target string) *http.Request {
	q := httptest.NewRequest(http.MethodGet, public+target, http.NoBody) // over TLS
	q.RemoteAddr = b.address
	if b.cookie != nil {
		q.AddCookie(b.cookie)
	}
	return q
}

// begin begins a sign-in, and returns the URL that the browser is sent to.
func (b *browser) begin(path string) string {
	b.t.Helper()
	to, cookie, err := b.r.BeginSignIn(b.get("/v1/login"), path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.cookie = cookie
	return to
}

// finish brings back the answer of the provider. It returns who has signed in, or why nobody has.
func (b *browser) finish(answer url.Values) (*SignedIn, access.Reason) {
	b.t.Helper()
	done, err := b.r.FinishSignIn(b.get(CallbackPath + "?" + answer.Encode()))
	if err != nil {
		why := refused(b.t, err)
		for _, secret := range []string{answer.Get("code"), answer.Get("state"), "ACCESS", "PROVIDER TEXT", accesstest.ClientSecret} {
			if secret != "" && strings.Contains(why.Text+why.Challenge, secret) {
				b.t.Errorf("%q is shown: %s", secret, why.Text)
			}
		}
		return nil, why.Reason
	}
	return done, ""
}

func (b *browser) want(answer url.Values, want access.Reason) {
	b.t.Helper()
	if _, got := b.finish(answer); got != want {
		b.t.Errorf("got %q, want %q", got, want)
	}
}

// TestSignIn makes the answer of a provider a session.
func TestSignIn(t *testing.T) {
	signInTest(t, nil, func(t *testing.T, r rig) {
		b := r.browser(t)
		to := b.begin("/#/watches/orders?sort=key")
		if c := b.cookie; c.Name != "__Host-watchtide-login" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 600 {
			t.Errorf("cookie %v", c)
		}
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.Query().Get("redirect_uri"); got != public+CallbackPath {
			t.Errorf("the provider sends browsers to %q", got)
		}
		if got := u.Query().Get("scope"); got != "openid profile" {
			t.Errorf("scopes %q", got)
		}
		answer := r.provider.SignIn(t, to, map[string]any{"exp": time.Now().Add(time.Minute).Unix(), "session_state": "x"})
		answer.Set("session_state", "what a provider adds")
		done, why := b.finish(answer)
		if why != "" {
			t.Fatal(why)
		}
		if done.To != public+"/#/watches/orders?sort=key" || done.Forget.Name != b.cookie.Name || done.Forget.MaxAge >= 0 || done.By.Via != ViaProvider {
			t.Errorf("got %+v", done)
		}
		if c := done.Cookie; c.Name != "__Host-watchtide-session" || c.SameSite != http.SameSiteStrictMode || !c.HttpOnly || !c.Secure {
			t.Errorf("cookie %v", c)
		}
		session := func() *http.Request {
			q := b.get("/v1/events")
			q.AddCookie(done.Cookie)
			return q
		}
		if got := r.who(t, session()); got != "jwt ann" {
			t.Errorf("the session is of %s", got)
		}
		time.Sleep(DefaultSignInSession - time.Minute)
		id, err := r.Identify(session())
		if err != nil || len(id.Groups) != 1 || id.Groups[0] != "staff" {
			t.Errorf("before its end: %+v, %v", id, err)
		}
		if _, err := r.Again(id); err != nil {
			t.Errorf("again: %v", err)
		}
		time.Sleep(time.Minute)
		if got := r.who(t, session()); got != "token_expired" {
			t.Errorf("after its end: %s", got)
		}
	})
}

// TestTokenOfASignInIsNoCredential: its audience is the client, not the gateway.
func TestTokenOfASignInIsNoCredential(t *testing.T) {
	signInTest(t, nil, func(t *testing.T, r rig) {
		token := r.provider.Token(t, map[string]any{"aud": accesstest.ClientID})
		if got := r.who(t, withBearer(token)); got != "invalid_token" {
			t.Errorf("got %s", got)
		}
	})
}

// TestSignInIsOfOneBrowser: what another browser has begun, and what has ended, is refused.
func TestSignInIsOfOneBrowser(t *testing.T) {
	signInTest(t, nil, func(t *testing.T, r rig) {
		mallory, victim := r.browser(t), r.browser(t)
		ofMallory := r.provider.SignIn(t, mallory.begin("/"), nil)
		victim.want(ofMallory, access.LoginRefused) // has begun nothing
		victim.begin("/")
		victim.want(ofMallory, access.LoginRefused) // has begun another one
		ofMallory.Set("state", r.provider.SignIn(t, victim.begin("/"), nil).Get("state"))
		victim.want(ofMallory, access.LoginRefused) // the code is for mallory's verifier
		if got := r.provider.Asked("/token"); got != 1 {
			t.Errorf("the provider was asked %d times for a token, want once: for the last code only", got)
		}
		answer := r.provider.SignIn(t, victim.begin("/"), nil)
		victim.want(answer, "")
		victim.want(answer, access.LoginRefused) // a copy of cookie and answer
		answer = r.provider.SignIn(t, victim.begin("/"), nil)
		victim.cookie.Value = r.ring.Seal(access.Session, []byte(`{}`))
		victim.want(answer, access.LoginRefused) // the cookie was sealed for something else
	})
}

// TestAnswerOfAnotherProvider, and of one that is told to lie.
func TestAnswerOfAnotherProvider(t *testing.T) {
	for name, change := range map[string]func(url.Values){
		"another issuer":   func(v url.Values) { v.Set("iss", "https://evil.example.com") },
		"no issuer":        func(v url.Values) { v.Del("iss") },
		"two issuers":      func(v url.Values) { v.Add("iss", "https://evil.example.com") },
		"no state":         func(v url.Values) { v.Del("state") },
		"two states":       func(v url.Values) { v.Add("state", "x") },
		"no code":          func(v url.Values) { v.Del("code") },
		"two codes":        func(v url.Values) { v.Add("code", "x") },
		"an error":         func(v url.Values) { v.Set("error", "access_denied") },
		"an unknown error": func(v url.Values) { v.Set("error", "<b>PROVIDER TEXT</b>") },
	} {
		t.Run(name, func(t *testing.T) {
			signInTest(t, nil, func(t *testing.T, r rig) {
				b := r.browser(t)
				answer := r.provider.SignIn(t, b.begin("/"), nil)
				change(answer)
				b.want(answer, access.LoginRefused)
				if got := r.provider.Asked("/token"); got != 0 {
					t.Errorf("the provider was asked %d times for a token", got)
				}
			})
		})
	}
}

// TestTokenOfASignInIsChecked, although it comes from the provider itself.
func TestTokenOfASignInIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string]any
		want   access.Reason
	}{
		"another nonce":        {map[string]any{"nonce": "x"}, access.LoginRefused},
		"no nonce":             {map[string]any{"nonce": nil}, access.LoginRefused},
		"another issuer":       {map[string]any{"iss": "https://evil.example.com"}, access.LoginRefused},
		"another audience":     {map[string]any{"aud": accesstest.Audience}, access.InvalidToken},
		"another client":       {map[string]any{"azp": "other"}, access.LoginRefused},
		"another access token": {map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, access.LoginRefused},
		"its access token":     {map[string]any{"at_hash": "wBo4cF3WXe7GFSA9ZfubbA"}, ""},
		"expired":              {map[string]any{"exp": time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).Unix()}, access.TokenExpired},
		"no end":               {map[string]any{"exp": nil}, access.InvalidToken},
		"no name":              {map[string]any{"sub": nil}, access.InvalidToken},
		"too much":             {map[string]any{"more": strings.Repeat("x", 5000)}, access.CredentialTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			signInTest(t, nil, func(t *testing.T, r rig) {
				b := r.browser(t)
				b.want(r.provider.SignIn(t, b.begin("/"), c.claims), c.want)
			})
		})
	}
}

// TestSignInEndsAfterTenMinutes, and with the key and the provider that it began with.
func TestSignInEndsAfterTenMinutes(t *testing.T) {
	signInTest(t, nil, func(t *testing.T, r rig) {
		b := r.browser(t)
		in, late := r.provider.SignIn(t, b.begin("/"), nil), r.browser(t)
		ofLate := r.provider.SignIn(t, late.begin("/"), nil)
		time.Sleep(signInLife - time.Second)
		b.want(in, "")
		time.Sleep(time.Second)
		late.want(ofLate, access.LoginRefused)
	})
}

// endless is a body without an end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Close implements io.Closer.
func (endless) Close() error { return nil }

// TestProviderThatMisbehaves at the token endpoint signs nobody in, and holds nobody up.
func TestProviderThatMisbehaves(t *testing.T) {
	answered := accesstest.Answer
	for name, c := range map[string]struct {
		how  func(*http.Request) *http.Response
		want access.Reason
	}{
		"hangs":      {func(r *http.Request) *http.Response { <-r.Context().Done(); return nil }, access.ProviderUnavailable},
		"is endless": {func(*http.Request) *http.Response { a := answered(200, nil); a.Body = endless{}; return a }, access.ProviderUnavailable},
		"redirects": {func(*http.Request) *http.Response {
			a := answered(307, nil)
			a.Header.Set("Location", "https://evil.example.com/token")
			return a
		}, access.ProviderUnavailable},
		"fails": {func(*http.Request) *http.Response { return answered(500, "PROVIDER TEXT") }, access.ProviderUnavailable},
		"has no token": {func(*http.Request) *http.Response {
			return answered(200, map[string]any{"access_token": "ACCESS", "token_type": "Bearer"})
		}, access.ProviderUnavailable},
		"is no JWT": {func(*http.Request) *http.Response {
			return answered(200, map[string]any{"access_token": "ACCESS", "token_type": "Bearer", "id_token": "x"})
		}, access.InvalidToken},
		"knows no client": {func(*http.Request) *http.Response { return answered(401, map[string]any{"error": "invalid_client"}) },
			access.ProviderUnavailable},
		"has its own errors": {func(*http.Request) *http.Response { return answered(400, map[string]any{"error": "PROVIDER TEXT"}) }, access.ProviderUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			signInTest(t, nil, func(t *testing.T, r rig) {
				b := r.browser(t)
				answer := r.provider.SignIn(t, b.begin("/"), nil)
				r.provider.Misbehave(func(q *http.Request) *http.Response {
					if q.URL.Path != "/token" {
						return nil
					}
					return c.how(q)
				})
				begun := time.Now()
				b.want(answer, c.want)
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
				if got := r.provider.Asked("/token"); got != 1 {
					t.Errorf("the provider was asked %d times", got)
				}
			})
		})
	}
}

// TestMetadataThatIsNotUsable sends no browser and no secret anywhere.
func TestMetadataThatIsNotUsable(t *testing.T) {
	for name, changes := range map[string]map[string]any{
		"another issuer":           {"issuer": "https://evil.example.com"},
		"no authorization":         {"authorization_endpoint": nil},
		"no token":                 {"token_endpoint": nil},
		"authorization over http":  {"authorization_endpoint": "http://idp.example.com/authorize"},
		"token on loopback":        {"token_endpoint": "http://127.0.0.1:2379/v3/kv/put"},
		"no host":                  {"authorization_endpoint": "https:///authorize"},
		"a script":                 {"authorization_endpoint": "javascript://x/%0aalert(1)"},
		"a password in a URL":      {"token_endpoint": "https://a:b@idp.example.com/token"},
		"a fragment":               {"authorization_endpoint": "https://idp.example.com/authorize#x"},
		"something else than text": {"token_endpoint": 7},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := func(q *http.Request) *http.Response {
				if strings.HasPrefix(q.URL.Path, "/.well-known/") {
					return accesstest.Answer(200, accesstest.Metadata(changes))
				}
				return nil
			}
			signInTestWith(t, wrong, nil, func(t *testing.T, r rig) {
				b := r.browser(t)
				if to, cookie, err := r.BeginSignIn(b.get("/v1/login"), "/"); err == nil || refused(t, err).Reason != access.ProviderUnavailable || cookie != nil {
					t.Errorf("the browser is sent to %q: %v", to, err)
				}
			})
		})
	}
}

// TestSignInsThatFail make their address wait, and no other one; nothing is asked of the provider
// until then.
func TestSignInsThatFail(t *testing.T) {
	signInTest(t, nil, func(t *testing.T, r rig) {
		b, late := r.browser(t), r.browser(t)
		ofLate := r.provider.SignIn(t, late.begin("/"), nil)
		for range failuresAtOnce {
			answer := r.provider.SignIn(t, b.begin("/"), nil)
			answer.Set("code", "guessed")
			b.want(answer, access.LoginRefused)
		}
		asked := r.provider.Asked("/token")
		late.want(ofLate, access.TooManyFailures)
		if _, _, err := r.BeginSignIn(b.get("/v1/login"), "/"); err == nil || refused(t, err).Reason != access.TooManyFailures {
			t.Errorf("it begins another one: %v", err)
		}
		if got := r.provider.Asked("/token"); got != asked {
			t.Errorf("the provider was asked %d times, and %d times before", got, asked)
		}
		other := r.browser(t)
		other.address = "192.0.2.2:5"
		other.want(r.provider.SignIn(t, other.begin("/"), nil), "")
	})
}

// TestSignInsThatWaitAreFew, for each address and in all.
func TestSignInsThatWaitAreFew(t *testing.T) {
	turns := newTurns()
	b, c := from(newRequest("/"), "192.0.2.1:1"), from(newRequest("/"), "192.0.2.2:1")
	for range maxTurnsOfOne {
		if !turns.take(address(b.RemoteAddr)) {
			t.Fatal("too few")
		}
	}
	if turns.take(address(b.RemoteAddr)) {
		t.Error("one address has more than its share")
	}
	if !turns.take(address(c.RemoteAddr)) {
		t.Error("another address has none")
	}
	turns.all = maxTurns
	if turns.take(address(c.RemoteAddr)) {
		t.Error("more than all")
	}
	turns.all = maxTurnsOfOne + 1
	turns.leave(address(c.RemoteAddr))
	for range maxTurnsOfOne {
		turns.leave(address(b.RemoteAddr))
	}
	if len(turns.of) != 0 || turns.all != 0 {
		t.Errorf("left behind: %+v", turns)
	}
}

// TestSignInWithoutTLS is refused from another machine.
func TestSignInWithoutTLS(t *testing.T) {
	signInTest(t, nil, func(t *testing.T, r rig) {
		q := from(newRequest("/v1/login"), "192.0.2.1:1")
		if _, _, err := r.BeginSignIn(q, "/"); err == nil || refused(t, err).Reason != access.PlainText {
			t.Errorf("begins: %v", err)
		}
		if _, err := r.FinishSignIn(q); err == nil || refused(t, err).Reason != access.PlainText {
			t.Errorf("ends: %v", err)
		}
	})
}

// TestReturnStaysAtTheGateway: whatever the path, a browser goes to the public URL.
func TestReturnStaysAtTheGateway(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/#/watches/a?filter=x%20y": true, "/app/?a=b&c=d#e": true, "/.//evil.example.com": true,
		"": false, "//evil.example.com": false, `/\evil.example.com`: false, `\\evil.example.com`: false, "https://evil.example.com": false,
		"javascript:alert(1)": false, "/\t/evil.example.com": false, "/\r\nSet-Cookie: a=b": false, "/ü": false, " /": false, "/ x": false, ".": false,
		"/" + strings.Repeat("x", maxReturn): false,
	} {
		if got := IsReturn(path); got != want {
			t.Errorf("%q: %t, want %t", path, got, want)
		}
	}
	text := rapid.StringMatching(`[/\\.:@?#%a\t\n ]{0,8}[a-z./]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		path := text.Draw(t, "path")
		if !IsReturn(path) {
			return
		}
		if u, err := url.Parse(public + path); err == nil && (u.Scheme != "https" || u.Host != "events.example.com" || u.User != nil) {
			t.Fatalf("%q leads to %s", path, u)
		}
	})
}

// TestSignInThatCannotWork is an error of the configuration.
func TestSignInThatCannotWork(t *testing.T) {
	p := accesstest.NewProvider(t)
	good := SignIn{Issuer: accesstest.URL, ClientID: "x"}
	for want, c := range map[string]Config{
		"client ID":  {PublicURL: public, Issuers: []jwt.Issuer{p.Remote()}, SignIn: &SignIn{Issuer: accesstest.URL}},
		"public URL": {Issuers: []jwt.Issuer{p.Remote()}, SignIn: &good},
		"want one of the issuers whose keys are fetched": {PublicURL: public, Issuers: []jwt.Issuer{p.Issuer()}, SignIn: &good},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
