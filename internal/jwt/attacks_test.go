package jwt

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/watchtide/watchtide/access"
)

func TestValidToken(t *testing.T) {
	k := newKey(t, "k1")
	v := fixed(t, func(i *Issuer) { i.Groups = "realm_access.roles" }, k)
	token := k.token(t, claimsOf(map[string]any{"realm_access": map[string]any{"roles": []string{"staff", "b"}}, "tenant": 9007199254740993}))
	for range 2 { // the second time from the cache
		p, err := v.Verify(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		if p.Mechanism != "jwt" || p.Issuer != testIssuer || p.Name != "ann" || fmt.Sprint(p.Groups) != "[staff b]" || p.Claims["tenant"] != int64(9007199254740993) {
			t.Errorf("got %+v", p)
		}
		if in := time.Until(p.Expires); in > time.Hour || in < 59*time.Minute {
			t.Errorf("expires in %v", in)
		}
	}
	if v.Ready() != nil {
		t.Error(v.Ready())
	}
}

// TestClaims has a valid token whose claims are changed one at a time.
func TestClaims(t *testing.T) {
	k := newKey(t, "k1")
	now := time.Now().Unix()
	for _, c := range []struct {
		name   string
		change string // members of the payload, as JSON; null removes one
		want   access.Reason
	}{
		{"nothing", `{}`, ""},
		{"audiences", `{"aud": ["other", "watchtide"]}`, ""},
		{"another audience", `{"aud": "other"}`, access.InvalidToken},
		{"a part of the audience", `{"aud": "watchtide2"}`, access.InvalidToken},
		{"other audiences", `{"aud": ["other"]}`, access.InvalidToken},
		{"no audience", `{"aud": null}`, access.InvalidToken},
		{"an empty audience", `{"aud": []}`, access.InvalidToken},
		{"audiences that are no texts", `{"aud": [{"a": "watchtide"}]}`, access.InvalidToken},
		{"another spelling of the audience", `{"aud": null, "AUD": "watchtide"}`, access.InvalidToken},
		{"another issuer", `{"iss": "https://other.example.com"}`, access.UnknownIssuer},
		{"a slash after the issuer", `{"iss": "https://idp.example.com/"}`, access.UnknownIssuer},
		{"another case of the issuer", `{"iss": "https://IDP.example.com"}`, access.UnknownIssuer},
		{"another spelling of the issuer before it", `{"ISS": "https://other.example.com"}`, ""},
		{"no issuer", `{"iss": null}`, access.UnknownIssuer},
		{"an issuer that is no text", `{"iss": ["https://idp.example.com"]}`, access.UnknownIssuer},
		{"no end", `{"exp": null}`, access.InvalidToken},
		{"another spelling of the end", `{"exp": null, "Exp": 99999999999}`, access.InvalidToken},
		{"an end with a fraction", fmt.Sprintf(`{"exp": %d.75}`, now+100), ""},
		{"an end with an exponent", `{"exp": 2.5e11}`, ""},
		{"an end that overflows", `{"exp": 1e400}`, access.InvalidToken},
		{"an end beyond the calendar", `{"exp": 1e30}`, access.InvalidToken},
		{"an end beyond 64 bits", `{"exp": 18446744073709551617}`, access.InvalidToken},
		{"an end at the edge of 64 bits", `{"exp": 9223372036854775807}`, access.InvalidToken},
		{"a negative end", `{"exp": -1}`, access.InvalidToken},
		{"an end that is text", `{"exp": "99999999999"}`, access.InvalidToken},
		{"an end that is no number", `{"exp": true}`, access.InvalidToken},
		{"an end that has passed", fmt.Sprintf(`{"exp": %d}`, now-1), access.TokenExpired},
		{"an end that has passed long ago", fmt.Sprintf(`{"exp": %d}`, now-7200), access.TokenExpired},
		{"a beginning soon", fmt.Sprintf(`{"nbf": %d}`, now+20), ""},
		{"a beginning later", fmt.Sprintf(`{"nbf": %d}`, now+60), access.TokenNotYetValid},
		{"a beginning that is text", `{"nbf": "0"}`, access.InvalidToken},
		{"issued soon", fmt.Sprintf(`{"iat": %d}`, now+20), ""},
		{"issued later", fmt.Sprintf(`{"iat": %d}`, now+60), access.TokenNotYetValid},
		{"no other times", `{"nbf": null, "iat": null}`, ""},
		{"no name", `{"sub": null}`, access.InvalidToken},
		{"an empty name", `{"sub": ""}`, access.InvalidToken},
		{"a name that is a number", `{"sub": 7}`, access.InvalidToken},
		{"a name with half of a character", `{"sub": "a\ud800"}`, access.InvalidToken},
		{"any other claims", `{"a": [[[1, {"b": null}]]], "_claim_names": {}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims := map[string]json.RawMessage{}
			for _, from := range []string{string(marshal(t, claimsOf(nil))), c.change} {
				if err := json.Unmarshal([]byte(from), &claims); err != nil {
					t.Fatal(err)
				}
			}
			maps.DeleteFunc(claims, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
			token := k.sign(t, map[string]any{"alg": "ES256", "kid": "k1"}, marshal(t, claims))
			_, err := fixed(t, nil, k).Verify(t.Context(), token)
			if got := reasonOf(t, err); got != c.want {
				t.Errorf("%q: %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestPayloads are payloads that a map cannot have.
func TestPayloads(t *testing.T) {
	k := newKey(t, "k1")
	valid := string(marshal(t, claimsOf(nil)))
	for name, payload := range map[string]string{
		"a member twice":                 `{"sub":"root",` + valid[1:],
		"a member twice, once escaped":   `{"\u0073ub":"root",` + valid[1:],
		"a nested member twice":          `{"a":{"b":1,"b":2},` + valid[1:],
		"something after the end":        valid + "{}",
		"a list":                         "[" + valid + "]",
		"nothing":                        "",
		"null":                           "null",
		"not UTF-8":                      strings.Replace(valid, "ann", "ann\xff", 1),
		"a token instead of claims":      k.token(t, claimsOf(nil)),
		"very deep":                      strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000),
		"a byte order mark":              "\ufeff" + valid,
		"a comment":                      valid[:len(valid)-1] + "/**/}",
		"NaN":                            `{"exp":NaN,` + valid[1:],
		"a sequence of other characters": "\x00\x01\x02",
	} {
		token := k.sign(t, map[string]any{"alg": "ES256", "kid": "k1"}, []byte(payload))
		if p, err := fixed(t, nil, k).Verify(t.Context(), token); err == nil || reasonOf(t, err).Status() != 401 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// TestHeaders are the attacks on tokens that have names.
func TestHeaders(t *testing.T) {
	k, foreign := newKey(t, "k1"), newKey(t, "k1")
	v := fixed(t, nil, k)
	payload := marshal(t, claimsOf(nil))
	embedded := foreign.public()
	for name, h := range map[string]map[string]any{
		"valid":                          {"alg": "ES256", "kid": "k1", "typ": "JWT"},
		"valid access token":             {"alg": "ES256", "kid": "k1", "typ": "application/AT+jwt"},
		"valid without a key ID":         {"alg": "ES256"},
		"none":                           {"alg": "none", "kid": "k1"},
		"None":                           {"alg": "None", "kid": "k1"},
		"no algorithm":                   {"kid": "k1"},
		"lower case":                     {"alg": "es256", "kid": "k1"},
		"an algorithm for another key":   {"alg": "RS256", "kid": "k1"},
		"an algorithm that is off":       {"alg": "ES384", "kid": "k1"},
		"an algorithm that is no text":   {"alg": []string{"ES256"}, "kid": "k1"},
		"a logout token":                 {"alg": "ES256", "kid": "k1", "typ": "logout+jwt"},
		"a security event":               {"alg": "ES256", "kid": "k1", "typ": "secevent+jwt"},
		"a proof of possession":          {"alg": "ES256", "kid": "k1", "typ": "dpop+jwt"},
		"nested":                         {"alg": "ES256", "kid": "k1", "cty": "JWT"},
		"critical":                       {"alg": "ES256", "kid": "k1", "crit": []string{"exp"}, "exp": 1},
		"nothing critical":               {"alg": "ES256", "kid": "k1", "crit": []string{}},
		"unencoded":                      {"alg": "ES256", "kid": "k1", "crit": []string{"b64"}, "b64": false},
		"unencoded but not critical":     {"alg": "ES256", "kid": "k1", "b64": false},
		"kid: a path":                    {"alg": "ES256", "kid": "../../../../dev/null"},
		"kid: a query":                   {"alg": "ES256", "kid": "x' UNION SELECT 'k1"},
		"kid: a command":                 {"alg": "ES256", "kid": "k1|sleep 10"},
		"kid: a NUL":                     {"alg": "ES256", "kid": "k1\x00"},
		"kid: a number":                  {"alg": "ES256", "kid": 1},
		"kid: a list":                    {"alg": "ES256", "kid": []string{"k1"}},
		"kid: long":                      {"alg": "ES256", "kid": strings.Repeat("k", 600)},
		"encrypted":                      {"alg": "RSA-OAEP", "enc": "A256GCM", "kid": "k1"},
		"valid, and jku":                 {"alg": "ES256", "kid": "k1", "jku": "https://evil.example.com/keys"},
		"valid, and x5u":                 {"alg": "ES256", "kid": "k1", "x5u": "https://evil.example.com/cert"},
		"valid, and a key":               {"alg": "ES256", "kid": "k1", "jwk": embedded},
		"valid, and an unknown member":   {"alg": "ES256", "kid": "k1", "other": map[string]any{"a": 1}},
		"valid, and a certificate's sum": {"alg": "ES256", "kid": "k1", "x5t": "AAAAAAAAAAAAAAAAAAAAAAAAAAA"},
	} {
		valid := strings.HasPrefix(name, "valid")
		if p, err := v.Verify(t.Context(), k.sign(t, h, payload)); (err == nil) != valid || err != nil && reasonOf(t, err).Status() != 401 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		// Signed by somebody else, none is valid.
		if p, err := v.Verify(t.Context(), foreign.sign(t, h, payload)); err == nil {
			t.Errorf("%s, signed by a foreigner: %+v", name, p)
		}
	}
}

// TestSignatureIsOfThePublicKey: whoever knows the public key can make an HMAC with it.
func TestSignatureIsOfThePublicKey(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := jose.JSONWebKey{Key: private.Public(), KeyID: "k1", Use: "sig"}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	set := marshal(t, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}})
	v := fixed(t, func(i *Issuer) { i.Keys = set })
	for _, secret := range [][]byte{
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), der, marshal(t, public), private.N.Bytes(), nil,
	} {
		input := encode([]byte(`{"alg":"HS256","kid":"k1","typ":"JWT"}`)) + "." + encode(marshal(t, claimsOf(nil)))
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(input))
		if p, err := v.Verify(t.Context(), input+"."+encode(mac.Sum(nil))); err == nil {
			t.Errorf("%+v", p)
		}
	}
	for _, algorithm := range []string{"HS256", "none", "", "es256"} {
		if _, err := New([]Issuer{{URL: testIssuer, Audience: "a", Algorithms: []string{algorithm}, Keys: set}}, nil, nil); err == nil {
			t.Errorf("algorithm %q can be allowed", algorithm)
		}
	}
}

// TestForms are other ways to write a valid token.
func TestForms(t *testing.T) {
	k := newKey(t, "k1")
	v := fixed(t, nil, k)
	token := k.token(t, claimsOf(nil))
	parts := strings.Split(token, ".")
	flattened := fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q}`, parts[1], parts[0], parts[2])
	general := fmt.Sprintf(`{"payload":%q,"signatures":[{"protected":%q,"signature":%q},{"protected":%q,"signature":""}]}`, parts[1], parts[0], parts[2], parts[0])
	last := parts[2][len(parts[2])-1]
	other := byte('B')
	if last == 'A' || last == 'Q' || last == 'g' || last == 'w' {
		other = last + 1 // the same bytes, with other bits after them
	}
	for name, text := range map[string]string{
		"flattened JSON":               flattened,
		"JSON with two signatures":     general,
		"whitespace around it":         " " + token,
		"a line break after it":        token + "\n",
		"whitespace in it":             parts[0] + ". " + parts[1] + "." + parts[2],
		"padding":                      token + "==",
		"another alphabet":             parts[0] + "." + parts[1] + "." + strings.Repeat("+/", 43),
		"no signature":                 parts[0] + "." + parts[1] + ".",
		"no payload":                   parts[0] + ".." + parts[2],
		"two parts":                    parts[0] + "." + parts[1],
		"four parts":                   token + ".AAAA",
		"five parts":                   token + ".AAAA.AAAA",
		"bits beyond the signature":    token[:len(token)-1] + string(other),
		"a signature of zeros":         parts[0] + "." + parts[1] + "." + encode(make([]byte, 64)),
		"a signature that is short":    parts[0] + "." + parts[1] + "." + encode([]byte{1}),
		"a signature that is long":     parts[0] + "." + parts[1] + "." + parts[2] + "AAAA",
		"huge":                         parts[0] + "." + strings.Repeat("A", maxToken) + "." + parts[2],
		"another token's payload":      parts[0] + "." + encode(marshal(t, claimsOf(map[string]any{"sub": "root"}))) + "." + parts[2],
		"nothing":                      "",
		"dots":                         "..",
		"a header with a member twice": encode([]byte(`{"alg":"none","alg":"ES256","kid":"k1"}`)) + "." + parts[1] + "." + parts[2],
		"characters beyond ASCII":      token + "é",
	} {
		if p, err := v.Verify(t.Context(), text); err == nil || reasonOf(t, err) != access.InvalidToken {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("the token itself: %v", err)
	}
}

// TestErrorsNeverShowTheToken, nor anything that somebody wrote into it.
func TestErrorsNeverShowTheToken(t *testing.T) {
	k := newKey(t, "k1")
	v := fixed(t, nil, k)
	const marker = "hunter2"
	for _, change := range []map[string]any{{"iss": marker}, {"aud": marker}, {"exp": marker}, {"sub": []string{marker}}, {"nbf": marker}} {
		if _, err := v.Verify(t.Context(), k.token(t, claimsOf(change))); err == nil || strings.Contains(err.Error(), marker) {
			t.Errorf("%v: %v", change, err)
		}
	}
	for _, header := range []map[string]any{{"alg": marker}, {"alg": "ES256", "kid": marker}, {"alg": "ES256", "typ": marker}, {"alg": "ES256", "crit": []string{marker}}} {
		if _, err := v.Verify(t.Context(), k.sign(t, header, marshal(t, claimsOf(nil)))); err == nil || strings.Contains(err.Error(), marker) {
			t.Errorf("%v: %v", header, err)
		}
	}
}

// TestExpiredTokenIsToldApart only if it is genuine, and expired within the hour.
func TestExpiredTokenIsToldApart(t *testing.T) {
	k, foreign := newKey(t, "k1"), newKey(t, "k1")
	v := fixed(t, nil, k)
	for ago, want := range map[time.Duration]bool{time.Second: true, 59 * time.Minute: true, 61 * time.Minute: false} {
		claims := claimsOf(map[string]any{"exp": time.Now().Add(-ago).Unix()})
		_, err := v.Verify(t.Context(), k.token(t, claims))
		if r, ok := err.(*access.Refusal); !ok || r.Reason != access.TokenExpired || (r.Expired != nil) != want || want && r.Expired.Name != "ann" {
			t.Errorf("expired %v ago: %+v", ago, err)
		}
		_, err = v.Verify(t.Context(), foreign.token(t, claims))
		if r, ok := err.(*access.Refusal); !ok || r.Expired != nil {
			t.Errorf("forged, expired %v ago: %+v", ago, err)
		}
	}
}

func TestPathsOfClaims(t *testing.T) {
	k := newKey(t, "k1")
	claims := claimsOf(map[string]any{
		"email": "ann@example.com", "realm_access": map[string]any{"roles": []string{"a"}, "n": 1}, "scope": "read write", "team": "Domain Admins",
		"https://example.com/groups": []string{"b"}, "a.b": "dotted", "a": map[string]any{"b": "nested"}, "mixed": []any{"a", 1}, "wide": "a\ufffd", "none": []any{},
	})
	for path, want := range map[string]string{
		"": "[]", "realm_access.roles": "[a]", "scope": "[read write]", "team": "[Domain Admins]", "https://example.com/groups": "[b]",
		"a.b": "[dotted]", "missing": "[]", "realm_access.missing.more": "[]", "none": "[]",
		"realm_access": "invalid", "realm_access.n": "invalid", "mixed": "invalid", "wide": "invalid",
	} {
		v := fixed(t, func(i *Issuer) { i.Name, i.Groups = "email", path }, k)
		p, err := v.Verify(t.Context(), k.token(t, claims))
		got := "invalid"
		if err == nil {
			got = fmt.Sprint(p.Groups)
		}
		if got != want || err == nil && p.Name != "ann@example.com" {
			t.Errorf("groups at %q: %s (%v), want %s", path, got, err, want)
		}
	}
}

func TestIssuersThatCannotBe(t *testing.T) {
	keys := keySetOf(t, newKey(t, "k"))
	valid := Issuer{URL: testIssuer, Audience: "a", Algorithms: []string{"ES256"}, Keys: keys}
	for name, change := range map[string]func(*Issuer){
		"no URL":        func(i *Issuer) { i.URL = "" },
		"plain text":    func(i *Issuer) { i.URL = "http://idp.example.com" },
		"a query":       func(i *Issuer) { i.URL += "?a" },
		"a user":        func(i *Issuer) { i.URL = "https://a:b@idp.example.com" },
		"no audience":   func(i *Issuer) { i.Audience = "" },
		"no algorithms": func(i *Issuer) { i.Algorithms = nil },
		"no keys":       func(i *Issuer) { i.Keys = []byte(`{"keys":[]}`) },
		"not a key set": func(i *Issuer) { i.Keys = []byte(`-----BEGIN`) },
	} {
		i := valid
		change(&i)
		if _, err := New([]Issuer{i}, nil, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New([]Issuer{valid, valid}, nil, nil); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the same twice: %v", err)
	}
	for _, local := range []string{"http://127.0.0.1:9/realm", "http://localhost:9", "http://[::1]"} {
		if err := CheckURL(local); err != nil {
			t.Errorf("%s: %v", local, err)
		}
	}
}

// FuzzVerify looks for texts that make the verifier panic, are accepted unsigned, or are
// quoted in an error.
func FuzzVerify(f *testing.F) {
	k := newKey(f, "k1")
	v := fixed(f, nil, k)
	f.Add(`{"alg":"ES256","kid":"k1"}`, `{"iss":"https://idp.example.com","aud":"watchtide","exp":99999999999,"sub":"a"}`, make([]byte, 64))
	f.Add(`{"alg":"none"}`, `{"exp":1e400}`, []byte{})
	f.Fuzz(func(t *testing.T, header, payload string, signature []byte) {
		token := encode([]byte(header)) + "." + encode([]byte(payload)) + "." + encode(signature)
		p, err := v.Verify(t.Context(), token)
		if err == nil {
			t.Fatalf("%+v", p)
		}
		if reasonOf(t, err).Status() != 401 {
			t.Errorf("%v", err)
		}
	})
}

// FuzzClaims looks for claims, genuinely signed, that go-oidc and this package disagree
// about, or that name nobody.
func FuzzClaims(f *testing.F) {
	k := newKey(f, "k1")
	f.Add(`{"iss":"https://idp.example.com","aud":"watchtide","exp":99999999999,"sub":"a","groups":["a"]}`)
	f.Add(`{"iss":"https://idp.example.com","aud":["watchtide"],"exp":2.5e11,"nbf":0,"iat":0.5,"sub":"a","groups":"b"}`)
	f.Fuzz(func(t *testing.T, payload string) {
		v := fixed(t, func(i *Issuer) { i.Groups = "groups" }, k)
		p, err := v.Verify(t.Context(), k.sign(t, map[string]any{"alg": "ES256", "kid": "k1"}, []byte(payload)))
		if err != nil {
			reasonOf(t, err)
			return
		}
		if p.Name == "" || p.Issuer != testIssuer || !p.Expires.After(time.Now()) || p.Expires.Year() > 9999 {
			t.Errorf("%+v", p)
		}
	})
}
