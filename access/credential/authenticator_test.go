package credential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

func TestIdentify(t *testing.T) {
	r := newRig(t, nil)
	valid := r.provider.Token(t, nil)
	for name, c := range map[string]struct {
		request *http.Request
		want    string
	}{
		"nothing":                     {newRequest("/"), "anonymous"},
		"a static token":              {withBearer(r.ci), "token ci"},
		"another case of the scheme":  {newRequest("/", "Authorization", "bEARER "+r.ci), "token ci"},
		"more spaces":                 {newRequest("/", "Authorization", "Bearer   "+r.ci+" "), "token ci"},
		"a JWT":                       {withBearer(valid), "jwt ann"},
		"an unknown token":            {withBearer("unknown"), "invalid_token"},
		"the hash of a token":         {withBearer(hexHash(r.ci)), "invalid_token"},
		"a JWT that is not ours":      {withBearer(accesstest.NewProvider(t).Token(t, nil)), "invalid_token"},
		"an issuer that is not ours":  {withBearer(r.provider.Token(t, map[string]any{"iss": "https://other"})), "unknown_issuer"},
		"another scheme":              {newRequest("/", "Authorization", "Basic YTpi"), "invalid_request"},
		"no scheme":                   {newRequest("/", "Authorization", r.ci), "invalid_request"},
		"no token":                    {newRequest("/", "Authorization", "Bearer "), "invalid_request"},
		"an empty header":             {newRequest("/", "Authorization", ""), "invalid_request"},
		"two tokens":                  {newRequest("/", "Authorization", "Bearer "+r.ci, "Authorization", "Bearer "+r.ci), "invalid_request"},
		"two tokens in one line":      {withBearer(r.ci + ", Bearer " + r.ci), "invalid_request"},
		"a huge token":                {withBearer(strings.Repeat("a", 1<<20)), "invalid_token"},
		"a token beyond ASCII":        {withBearer("é"), "invalid_request"},
		"a certificate":               {withCertificate(newRequest("/"), certificate(t, "spiffe://a/b")), "certificate spiffe://a/b"},
		"a certificate without a URI": {withCertificate(newRequest("/"), certificate(t)), "invalid_token"},
		"a certificate with two URIs": {withCertificate(newRequest("/"), certificate(t, "spiffe://a/b", "spiffe://a/c")), "invalid_token"},
		"a header of a proxy":         {newRequest("/", "X-Client-Cert", "spiffe://a/b", "X-Forwarded-Client-Cert", "URI=spiffe://a/b", "X-SSL-Client-Verify", "SUCCESS"), "anonymous"},
		"a token in the query":        {newRequest("/?access_token=" + r.ci), "anonymous"},
		"a token as a ticket":         {newRequest("/?ticket=" + r.ci), "invalid_token"},
		"an empty ticket":             {newRequest("/?ticket="), "invalid_token"},
		"an escaped name of a ticket": {newRequest("/?%74icket=x"), "invalid_token"},
		"two tickets":                 {newRequest("/?ticket=a&ticket=b"), "invalid_request"},
		"a token as a cookie":         {newRequest("/", "Cookie", "watchtide-session="+r.ci), "invalid_token"},
		"two sessions":                {newRequest("/", "Cookie", "watchtide-session=a; watchtide-session=b"), "invalid_request"},
		"the cookie of another site":  {newRequest("/", "Cookie", "session=a"), "anonymous"},
	} {
		if got := r.who(t, from(c.request, fmt.Sprintf("127.0.%d.%d:1", rand.IntN(255), rand.IntN(255)))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func hexHash(text string) string {
	h := access.HashOfToken(text)
	return hex.EncodeToString(h[:])
}

// TestFirstCredentialDecides, whatever comes after it, even if it is invalid.
func TestFirstCredentialDecides(t *testing.T) {
	r := newRig(t, nil)
	cookie := r.session(t, withBearer(r.provider.Token(t, nil)))
	ticket := r.ticket(t, withBearer(r.provider.Token(t, map[string]any{"sub": "bob"})), "a")
	all := func(authorization, ticket, cookie string) *http.Request {
		q := newRequest("/?x=1&ticket="+ticket, "Cookie", "watchtide-session="+cookie)
		if authorization != "" {
			q.Header.Set("Authorization", authorization)
		}
		if ticket == "" {
			q.URL.RawQuery = ""
		}
		return q
	}
	for _, c := range []struct {
		request *http.Request
		want    string
	}{
		{all("Bearer "+r.ci, ticket, cookie.Value), "token ci"},
		{all("Bearer x", ticket, cookie.Value), "invalid_token"},
		{all("", ticket, cookie.Value), "jwt bob"},
		{all("", "x", cookie.Value), "invalid_token"},
		{all("", "", cookie.Value), "jwt ann"},
		{withCertificate(newRequest("/", "Cookie", "__Host-watchtide-session="+cookie.Value), certificate(t, "spiffe://a/b")), "jwt ann"},
		{withCertificate(newRequest("/", "Cookie", "__Host-watchtide-session=x"), certificate(t, "spiffe://a/b")), "invalid_token"},
	} {
		if got := r.who(t, c.request); got != c.want {
			t.Errorf("%v: %s, want %s", c.request.Header, got, c.want)
		}
	}
}

// TestSecretsAreNeverInErrors, nor anything else that a client wrote.
func TestSecretsAreNeverInErrors(t *testing.T) {
	r := newRig(t, nil)
	const marker = "hunter2"
	for _, q := range []*http.Request{
		withBearer(marker), newRequest("/", "Authorization", marker), withBearer(marker + "." + marker + "." + marker),
		newRequest("/?ticket=" + marker), newRequest("/", "Cookie", "watchtide-session="+marker),
		withCertificate(newRequest("/"), certificate(t, "spiffe://"+marker, "spiffe://b")),
	} {
		_, err := r.Identify(q)
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, refused(t, err)), marker) {
			t.Errorf("%v", err)
		}
	}
}

// TestPlainText: a credential that somebody may have read on the way is not taken.
func TestPlainText(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{prefix("10.0.0.0/8"), prefix("2001:db8::/32")} })
	ticket, cookie := r.ticket(t, withBearer(r.ci), "a"), r.session(t, withBearer(r.ci))
	for address, want := range map[string]string{
		"127.0.0.1:1": "token ci", "[::1]:1": "token ci", "[::ffff:127.0.0.1]:1": "token ci", "10.1.2.3:1": "token ci", "[2001:db8::1]:1": "token ci", "@": "token ci", "": "token ci",
		"192.0.2.1:1": "plain_text", "[2001:db9::1]:1": "plain_text", "[fe80::1%eth0]:1": "plain_text", "11.0.0.1:1": "plain_text",
	} {
		if got := r.who(t, from(withBearer(r.ci), address)); got != want {
			t.Errorf("%q: %s, want %s", address, got, want)
		}
		if got := r.who(t, from(newRequest("/?ticket="+ticket), address)); got != want {
			t.Errorf("%q, a ticket: %s, want %s", address, got, want)
		}
		if got := r.who(t, from(newRequest("/"), address)); got != "anonymous" {
			t.Errorf("%q, nothing: %s", address, got)
		}
		q := from(withBearer(r.ci), address)
		q.TLS = &tls.ConnectionState{}
		if got := r.who(t, q); got != "token ci" {
			t.Errorf("%q with TLS: %s", address, got)
		}
	}
	q := from(newRequest("/", "Cookie", "__Host-watchtide-session="+cookie.Value), "192.0.2.1:1")
	if got := r.who(t, q); got != "plain_text" {
		t.Errorf("a cookie: %s", got)
	}
	_, err := r.Identify(from(withBearer("x"), "192.0.2.1:1"))
	if e := refused(t, err); e.Status != 403 || e.Challenge != "" || !strings.Contains(e.Text, "trusted_proxies") {
		t.Errorf("%+v", e)
	}
}

