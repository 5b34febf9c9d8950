package accesstest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/jwt"
)

// ClientID and ClientSecret are those of the gateway at a Provider.
const (
	ClientID     = "gateway"
	ClientSecret = "s3cret/of+gateway"
)

// grant is what a code stands for.
type grant struct {
	challenge, redirect string
	claims              map[string]any // of the ID token
}

// Remote returns the gateway's configuration of the provider, which is asked for its keys.
func (p *Provider) Remote() jwt.Issuer {
	i := p.Issuer()
	i.Keys, i.Transport = nil, p
	return i
}

// Misbehave has a function answer requests from now on; where it returns nil, the provider answers
// as it should.
func (p *Provider) Misbehave(how func(*http.Request) *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.how = how
}

// Asked returns how many requests came for a path.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// SignIn has ann sign in at a URL to which the gateway has sent her browser. It returns the
// parameters that the browser comes back with. The ID token has claims changed as given; a nil
// removes one.
func (p *Provider) SignIn(t testing.TB, to string, changes map[string]any) url.Values {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": ClientID, "code_challenge_method": "S256"} {
		if got := q.Get(name); got != want {
			t.Fatalf("%s is %q in %s, want %q", name, got, to, want)
		}
	}
	if !strings.HasPrefix(to, URL+"/authorize?") || !strings.HasPrefix(q.Get("scope"), "openid") || q.Get("state") == "" || q.Get("nonce") == "" {
		t.Fatalf("the browser is sent to %s", to)
	}
	claims := map[string]any{"aud": ClientID, "nonce": q.Get("nonce")}
	maps.Copy(claims, changes)
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grants[code] = grant{q.Get("code_challenge"), q.Get("redirect_uri"), claims}
	return url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {URL}}
}

// RoundTrip answers a request of the gateway.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.asked[r.URL.Path]++
	how := p.how
	p.mu.Unlock()
	if how != nil {
		if answer := how(r); answer != nil {
			answer.Request = r
			return answer, nil
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		return Answer(http.StatusOK, Metadata(nil)), nil
	case "/keys":
		return Answer(http.StatusOK, json.RawMessage(p.keys)), nil
	case "/token":
		return p.exchange(r)
	}
	return Answer(http.StatusNotFound, nil), nil
}

// Metadata returns the metadata of a Provider, with changes.
func Metadata(changes map[string]any) map[string]any {
	m := map[string]any{
		"issuer": URL, "jwks_uri": URL + "/keys", "authorization_endpoint": URL + "/authorize", "token_endpoint": URL + "/token",
		"authorization_response_iss_parameter_supported": true,
	}
	maps.Copy(m, changes)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	return m
}

// Answer returns an answer with a value in JSON.
func Answer(status int, v any) *http.Response {
	body, _ := json.Marshal(v)
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// exchange answers a code, once, if everything about it is right.
func (p *Provider) exchange(r *http.Request) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := r.PostForm.Get("code")
	g, found := p.grants[code]
	delete(p.grants, code)
	id, secret, _ := r.BasicAuth()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	switch {
	case id != url.QueryEscape(ClientID) || secret != url.QueryEscape(ClientSecret):
		return Answer(http.StatusUnauthorized, map[string]string{"error": "invalid_client"}), nil
	case !found || r.PostForm.Get("redirect_uri") != g.redirect || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		return Answer(http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "PROVIDER TEXT"}), nil
	}
	text, err := p.sign(g.claims)
	return Answer(http.StatusOK, map[string]any{"access_token": "ACCESS", "token_type": "Bearer", "id_token": text}), err
}
