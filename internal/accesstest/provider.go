// Package accesstest has what the tests of access share: an OpenID provider, in memory.
package accesstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/watchtide/watchtide/internal/jwt"
)

// URL is the issuer of the tokens of a Provider, and Audience their audience.
const (
	URL      = "https://idp.example.com"
	Audience = "watchtide"
)

// Provider signs tokens with a key that never changes, and signs users in.
type Provider struct {
	// Static after construction.
	signer jose.Signer
	keys   []byte // the key set

	mu sync.Mutex
	// Guarded by mu.
	grants map[string]grant // by code
	asked  map[string]int   // how often, by path
	how    func(*http.Request) *http.Response
}

// NewProvider returns a provider with a new key.
func NewProvider(t testing.TB) *Provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &Provider{signer: signer, keys: keys, grants: map[string]grant{}, asked: map[string]int{}}
}

// Issuer returns the gateway's configuration of the provider.
func (p *Provider) Issuer() jwt.Issuer {
	return jwt.Issuer{URL: URL, Audience: Audience, Algorithms: []string{string(jose.ES256)}, Groups: "groups", Keys: p.keys}
}

// Token returns a token that is valid for an hour: for ann, of the group staff, with claims
// changed as given.
func (p *Provider) Token(t testing.TB, changes map[string]any) string {
	t.Helper()
	text, err := p.sign(changes)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *Provider) sign(changes map[string]any) (string, error) {
	claims := map[string]any{"iss": URL, "aud": Audience, "sub": "ann", "groups": []string{"staff"}, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	data, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := p.signer.Sign(data)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
