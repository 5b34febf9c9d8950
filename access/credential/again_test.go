package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
)

// Whoever was identified is looked at again with what is configured by now.
func TestAgain(t *testing.T) {
	r := newRig(t, nil)
	robot, err := r.Identify(withBearer(r.ci))
	if err != nil {
		t.Fatal(err)
	}
	ann, err := r.Identify(withBearer(r.provider.Token(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if now, err := r.Again(robot); err != nil || now != robot {
		t.Errorf("the same token: %v, %v", now, err)
	}
	next := newAuthenticator(t, Config{Previous: r.Authenticator})
	for _, id := range []*Identity{robot, ann} {
		if now, err := next.Again(id); now != nil || refused(t, err).Reason != access.InvalidToken {
			t.Errorf("%s: %v, %v, want a refusal", id.Name, now, err)
		}
	}
	_, line, err := access.NewToken("ci", []string{"robots"})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := newAuthenticator(t, Config{Tokens: tokens(t, line)}).Again(robot); now != nil || err == nil {
		t.Errorf("another token of the same name: %v, %v, want a refusal", now, err)
	}
}

// A static token may have other groups by now, and the identity of before stays as it was.
func TestAgainWithOtherGroups(t *testing.T) {
	text, line, err := access.NewToken("ci", nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := newAuthenticator(t, Config{Tokens: tokens(t, line)}).Identify(withBearer(text))
	if err != nil {
		t.Fatal(err)
	}
	now, err := newAuthenticator(t, Config{Tokens: tokens(t, line+" staff")}).Again(id)
	if err != nil || !slices.Equal(now.Groups, []string{"staff"}) || len(id.Groups) != 0 {
		t.Errorf("%v, %v; before %v", now, err, id)
	}
}

// A session that has ended is not accepted again.
func TestAgainAfterTheSessionHasEnded(t *testing.T) {
	r := newRig(t, nil)
	cookie := r.session(t, withBearer(r.ci))
	request := newRequest("/v1/events", "Sec-Fetch-Site", "same-origin")
	request.AddCookie(cookie)
	id, err := r.Identify(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Again(id); err != nil {
		t.Errorf("before the end: %v", err)
	}
	r.EndSession(request)
	if _, err := r.Again(id); err == nil || refused(t, err).Reason != access.Revoked {
		t.Errorf("after the end: %v", err)
	}
}

// What the claims of a token mean follows the configuration of now, for whoever was
// identified before, and for sessions.
func TestAgainWithOtherClaims(t *testing.T) {
	r := newRig(t, nil)
	request := withBearer(r.provider.Token(t, map[string]any{"roles": []string{"admins"}, "email": "ann@example.com"}))
	id, err := r.Identify(request)
	if err != nil {
		t.Fatal(err)
	}
	page := newRequest("/v1/events", "Sec-Fetch-Site", "same-origin")
	page.AddCookie(r.session(t, request))
	for name, c := range map[string]struct {
		change func(*jwt.Issuer)
		want   []string // the name and the groups; nil: it is refused
	}{
		"nothing":                                {func(*jwt.Issuer) {}, []string{"ann", "staff"}},
		"other groups":                           {func(i *jwt.Issuer) { i.Groups = "roles" }, []string{"ann", "admins"}},
		"no groups":                              {func(i *jwt.Issuer) { i.Groups = "" }, []string{"ann"}},
		"another name":                           {func(i *jwt.Issuer) { i.Name = "email" }, []string{"ann@example.com", "staff"}},
		"no such name":                           {func(i *jwt.Issuer) { i.Name = "login" }, nil},
		"another audience":                       {func(i *jwt.Issuer) { i.Audience = "other" }, nil},
		"another issuer":                         {func(i *jwt.Issuer) { i.URL += "/2" }, nil},
		"more algorithms":                        {func(i *jwt.Issuer) { i.Algorithms = append(i.Algorithms, "RS256") }, []string{"ann", "staff"}},
		"its algorithm is not accepted any more": {func(i *jwt.Issuer) { i.Algorithms = []string{"RS256"} }, nil},
		"its key is not in the file any more":    {func(i *jwt.Issuer) { i.Keys = accesstest.NewProvider(t).Issuer().Keys }, nil},
		"no file, the provider is asked":         {func(i *jwt.Issuer) { i.Keys = nil }, []string{"ann", "staff"}},
	} {
		issuer := r.provider.Issuer()
		c.change(&issuer)
		next := newAuthenticator(t, Config{Keys: r.cfg.Keys, Issuers: []jwt.Issuer{issuer}, Previous: r.Authenticator})
		again, err := next.Again(id)
		session, sessionErr := next.Identify(page)
		if c.want == nil {
			if refused(t, err).Status != 401 || refused(t, sessionErr).Status != 401 {
				t.Errorf("%s: %v and %v, want refusals", name, err, sessionErr)
			}
			continue
		}
		for _, now := range []*Identity{again, session} {
			if now == nil || !slices.Equal(append([]string{now.Name}, now.Groups...), c.want) {
				t.Errorf("%s: %+v, %v, %v, want %q", name, now, err, sessionErr, c.want)
			}
		}
		if same := again != nil && again == id; same != (name == "nothing" || name == "more algorithms" || strings.HasPrefix(name, "no file")) {
			t.Errorf("%s: the identity is the same: %t", name, same)
		}
	}
}

// Sessions and tickets count as long as the key does that has sealed them, also for whoever was
// identified by one. Nothing is sealed in a token.
func TestAgainWithOtherKeys(t *testing.T) {
	r := newRig(t, nil)
	token := withBearer(r.provider.Token(t, nil))
	for name, c := range map[string]struct {
		request *http.Request
		sealed  bool
	}{
		"a session": {withCookie(r.session(t, token)), true},
		"a ticket":  {newRequest("/?ticket=" + r.ticket(t, token, "a")), true},
		"a-token":   {token, false},
	} {
		id, err := r.Identify(c.request)
		if err != nil {
			t.Fatal(err)
		}
		for with, keys := range map[string][]access.SealKey{"the same key": {testKey}, "a newer key too": {{7}, testKey}, "another key": {{7}}} {
			cfg := r.cfg
			cfg.Keys, cfg.Previous = keys, r.Authenticator
			again, err := newAuthenticator(t, cfg).Again(id)
			if accepted := !c.sealed || with != "another key"; (err == nil) != accepted || accepted && again != id {
				t.Errorf("%s, with %s: %+v, %v", name, with, again, err)
			}
		}
	}
}

// A certificate counts as long as its authority does, also over a connection that began
// before, and for whoever was identified by it.
func TestAgainWithOtherAuthorities(t *testing.T) {
	one, other := authority(t), authority(t)
	pool := func(all ...*x509.Certificate) *x509.CertPool {
		p := x509.NewCertPool()
		for _, c := range all {
			p.AddCert(c)
		}
		return p
	}
	request := withCertificate(newRequest("/"), certificate(t, "spiffe://a/b"))
	request.TLS.VerifiedChains[0][1] = one
	first := newAuthenticator(t, Config{Certificates: SubjectURI, ClientCAs: []*x509.CertPool{pool(other), pool(one)}})
	id, err := first.Identify(request)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config Config
		want   string // the name; empty: it is refused
	}{
		"the same":         {Config{Certificates: SubjectURI, ClientCAs: []*x509.CertPool{pool(one)}}, "spiffe://a/b"},
		"another one":      {Config{Certificates: SubjectURI, ClientCAs: []*x509.CertPool{pool(other)}}, ""},
		"another kind":     {Config{Certificates: SubjectDNS, ClientCAs: []*x509.CertPool{pool(one, other)}}, "a.example.com"},
		"no certificates":  {Config{}, ""},
		"authority unsaid": {Config{Certificates: SubjectURI}, "spiffe://a/b"},
	} {
		c.config.Previous = first
		next := newAuthenticator(t, c.config)
		now, err := next.Again(id)
		if got := nameOf(now); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: again it is %q, %v, want %q", name, got, err, c.want)
		}
		now, err = next.Identify(request)
		if got := nameOf(now); got != c.want || (err == nil) != (c.want != "") && c.config.Certificates != "" {
			t.Errorf("%s: the next request is of %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func nameOf(id *Identity) string {
	if id == nil {
		return ""
	}
	return id.Name
}

// authority returns the certificate of an authority of its own.
func authority(t *testing.T) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c
}

// lineOf returns the line of a token in the file, with an end unless that is zero.
func lineOf(name, text string, end time.Time) string {
	line := name + " sha256:" + hexHash(text)
	if !end.IsZero() {
		line += " expires=" + end.Format(time.RFC3339)
	}
	return line
}

// TestRotation: two tokens of a name are accepted while clients change over, and the old one ends
// by itself, with its sessions and tickets.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(time.Hour)
		a := newAuthenticator(t, Config{Keys: []access.SealKey{testKey}, Tokens: tokens(t, lineOf("ci", "the-old-token", end), lineOf("ci", "the-new-token", time.Time{}))})
		before, err := a.Identify(withBearer("the-old-token"))
		if err != nil {
			t.Fatal(err)
		}
		if now, err := a.Identify(withBearer("the-new-token")); err != nil || !now.Is(before.Principal) || !before.Expires.Equal(end) || !now.Expires.IsZero() {
			t.Fatalf("%+v and %+v, %v", before, now, err)
		}
		session := newRequest("/v1/events", "Sec-Fetch-Site", "same-origin")
		session.AddCookie(rig{Authenticator: a}.session(t, withBearer("the-old-token")))
		if id, err := a.Identify(session); err != nil || id.Expires.After(end) {
			t.Errorf("a session: %+v, %v, want it to end with its token", id, err)
		}
		time.Sleep(time.Hour)
		for name, r := range map[string]*http.Request{"the token": withBearer("the-old-token"), "its session": session} {
			if _, err := a.Identify(r); err == nil {
				t.Errorf("%s is accepted after its end", name)
			}
		}
		if _, err := a.Identify(withBearer("the-old-token")); refused(t, err).Reason != access.TokenExpired {
			t.Errorf("the old token: %v, want that it has expired", err)
		}
		if _, err := a.Identify(withBearer("the-new-token")); err != nil {
			t.Errorf("the new token: %v", err)
		}
	})
}

// TestAgainWithAnotherEnd: a token may get an end while streams are open, or lose it. A session
// does not outlive the end that it was made with.
func TestAgainWithAnotherEnd(t *testing.T) {
	soon, late := time.Now().Add(time.Hour).Truncate(time.Second), time.Now().Add(100*time.Hour).Truncate(time.Second)
	with := func(end time.Time) *Authenticator {
		return newAuthenticator(t, Config{Keys: []access.SealKey{testKey}, Tokens: tokens(t, lineOf("ci", "a-token", end))})
	}
	a := with(time.Time{})
	plain, err := a.Identify(withBearer("a-token"))
	if err != nil {
		t.Fatal(err)
	}
	request := newRequest("/v1/events", "Sec-Fetch-Site", "same-origin")
	request.AddCookie(rig{Authenticator: a}.session(t, withBearer("a-token")))
	session, err := a.Identify(request)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		id        *Identity
		end, want time.Time
	}{
		{plain, soon, soon}, {plain, late, late}, {plain, time.Time{}, time.Time{}},
		{session, soon, soon}, {session, late, session.Expires}, {session, time.Time{}, session.Expires},
	} {
		if now, err := with(test.end).Again(test.id); err != nil || !now.Expires.Equal(test.want) {
			t.Errorf("an end of %v instead of %v: %v, %v, want %v", test.end, test.id.Expires, now, err, test.want)
		}
	}
}
