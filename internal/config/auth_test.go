package config

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
)

const everyKeyOfAuth = `
http: { listen: ":8443", public_url: "https://events.example.com", tls: { cert_file: gw.pem, key_file: gw.key, client_ca_file: gw.pem }, trusted_proxies: [10.0.0.1], allowed_origins: ["https://app.example.com"] }
auth:
  key_files: [a.key, b.key]
  tokens_file: tokens
  jwt:
    - { issuer: "https://idp.example.com", audience: watchtide, algorithms: [ES256, RS256], name: email, groups: realm_access.roles, tls: { ca_file: gw.pem } }
    - { issuer: "https://other.example.com", audience: watchtide, algorithms: [ES256], jwks_file: keys.json }
  login: { issuer: "https://idp.example.com", client_id: dashboard, client_secret_file: login.secret, scopes: [profile, email], name: Example, session: 2h }
  certificates: { subject: uri }
  tickets: { ttl: 20s }
  revoked: { watch: revocations }
  audit: { file: stderr }
  limits: { streams: 50, requests_per_second: 20 }
sources: { cluster: { type: etcd, endpoints: ["127.0.0.1:2379"] } }
watches: { revocations: { source: cluster, prefix: revoked/ } }
`

const (
	testTokenHash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	testKeyA      = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
	testKeyB      = "c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf"
)

// filesOfAuth are files that are not secret, since they are made for this test.
var filesOfAuth = sync.OnceValue(func() map[string]string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"localhost"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
	if err != nil {
		panic(err)
	}
	return map[string]string{
		"etc/gw.pem":       string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		"etc/gw.key":       string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"etc/a.key":        testKeyA + "\n",
		"etc/b.key":        testKeyB,
		"etc/open.key":     testKeyA,
		"etc/login.secret": "hunter2/+\n",
		"etc/tokens":       "# who\nci " + testTokenHash + " robots\n",
		"etc/open.tokens":  "ci " + testTokenHash + "\n",
		"etc/bad.tokens":   "# who\n  ci hunter2\n",
		"etc/keys.json":    string(set),
	}
})

// withModes has files that others can read, or write.
func withModes(env Environment) Environment {
	files := fstest.MapFS{"etc/open.key": {Mode: 0o644}, "etc/open.tokens": {Mode: 0o666}, "etc/a.key": {Mode: 0o440}, "etc/login.secret": {Mode: 0o440}, "etc/tokens": {Mode: 0o440}}
	env.Stat = files.Stat
	return env
}

func TestAuthOfEveryKey(t *testing.T) {
	c, err := Parse("etc/gateway.yaml", []byte(everyKeyOfAuth), withModes(fakeEnvironment()))
	if err != nil {
		t.Fatal(err)
	}
	a := c.Auth
	if a.None || !a.Given || len(a.Keys) != 2 || a.Keys[0].SealKey[0] != 0xa0 || a.Keys[1].SealKey[0] != 0xc0 {
		t.Errorf("got %d keys of %+v", len(a.Keys), a)
	}
	if p := a.Tokens.Lookup(access.HashOfToken("test")); p == nil || p.Name != "ci" || fmt.Sprint(p.Groups) != "[robots]" {
		t.Errorf("tokens: %+v", p)
	}
	if c.HTTP.TLS.ClientCAs == nil || c.HTTP.TLS.ClientAuth != tls.VerifyClientCertIfGiven {
		t.Errorf("tls: %+v", c.HTTP.TLS)
	}
	got := c.Credentials()
	if got.PublicURL != "https://events.example.com" || got.Certificates != credential.SubjectURI || got.TicketTTL != 20*time.Second ||
		len(got.Keys) != 2 || got.Tokens != a.Tokens.TokenTable || len(got.TrustedProxies) != 1 || len(got.AllowedOrigins) != 1 {
		t.Errorf("credentials: %+v", got)
	}
	if one := got.Issuers[0]; one.URL != "https://idp.example.com" || one.Audience != "watchtide" || len(one.Algorithms) != 2 || one.Name != "email" || one.Groups != "realm_access.roles" || one.TLS.RootCAs == nil || one.Keys != nil {
		t.Errorf("issuer: %+v", one)
	}
	if other := got.Issuers[1]; len(other.Keys) == 0 || other.TLS != nil {
		t.Errorf("issuer: %+v", other)
	}
	if in := got.SignIn; in == nil || in.Issuer != "https://idp.example.com" || in.ClientID != "dashboard" || in.ClientSecret != "hunter2/+" ||
		fmt.Sprint(in.Scopes) != "[profile email]" || in.Name != "Example" || in.Session != 2*time.Hour {
		t.Errorf("login: %+v", in)
	}
	if _, err := credential.New(got); err != nil {
		t.Error(err)
	}
}