// TestForeignPages cannot use what browsers send by themselves.
func TestForeignPages(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.PublicURL, c.AllowedOrigins = "https://events.example.com", []string{"https://app.example.com"}
	})
	cookie := r.session(t, withBearer(r.ci))
	for _, c := range []struct {
		headers []string
		counts  bool
	}{
		{nil, true},
		{[]string{"Sec-Fetch-Site", "same-origin"}, true},
		{[]string{"Sec-Fetch-Site", "none"}, true},
		{[]string{"Sec-Fetch-Site", "same-site"}, false},
		{[]string{"Sec-Fetch-Site", "cross-site"}, false},
		{[]string{"Sec-Fetch-Site", ""}, false},
		{[]string{"Sec-Fetch-Site", "Same-Origin"}, false},
		{[]string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"}, false},
		{[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://events.example.com"}, false},
		{[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://app.example.com"}, true},
		{[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://other.example.com"}, false},
		{[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://app.example.com", "Origin", "https://evil.example.com"}, false},
		{[]string{"Origin", "https://events.example.com"}, true},
		{[]string{"Origin", "https://app.example.com"}, true},
		{[]string{"Origin", "http://events.example.com"}, false},
		{[]string{"Origin", "https://evil.example.com"}, false},
		{[]string{"Origin", "null"}, false},
		{[]string{"Origin", ""}, false},
		{[]string{"Origin", "https://app.example.com.evil.example.com"}, false},
		{[]string{"Referer", "https://evil.example.com"}, true},
	} {
		q := newRequest("/", append(c.headers, "Cookie", "__Host-watchtide-session="+cookie.Value)...)
		if got := r.who(t, q); (got == "token ci") != c.counts || !c.counts && got != "anonymous" {
			t.Errorf("a cookie, with %q: %s", c.headers, got)
		}
		q = withCertificate(newRequest("/", c.headers...), certificate(t, "spiffe://a/b"))
		if got := r.who(t, q); (got == "certificate spiffe://a/b") != c.counts || !c.counts && got != "anonymous" {
			t.Errorf("a certificate, with %q: %s", c.headers, got)
		}
		q = newRequest("/", append(c.headers, "Authorization", "Bearer "+r.ci)...)
		if got := r.who(t, q); got != "token ci" {
			t.Errorf("a token, with %q: %s", c.headers, got)
		}
	}
}

// TestOwnOriginWithoutPublicURL is that of the request.
func TestOwnOriginWithoutPublicURL(t *testing.T) {
	r := newRig(t, nil)
	cookie := r.session(t, withBearer(r.ci))
	for origin, want := range map[string]string{
		"http://localhost:8080": "token ci", "http://localhost": "anonymous", "https://localhost:8080": "anonymous", "http://localhost:3000": "anonymous",
	} {
		q := newRequest("http://localhost:8080/", "Cookie", cookie.Name+"="+cookie.Value, "Origin", origin)
		if got := r.who(t, q); got != want {
			t.Errorf("%s: %s, want %s", origin, got, want)
		}
	}
}

func TestCertificates(t *testing.T) {
	leaf := certificate(t, "spiffe://a/b")
	leaf.EmailAddresses = []string{"ann@example.com"}
	for subject, want := range map[Subject]string{"": "anonymous", SubjectURI: "certificate spiffe://a/b", SubjectDNS: "certificate a.example.com", SubjectEmail: "certificate ann@example.com"} {
		r := newRig(t, func(c *Config) { c.Certificates = subject })
		if got := r.who(t, withCertificate(newRequest("/"), leaf)); got != want {
			t.Errorf("%s: %s, want %s", subject, got, want)
		}
	}
	r := newRig(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{prefix("10.0.0.0/8")} })
	if got := r.who(t, from(withCertificate(newRequest("/"), leaf), "10.0.0.1:1")); got != "anonymous" {
		t.Errorf("that of a trusted proxy: %s", got)
	}
	unverified := withCertificate(newRequest("/"), leaf)
	unverified.TLS.VerifiedChains = nil
	if got := r.who(t, unverified); got != "anonymous" {
		t.Errorf("not verified: %s", got)
	}
	id, err := r.Identify(withCertificate(newRequest("/"), leaf))
	if err != nil || id.Issuer != "CN=ca" || !id.Expires.Equal(leaf.NotAfter) || id.Via != ViaCertificate {
		t.Errorf("%+v, %v", id, err)
	}
	old := certificate(t, "spiffe://a/b")
	old.NotAfter = time.Now().Add(-time.Minute)
	if _, err = r.Identify(withCertificate(newRequest("/"), old)); err == nil || refused(t, err).Reason != access.TokenExpired {
		t.Errorf("expired during the connection: %v", err)
	}
	if _, err := New(Config{Certificates: "cn"}); err == nil {
		t.Error("the common name can be configured")
	}
}

// TestIssuerOfACertificateIsStable, in whatever order the chains come.
func TestIssuerOfACertificateIsStable(t *testing.T) {
	leaf, a, b := &x509.Certificate{}, &x509.Certificate{}, &x509.Certificate{}
	a.Subject.CommonName, b.Subject.CommonName = "a", "b"
	if one, other := root([][]*x509.Certificate{{leaf, a}, {leaf, a, b}}), root([][]*x509.Certificate{{leaf, a, b}, {leaf, a}}); one != other {
		t.Errorf("%s and %s", one, other)
	}
}

// wrapped is what a server knows of a connection, with what its transport knows inside.
type wrapped struct{ credentials.AuthInfo }

func (w wrapped) Unwrap() credentials.AuthInfo { return w.AuthInfo }

// TestCalls over gRPC carry tokens, sessions and certificates.
func TestCalls(t *testing.T) {
	r := newRig(t, nil)
	cookie := r.session(t, from(withBearer(r.ci), "@"))
	call := func(address string, state *tls.ConnectionState, pairs ...string) context.Context {
		from := &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}
		if state != nil {
			from.AuthInfo = wrapped{wrapped{credentials.TLSInfo{State: *state}}}
		}
		return metadata.NewIncomingContext(peer.NewContext(t.Context(), from), metadata.Pairs(pairs...))
	}
	certified := withCertificate(newRequest("/"), certificate(t, "spiffe://a/b")).TLS
	for name, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"nothing":                    {call("127.0.0.1", nil), "anonymous"},
		"no peer":                    {t.Context(), "anonymous"},
		"a token":                    {call("127.0.0.1", nil, "authorization", "Bearer "+r.ci), "token ci"},
		"a JWT":                      {call("127.0.0.1", nil, "authorization", "bearer "+r.provider.Token(t, nil)), "jwt ann"},
		"an unknown token":           {call("127.0.0.2", nil, "authorization", "Bearer x"), "invalid_token"},
		"two tokens":                 {call("127.0.0.2", nil, "authorization", "Bearer "+r.ci, "authorization", "Bearer "+r.ci), "invalid_request"},
		"a token in plain text":      {call("192.0.2.1", nil, "authorization", "Bearer "+r.ci), "plain_text"},
		"a token over TLS":           {call("192.0.2.1", &tls.ConnectionState{}, "authorization", "Bearer "+r.ci), "token ci"},
		"a certificate":              {call("192.0.2.1", certified), "certificate spiffe://a/b"},
		"a certificate, and a page":  {call("192.0.2.1", certified, "sec-fetch-site", "cross-site"), "anonymous"},
		"a certificate, and a token": {call("192.0.2.1", certified, "authorization", "Bearer "+r.ci), "token ci"},
		"a cookie that is not ours":  {call("127.0.0.2", nil, "cookie", "watchtide-session=x"), "invalid_token"},
		"a session":                  {call("192.0.2.1", &tls.ConnectionState{}, "cookie", "a=1; "+cookie.Name+"="+cookie.Value), "token ci"},
		"a session, and a page":      {call("192.0.2.1", &tls.ConnectionState{}, "cookie", cookie.Name+"="+cookie.Value, "sec-fetch-site", "cross-site"), "anonymous"},
		"a session in plain text":    {call("192.0.2.1", nil, "cookie", cookie.Name+"="+cookie.Value), "plain_text"},
	} {
		id, err := r.IdentifyCall(c.ctx)
		got := ""
		if err != nil {
			got = string(refused(t, err).Reason)
		} else {
			got = strings.TrimSpace(id.Mechanism + " " + id.Name)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestFailuresAreLimited for each address; what is valid still counts.
func TestFailuresAreLimited(t *testing.T) {
	r := newRig(t, nil)
	before := r.provider.Token(t, nil)
	stranger := accesstest.NewProvider(t).Token(t, nil)
	synctest.Test(t, func(t *testing.T) {
		r := rig{newAuthenticator(t, r.cfg), r.provider, r.ci}
		now := map[string]any{"exp": time.Now().Add(time.Hour).Unix()}
		before := r.provider.Token(t, now)
		if got := r.who(t, withBearer(before)); got != "jwt ann" {
			t.Fatal(got)
		}
		for i := range failuresAtOnce {
			if got := r.who(t, withBearer("guess")); got != "invalid_token" {
				t.Errorf("failure %d: %s", i, got)
			}
		}
		cookie, ticket := r.session(t, withBearer(r.ci)), r.ticket(t, withBearer(r.ci), "a")
		for range 100 {
			_, err := r.Identify(withBearer("guess"))
			if e := refused(t, err); e.Status != 429 || e.RetryAfter != failureEvery {
				t.Fatalf("%+v", e)
			}
		}
		for name, q := range map[string]*http.Request{
			"a static token": withBearer(r.ci), "a JWT seen before": withBearer(before),
			"a session": newRequest("/", "Cookie", cookie.Name+"="+cookie.Value), "a ticket": newRequest("/?ticket=" + ticket),
		} {
			if got := r.who(t, q); got != "token ci" && got != "jwt ann" {
				t.Errorf("%s: %s", name, got)
			}
		}
		for name, q := range map[string]*http.Request{
			"a new JWT": withBearer(r.provider.Token(t, map[string]any{"exp": time.Now().Add(time.Hour).Unix(), "jti": "2"})), "a foreign one": withBearer(stranger),
		} {
			if got := r.who(t, q); got != "too_many_failures" {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := r.who(t, from(withBearer("guess"), "127.0.0.2:1")); got != "invalid_token" {
			t.Errorf("another address: %s", got)
		}
		if got := r.who(t, newRequest("/")); got != "anonymous" {
			t.Errorf("nothing: %s", got)
		}
		time.Sleep(failureEvery)
		if got := r.who(t, withBearer("guess")); got != "invalid_token" {
			t.Errorf("after a while: %s", got)
		}
		if got := r.who(t, withBearer("guess")); got != "too_many_failures" {
			t.Errorf("at once again: %s", got)
		}
	})
	if got := r.who(t, withBearer(before)); got != "jwt ann" {
		t.Error(got)
	}
}

// TestShortTokensCannotBeGuessed while an address is blocked: even the right one is
// refused.
func TestShortTokensCannotBeGuessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := rig{Authenticator: newAuthenticator(t, Config{Tokens: tokens(t, "weak sha256:"+hexHash("1234"))})}
		if got := a.who(t, withBearer("1234")); got != "token weak" {
			t.Fatal(got)
		}
		for i := range 1000 {
			a.who(t, withBearer(fmt.Sprint(2000+i)))
		}
		if got := a.who(t, withBearer("1234")); got != "too_many_failures" {
			t.Errorf("got %s", got)
		}
		time.Sleep(failureEvery)
		if got := a.who(t, withBearer("1234")); got != "token weak" {
			t.Errorf("later: %s", got)
		}
	})
}

// TestFailuresOfANetwork: one IPv6 client has many addresses; and the table is bounded.
func TestFailuresOfANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures()
		for i := range failuresAtOnce {
			f.add(netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i)))
		}
		if f.blocked(netip.MustParseAddr("2001:db8::ffff:1")) == 0 || f.blocked(netip.MustParseAddr("2001:db8:0:1::1")) != 0 {
			t.Error("the first 64 bits do not count as one client")
		}
		for i := range failuresAtOnce {
			f.add(netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i)))
		}
		if f.blocked(netip.MustParseAddr("192.0.2.1")) != 0 {
			t.Error("IPv4 addresses count together")
		}
		for i := range 2 * maxFailing {
			f.add(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
		}
		if f.until.Len() > maxFailing {
			t.Errorf("%d addresses", f.until.Len())
		}
		f.add(netip.Addr{})
		if f.blocked(netip.Addr{}) != 0 {
			t.Error("one failure without an address blocks")
		}
	})
}

// TestClientsBehindAProxy are told apart by whoever knows them.
func TestClientsBehindAProxy(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Client = func(q *http.Request) netip.Addr { return netip.MustParseAddr(q.Header.Get("X-Forwarded-For")) }
	})
	for range 2 * failuresAtOnce {
		r.who(t, newRequest("/", "Authorization", "Bearer guess", "X-Forwarded-For", "192.0.2.1"))
	}
	if got := r.who(t, newRequest("/", "Authorization", "Bearer guess", "X-Forwarded-For", "192.0.2.1")); got != "too_many_failures" {
		t.Errorf("got %s", got)
	}
	if got := r.who(t, newRequest("/", "Authorization", "Bearer guess", "X-Forwarded-For", "192.0.2.2")); got != "invalid_token" {
		t.Errorf("another client of the proxy: %s", got)
	}
}

