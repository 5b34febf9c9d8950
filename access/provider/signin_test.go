//go:build servers

package provider

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/jwt"
)

// signIn has a user of the provider sign in at a URL, and returns the URL to which the provider sends
// the browser back.
func (p *idp) signIn(to string) string {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	browser := &http.Client{Transport: p.client.Transport, Jar: jar, Timeout: time.Minute, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), publicURL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	form, err := browser.Get(to)
	if err != nil {
		p.t.Fatal(err)
	}
	form.Body.Close()
	id := form.Request.URL.Query().Get("authRequestID")
	back, err := browser.PostForm(p.issuer()+"login/username", url.Values{"username": {"test-user2"}, "password": {"verysecure"}, "id": {id}})
	if err != nil {
		p.t.Fatal(err)
	}
	back.Body.Close()
	if !strings.HasPrefix(back.Header.Get("Location"), publicURL+credential.CallbackPath+"?") {
		p.t.Fatalf("after %s the provider answers %s: %v", form.Request.URL, back.Status, back.Header)
	}
	return back.Header.Get("Location")
}

// TestSignInWithTheProvider, which exchanges a code once.
func TestSignInWithTheProvider(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	a, err := credential.New(credential.Config{
		PublicURL: publicURL,
		Issuers:   []jwt.Issuer{{URL: p.issuer(), Audience: "watchtide", Algorithms: []string{"RS256"}, Groups: "realm_access.roles"}},
		SignIn:    &credential.SignIn{Issuer: p.issuer(), ClientID: dashboard, ClientSecret: dashboardSecret, Scopes: []string{"profile", "email"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })

	request := func(target string, cookie *http.Cookie) *http.Request {
		r := httptest.NewRequest(http.MethodGet, target, http.NoBody)
		r.RemoteAddr = "127.0.0.1:1"
		if cookie != nil {
			r.AddCookie(cookie)
		}
		return r
	}
	to, cookie, err := a.BeginSignIn(request("/v1/login", nil), "/#/watches")
	if err != nil {
		t.Fatal(err)
	}
	back := p.signIn(to)
	done, err := a.FinishSignIn(request(back, cookie))
	if err != nil {
		t.Fatal(err)
	}
	if done.To != publicURL+"/#/watches" || done.By.Name != "id2" {
		t.Errorf("%s goes to %s", done.By.Name, done.To)
	}
	if id, err := a.Identify(request("/v1/events", done.Cookie)); err != nil || id.Name != "id2" || id.Issuer != p.issuer() {
		t.Errorf("the session: %+v, %v", id, err)
	}
	if _, err := a.FinishSignIn(request(back, cookie)); err == nil {
		t.Error("the same code signs in twice")
	}
}