// TestAuthPermitsListeners that other machines can reach, as none does.
func TestAuthPermitsListeners(t *testing.T) {
	c, err := Parse("f", []byte("http: { listen: \":8080\" }\nauth: {}"), fakeEnvironment())
	if err != nil || !c.Auth.Given || c.Auth.None {
		t.Errorf("%+v, %v", c, err)
	}
	env := fakeEnvironment()
	env.Flags.Auth = NoAuth
	if c, err = Parse("f", []byte("auth: {}"), env); err != nil || c.Auth.Given || !c.Auth.None {
		t.Errorf("the flag: %+v, %v", c, err)
	}
	env.Getenv = func(string) (string, bool) { return "none", true }
	if c, err = Parse("f", []byte("auth: ${A}"), env); err != nil || !c.Auth.None {
		t.Errorf("a variable: %+v, %v", c, err)
	}
}

// TestKeysAreNeverShown, however the configuration is printed.
func TestKeysAreNeverShown(t *testing.T) {
	c := parse(t, everyKeyOfAuth)
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %x %d", c.Auth.Keys, c.Auth, c.Auth.Keys, c.Auth.Keys, c.Auth.Keys)
	if text, err := json.Marshal(c.Auth.Keys); err != nil {
		t.Error(err)
	} else {
		out.Write(text)
	}
	fmt.Fprintf(&out, "%v %+v %#v %s %q", c.Auth.Login, c.Auth.Login, c.Auth.Login, c.Auth.Login.Secret, c.Auth.Login.Secret)
	if text, err := json.Marshal(c.Auth.Login); err != nil {
		t.Error(err)
	} else {
		out.Write(text)
	}
	for _, shown := range []string{"hunter2", testKeyA[:8], "160 161 162", "160,161", "0xa0, 0xa1"} {
		if strings.Contains(out.String(), shown) {
			t.Errorf("shown: %s", out.String())
		}
	}
}

// TestLoginIsChecked: each mistake is reported at its place, and what would be right.
func TestLoginIsChecked(t *testing.T) {
	const jwt = `jwt: [{ issuer: "https://a", audience: w, algorithms: [ES256] }, { issuer: "https://b", audience: w, algorithms: [ES256], jwks_file: keys.json }]`
	const public = `http: { public_url: "https://events.example.com" }` + "\n"
	for login, want := range map[string]string{
		`{ issuer: "https://a", client_id: x }`:                                     "",
		`{ issuer: "https://c", client_id: x }`:                                     "auth.login.issuer: want the issuer of one of the entries of auth.jwt",
		`{ issuer: "https://b", client_id: x }`:                                     "auth.login.issuer: want an issuer without jwks_file",
		`{ issuer: "https://a" }`:                                                   "auth.login: client_id is missing",
		`{ client_id: x }`:                                                          "auth.login: issuer is missing",
		`{ issuer: "https://a", client_id: x, session: 25h }`:                       "auth.login.session: want at most 24h",
		`{ issuer: "https://a", client_id: x, session: 1s }`:                        `auth.login.session: "1s": want a duration of at least 1m`,
		`{ issuer: "https://a", client_id: x, scopes: ["a b"] }`:                    "want a scope of OAuth, such as profile",
		`{ issuer: "https://a", client_id: x, client_secret_file: open.key }`:       "others can read the secret",
		`{ issuer: "https://a", client_id: x, client_secret_file: tokens }`:         "the file holds no secret: want one line",
		`{ issuer: "https://a", client_id: x, client_secret: "hunter2" }`:           `unknown key "client_secret" in auth.login`,
		`{ issuer: "https://a", client_id: x, client_secret_file: missing.secret }`: "missing.secret",
	} {
		_, err := Parse("etc/f", []byte(public+"auth:\n  "+jwt+"\n  login: "+login), withModes(fakeEnvironment()))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", login, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: %v, want %s", login, err, want)
		}
	}
	_, err := Parse("etc/f", []byte("auth:\n  "+jwt+"\n  login: { issuer: \"https://a\", client_id: x }"), withModes(fakeEnvironment()))
	if err == nil || !strings.Contains(err.Error(), "auth.login: the provider needs an address to send browsers back to: want http.public_url") {
		t.Errorf("without a public URL: %v", err)
	}
}

