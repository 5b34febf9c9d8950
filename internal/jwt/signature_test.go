package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	jose "github.com/go-jose/go-jose/v4"
)

// TestEveryAlgorithm verifies what go-jose has signed, and nothing that is changed, cut
// or of another key or algorithm.
func TestEveryAlgorithm(t *testing.T) {
	private := map[string]crypto.Signer{}
	for name, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		k, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		private[name] = k
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private["EdDSA"] = edKey
	for _, name := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
		private[name] = rsaKey
	}
	var set jose.JSONWebKeySet
	for _, name := range []string{"ES256", "ES384", "ES512", "EdDSA", "RS256"} {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: private[name].Public(), KeyID: "k"})
	}
	v := fixed(t, func(i *Issuer) { i.Algorithms, i.Keys = Algorithms, marshal(t, jose.JSONWebKeySet{Keys: set.Keys[:4]}) })
	withRSA := fixed(t, func(i *Issuer) { i.Algorithms, i.Keys = Algorithms, marshal(t, jose.JSONWebKeySet{Keys: set.Keys[4:]}) })
	if len(private) != len(Algorithms) {
		t.Fatalf("%d of %d algorithms", len(private), len(Algorithms))
	}
	for _, name := range Algorithms {
		v := v
		if private[name] == crypto.Signer(rsaKey) {
			v = withRSA
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(name), Key: jose.JSONWebKey{Key: private[name], KeyID: "k"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign(marshal(t, claimsOf(nil)))
		if err != nil {
			t.Fatal(err)
		}
		token, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		u, err := parse(token)
		if err != nil {
			t.Fatal(err)
		}
		for i := range u.signature {
			u.signature[i] ^= 1
			if _, err := v.Verify(t.Context(), u.signed+"."+encode(u.signature)); err == nil {
				t.Errorf("%s: byte %d of the signature does not matter", name, i)
			}
			u.signature[i] ^= 1
		}
		for _, other := range [][]byte{u.signature[1:], u.signature[:len(u.signature)-1], append([]byte{0}, u.signature...), append(u.signature[:len(u.signature):len(u.signature)], 0), make([]byte, len(u.signature))} {
			if _, err := v.Verify(t.Context(), u.signed+"."+encode(other)); err == nil {
				t.Errorf("%s: another signature is valid", name)
			}
		}
		for _, other := range Algorithms {
			header := encode([]byte(`{"alg":"` + other + `","kid":"k"}`))
			forged := header + token[strings.IndexByte(token, '.'):]
			if _, err := v.Verify(t.Context(), forged); err == nil && forged != token {
				t.Errorf("%s is valid as %s", name, other)
			}
		}
	}
}