// revocations revokes by keys.
type revocations struct {
	keys  map[string]bool
	err   error
	until time.Time // when the sessions began that have ended
	kept  []Ending
}

// SessionsEnded is the same for everybody.
func (r *revocations) SessionsEnded(*access.Principal) time.Time { return r.until }

// Keep keeps the end of a session, or fails.
func (r *revocations) Keep(_ context.Context, e Ending) error {
	r.kept = append(r.kept, e)
	return r.err
}

// Revoked reports whether a key of p is revoked.
func (r *revocations) Revoked(p *access.Principal) (bool, error) {
	for _, k := range p.RevocationKeys() {
		if r.keys[k] {
			return true, nil
		}
	}
	return false, r.err
}

func TestRevocation(t *testing.T) {
	revoked := &revocations{keys: map[string]bool{}}
	r := newRig(t, func(c *Config) { c.Revocations = revoked })
	jwtRequest := func() *http.Request { return withBearer(r.provider.Token(t, nil)) }
	cookie := r.session(t, jwtRequest())
	session := func() *http.Request { return newRequest("/", "Cookie", cookie.Name+"="+cookie.Value) }
	id, err := r.Identify(session())
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][3]string{
		"token/ci":                             {"revoked", "jwt ann", "jwt ann"},
		"subject/https://idp.example.com/ann":  {"token ci", "revoked", "revoked"},
		"subject/https://idp.example.com/anne": {"token ci", "jwt ann", "jwt ann"},
		"session/" + id.ID:                     {"token ci", "jwt ann", "revoked"},
		"session/":                             {"token ci", "jwt ann", "jwt ann"},
	} {
		revoked.keys = map[string]bool{key: true}
		for i, q := range []*http.Request{withBearer(r.ci), jwtRequest(), session()} {
			if got := r.who(t, q); got != want[i] {
				t.Errorf("%s, %d: %s, want %s", key, i, got, want[i])
			}
		}
	}
	revoked.keys = nil
	revoked.err = errors.New("the watch has not been read yet")
	_, err = r.Identify(withBearer(r.ci))
	if e := refused(t, err); e.Status != 503 || e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	if got := r.who(t, newRequest("/")); got != "anonymous" {
		t.Errorf("nothing: %s", got)
	}
}