// TestPermissionsAreThoseOfTheFile, if nothing replaces the file system.
func TestPermissionsAreThoseOfTheFile(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "a.key")
	for mode, want := range map[fs.FileMode]bool{0o400: true, 0o640: true, 0o644: false, 0o602: false} {
		if err := os.WriteFile(key, []byte(testKeyA), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Parse(filepath.Join(dir, "f"), []byte("auth: { key_files: [a.key] }"), Environment{})
		var all Errors
		if (err == nil) != want || err != nil && (!errors.As(err, &all) || !strings.Contains(err.Error(), "others can read the key")) {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
}

// TestAuditFile: a file in a directory that does not exist, or a directory, is reported where
// it is named; the file itself need not exist.
func TestAuditFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"new.jsonl": "", "old.jsonl": "", "stderr": "", "./stderr": "", filepath.Join(dir, "new.jsonl"): "",
		"missing/new.jsonl":   ":1:24: auth.audit.file: \"missing/new.jsonl\": there is no such directory; want a file in one that exists, or stderr",
		"old.jsonl/new.jsonl": "there is no such directory",
		".":                   "\".\" is a directory; want the name of a file, or stderr",
	} {
		c, err := Parse(filepath.Join(dir, "f"), []byte("auth: { audit: { file: "+name+" } }"), Environment{})
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case name == "stderr":
			if c.Auth.Audit.File != Stderr {
				t.Errorf("%s: %q", name, c.Auth.Audit.File)
			}
		case !filepath.IsAbs(c.Auth.Audit.File):
			t.Errorf("%s: %q is not absolute", name, c.Auth.Audit.File)
		}
	}
	if _, err := Parse("f", []byte("auth: { audit: {} }"), Environment{}); err == nil || !strings.Contains(err.Error(), "auth.audit: file is missing; want the name of a file, or stderr") {
		t.Errorf("no file: %v", err)
	}
}

// TestRevocationsOfADurableStore: they last, for one replica.
func TestRevocationsOfADurableStore(t *testing.T) {
	const rest = "auth: { revoked: { watch: revocations } }\nwatches: { revocations: { source: local } }\n"
	for name, test := range map[string]struct{ text, want string }{
		"in memory":      {rest + "sources: { local: { type: store } }", "is in the memory of this process"},
		"in a file":      {rest + "sources: { local: { type: store, path: /srv/notes.db } }", ""},
		"other replicas": {rest + "sources: { local: { type: store, path: /srv/notes.db } }\noperations: { replicas: ['http://10.0.0.7:8081'] }", "operations.replicas names others"},
		"a shared file":  {"sources: { a: { type: store, path: /srv/x/notes.db }, b: { type: store, path: /srv/x/../x/notes.db } }\nwatches: { n: { source: a } }", `the source "a" has this path already`},
		"no path":        {"sources: { a: { type: store, path: '' } }\nwatches: { n: { source: a } }", "want the name of the file that keeps the store"},
	} {
		_, err := Parse("x.yaml", []byte(test.text), Environment{})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}
