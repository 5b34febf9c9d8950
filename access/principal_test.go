package access

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestKeyIsOfOnePrincipal: no choice of names makes two principals one.
func TestKeyIsOfOnePrincipal(t *testing.T) {
	text := rapid.StringMatching(`[a/\x00\x01\x02]{0,4}`)
	any := rapid.Custom(func(t *rapid.T) *Principal {
		return &Principal{Mechanism: text.Draw(t, "mechanism"), Issuer: text.Draw(t, "issuer"), Name: text.Draw(t, "name")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := any.Draw(t, "a"), any.Draw(t, "b")
		if (a.Key() == b.Key()) != a.Is(b) {
			t.Fatalf("%+v and %+v have the keys %q and %q", a, b, a.Key(), b.Key())
		}
	})
}

// TestClientID: what a token says, if it is a text.
func TestClientID(t *testing.T) {
	for want, claims := range map[string]map[string]any{
		"shop":  {"azp": "shop", "client_id": "other"},
		"other": {"azp": "", "client_id": "other"},
		"third": {"azp": []any{"x"}, "client_id": "third"},
		"":      {"client_id": int64(7)},
	} {
		if got := (&Principal{Claims: claims}).ClientID(); got != want {
			t.Errorf("%v: %q, want %q", claims, got, want)
		}
	}
	if got := Nobody().ClientID(); got != "" {
		t.Errorf("nobody: %q", got)
	}
}

func TestKeyIgnoresWhatMayChange(t *testing.T) {
	a := &Principal{Mechanism: JWT, Issuer: "i", Name: "n"}
	b := &Principal{Mechanism: JWT, Issuer: "i", Name: "n", Groups: []string{"g"}, ID: "s", Claims: map[string]any{"c": true}}
	if a.Key() != b.Key() || !a.Is(b) {
		t.Errorf("keys %q and %q", a.Key(), b.Key())
	}
}

func TestRevocationKeys(t *testing.T) {
	for _, c := range []struct {
		of   Principal
		want []string
	}{
		{*Nobody(), nil},
		{Principal{Mechanism: Token, Name: "ci", ID: "s1"}, []string{"token/ci", "session/s1"}},
		{Principal{Mechanism: JWT, Issuer: "https://idp/a", Name: "ann"}, []string{"subject/https://idp/a/ann"}},
		{Principal{Mechanism: JWT, Issuer: "https://idp", Name: "ann@example.com", Claims: map[string]any{"sub": "7"}, ID: "x"}, []string{"subject/https://idp/7", "session/x"}},
		{Principal{Mechanism: JWT, Issuer: "https://idp", Name: "a/b%"}, []string{"subject/https://idp/a%2Fb%25"}},
		{Principal{Mechanism: Certificate, Issuer: "CN=ca", Name: "spiffe://x/y"}, []string{"subject/CN=ca/spiffe:%2F%2Fx%2Fy"}},
	} {
		if got := c.of.RevocationKeys(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
		for _, key := range c.want {
			issuer, ok := ParseRevocation(key)
			if named := strings.HasPrefix(key, "subject/"); !ok || named && issuer != c.of.Issuer || !named && issuer != "" {
				t.Errorf("%s is of issuer %q, %t", key, issuer, ok)
			}
		}
	}
}