// TestProviderIsDown: other credentials work, and those of the provider get 503.
func TestProviderIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Issuers[0].Keys = nil
			c.Issuers[0].Transport = refusing{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		if r.Ready() == nil {
			t.Error("ready without keys")
		}
		for range 2 * failuresAtOnce {
			if got := r.who(t, withBearer(r.provider.Token(t, nil))); got != "key_set_unavailable" {
				t.Errorf("a JWT: %s", got)
			}
			if got := r.who(t, withBearer(r.ci)); got != "token ci" {
				t.Errorf("a token: %s", got)
			}
		}
	})
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// TestReload keeps what has been learned.
func TestReload(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Keys = nil })
	for range 2 * failuresAtOnce {
		r.who(t, withBearer("guess"))
	}
	cookie := r.session(t, withBearer(r.ci))
	next := r.cfg
	next.Previous = r.Authenticator
	again := rig{newAuthenticator(t, next), r.provider, r.ci}
	if got := again.who(t, withBearer("guess")); got != "too_many_failures" {
		t.Errorf("failures: %s", got)
	}
	session := newRequest("/", "Cookie", cookie.Name+"="+cookie.Value)
	if got := again.who(t, session); got != "token ci" {
		t.Errorf("a session with a random key: %s", got)
	}
	if again.cfg.Previous != nil {
		t.Error("every reload keeps its predecessors")
	}
	session.RemoteAddr = "127.0.0.2:1"
	// The token is replaced: what was made of the old one has ended.
	_, line, err := access.NewToken("ci", nil)
	if err != nil {
		t.Fatal(err)
	}
	next.Tokens = tokens(t, line)
	if got := (rig{Authenticator: newAuthenticator(t, next)}).who(t, session); got != "invalid_token" {
		t.Errorf("a session of a token that was replaced: %s", got)
	}
	next.Tokens = nil
	if got := (rig{Authenticator: newAuthenticator(t, next)}).who(t, session); got != "invalid_token" {
		t.Errorf("a session of a token that has gone: %s", got)
	}
	// Its groups change: they are those of the file.
	next.Tokens = tokens(t, "ci sha256:"+hexHash(r.ci)+" admins")
	id, err := newAuthenticator(t, next).Identify(session)
	if err != nil || fmt.Sprint(id.Groups) != "[admins]" {
		t.Errorf("groups: %+v, %v", id, err)
	}
	if _, err := New(Config{Issuers: []jwt.Issuer{{URL: "x"}}, Previous: r.Authenticator}); err == nil {
		t.Error("a wrong issuer is accepted")
	}
}

