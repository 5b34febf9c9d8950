package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/watchtide/watchtide/access"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testIssuer   = "https://idp.example.com"
	testAudience = "watchtide"
)

// signingKey is a key of the provider.
type signingKey struct {
	id      string
	private *ecdsa.PrivateKey
}

func newKey(t testing.TB, id string) signingKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{id, k}
}

func (k signingKey) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: "ES256", Use: "sig"}
}

// claimsOf returns valid claims, with changes; a nil removes a claim.
func claimsOf(changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": testIssuer, "aud": testAudience, "sub": "ann",
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nbf": now.Unix(),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// token returns a signed token of the claims.
func (k signingKey) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	return k.sign(t, map[string]any{"alg": "ES256", "kid": k.id}, marshal(t, claims))
}

// sign signs any header and any payload with ES256, whatever the header says.
func (k signingKey) sign(t testing.TB, header map[string]any, payload []byte) string {
	t.Helper()
	input := encode(marshal(t, header)) + "." + encode(payload)
	hash := crypto.SHA256.New()
	hash.Write([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, hash.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 64)
	r.FillBytes(raw[:32])
	s.FillBytes(raw[32:])
	return input + "." + encode(raw)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func keySetOf(t testing.TB, keys ...signingKey) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, k.public())
	}
	return marshal(t, set)
}

// fixed returns a verifier with keys that never change.
func fixed(t testing.TB, change func(*Issuer), keys ...signingKey) *Verifier {
	t.Helper()
	i := Issuer{URL: testIssuer, Audience: testAudience, Algorithms: []string{"ES256", "RS256"}, Keys: keySetOf(t, keys...)}
	if change != nil {
		change(&i)
	}
	v, err := New([]Issuer{i}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// reasonOf returns the reason of a refusal; empty: none.
func reasonOf(t testing.TB, err error) access.Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	var r *access.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("%T: %v", err, err)
	}
	return r.Reason
}

// idp is a provider in memory.
type idp struct {
	t testing.TB

	mu sync.Mutex
	// Guarded by mu.
	keys     []byte
	down     bool
	requests []time.Time // of the keys
	answer   func(r *http.Request) *http.Response
	hold     chan struct{} // requests wait until it is closed; nil: they do not
}

func (p *idp) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *idp) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// RoundTrip answers one request.
func (p *idp) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	hold := p.hold
	keys, down, answer := p.keys, p.down, p.answer
	if strings.HasSuffix(r.URL.Path, "/keys") || down {
		p.requests = append(p.requests, time.Now())
	}
	p.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if down {
		return nil, errors.New("connection refused")
	}
	if answer != nil {
		if a := answer(r); a != nil {
			a.Request = r
			return a, nil
		}
	}
	if strings.HasSuffix(r.URL.Path, "/keys") {
		return answered(http.StatusOK, string(keys)), nil
	}
	return answered(http.StatusOK, `{"issuer":"`+testIssuer+`","jwks_uri":"`+testIssuer+`/keys"}`), nil
}

func answered(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// remote returns a verifier of the provider, which runs until the test ends.
func (p *idp) remote(t *testing.T) *Verifier {
	t.Helper()
	v, err := New([]Issuer{{URL: testIssuer, Audience: testAudience, Algorithms: []string{"ES256"}, Transport: p}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
