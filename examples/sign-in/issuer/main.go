// Command issuer is an OpenID provider for development: whoever asks is whom they choose. It listens
// on loopback only, and forgets everything when it ends.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"html/template"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// users are the users, with their groups.
var users = map[string][]string{"ann": {"staff"}, "bob": {}}

const (
	codeLife  = time.Minute
	tokenLife = 5 * time.Minute
	maxCodes  = 1000
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9400", "the `address` on loopback to listen on")
	client := flag.String("client", "dashboard", "the `ID` of the client that may sign users in")
	callback := flag.String("callback", "http://127.0.0.1:8080/v1/login/callback", "the redirect `URI` of the client")
	flag.Parse()
	if err := run(*listen, *client, *callback); err != nil {
		log.Fatal(err)
	}
}

func run(listen, client, callback string) error {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("-listen is %q: want an address on loopback, such as 127.0.0.1:9400, since anybody can sign in as anybody", listen)
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	p, err := newProvider("http://"+listener.Addr().String(), client, callback)
	if err != nil {
		return err
	}
	fmt.Printf("listening issuer=%s client=%s callback=%s\n", p.issuer, client, callback)
	server := &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}

// provider is the provider.
type provider struct {
	// Static after construction.
	issuer, client, callback string
	signer                   jose.Signer
	keys                     jose.JSONWebKeySet

	mu sync.Mutex
	// Guarded by mu.
	grants map[string]grant // by code
}

// grant is what a code stands for. Static after construction.
type grant struct {
	user, nonce, challenge string
	until                  time.Time
}

func newProvider(issuer, client, callback string) (*provider, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	id := rand.Text()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	return &provider{
		issuer: issuer, client: client, callback: callback, signer: signer, grants: map[string]grant{},
		keys: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: string(jose.ES256), Use: "sig"}}},
	}, err
}

func (p *provider) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /.well-known/openid-configuration", p.metadata)
	m.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, p.keys) })
	m.HandleFunc("GET /authorize", p.choose)
	m.HandleFunc("POST /authorize", p.authorize)
	m.HandleFunc("POST /token", p.token)
	return m
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func (p *provider) metadata(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": p.issuer, "jwks_uri": p.issuer + "/keys", "authorization_endpoint": p.issuer + "/authorize", "token_endpoint": p.issuer + "/token",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{string(jose.ES256)}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"}, "authorization_response_iss_parameter_supported": true,
	})
}

// check returns what is wrong with a request to sign in; empty: nothing is.
func (p *provider) check(q url.Values) string {
	for name, want := range map[string]string{
		"client_id": p.client, "redirect_uri": p.callback, "response_type": "code", "code_challenge_method": "S256",
	} {
		if q.Get(name) != want {
			return fmt.Sprintf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if !slices.Contains(strings.Fields(q.Get("scope")), "openid") || q.Get("code_challenge") == "" {
		return "want the scope openid and a code_challenge"
	}
	return ""
}

// page asks who the user is. Its form goes to the address of the page.
var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>Development issuer</title>
<h1>Development issuer</h1>
<p>Who are you?</p>
<form method="post">{{range $name, $groups := .}}
<button name="user" value="{{$name}}">{{$name}}</button>{{end}}
</form>
`))

// choose asks the user who they are.
func (p *provider) choose(w http.ResponseWriter, r *http.Request) {
	if wrong := p.check(r.URL.Query()); wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(w, users) // the browser may be gone
}

// authorize sends the browser back to the client with a code.
func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q, user := r.URL.Query(), r.PostFormValue("user")
	wrong := p.check(q)
	if _, known := users[user]; !known {
		wrong = "there is no such user"
	}
	if wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.grant(code, grant{user, q.Get("nonce"), q.Get("code_challenge"), time.Now().Add(codeLife)})
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.issuer}}
	http.Redirect(w, r, p.callback+"?"+back.Encode(), http.StatusSeeOther)
}

func (p *provider) grant(code string, g grant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for code, old := range p.grants {
		if len(p.grants) >= maxCodes || time.Now().After(old.until) {
			delete(p.grants, code)
		}
	}
	p.grants[code] = g
}

// take returns what a code stands for, once.
func (p *provider) take(code string) (grant, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, found := p.grants[code]
	delete(p.grants, code)
	return g, found && time.Now().Before(g.until)
}

// token exchanges a code for tokens.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	g, found := p.take(r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !found || r.PostFormValue("client_id") != p.client || r.PostFormValue("redirect_uri") != p.callback ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	text, err := p.sign(g)
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(tokenLife.Seconds()), "id_token": text})
}

func (p *provider) sign(g grant) (string, error) {
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": p.issuer, "aud": p.client, "sub": g.user, "groups": users[g.user], "nonce": g.nonce, "iat": now.Unix(), "exp": now.Add(tokenLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed, err := p.signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