func TestTagsAreOfPrincipals(t *testing.T) {
	r, other := newRig(t, nil), newRig(t, func(c *Config) { c.Keys = []access.SealKey{{9}} })
	a := &access.Principal{Mechanism: "jwt", Issuer: "i", Name: "n"}
	if r.Tag(a) != r.Tag(&access.Principal{Mechanism: "jwt", Issuer: "i", Name: "n", ID: "s", Groups: []string{"g"}}) {
		t.Error("two tags of one principal")
	}
	if r.Tag(a) == r.Tag(&access.Principal{Mechanism: "token", Issuer: "i", Name: "n"}) || r.Tag(a) == other.Tag(a) {
		t.Error("one tag of two principals or keys")
	}
	if r.Ring().Tag(access.Identity, a.Key()) != r.Tag(a) {
		t.Error("the ring is not that of the tags")
	}
}

// FuzzAuthorization looks for headers that make the check panic, or are accepted.
func FuzzAuthorization(f *testing.F) {
	r := newRig(f, nil)
	for _, seed := range []string{"", "Bearer", "Bearer x", "bearer a.b.c", "Basic YTpi", "Bearer  \t", "Bearer x,Bearer y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		q := newRequest("/")
		q.Header["Authorization"] = []string{header}
		if id, err := r.Identify(q); err == nil {
			t.Errorf("%q is of %+v", header, id)
		} else if e := refused(t, err); e.Status != 401 && e.Status != 429 {
			t.Errorf("%q: %+v", header, e)
		}
	})
}
