package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/watchtide/watchtide/bench/internal/load"
)

const (
	issuer   = "https://idp.example.com"
	audience = "bench"
)

// rules are sections of the configuration of a gateway that asks for credentials.
const rules = `
auth:
  limits: { requests_per_second: 1000000 }
  tokens_file: %q
  jwt: [{ issuer: %q, audience: %s, algorithms: [ES256], jwks_file: %q }]
roles:
  anyone: { when: 'true' }
`

// principals are static tokens, of the principals user-0, user-1 and so on, of which number i
// is in group i mod groups; and the key of an issuer of JWTs. Static after construction.
type principals struct {
	groups int
	dir    string // with their files
	tokens []string
	key    *ecdsa.PrivateKey
	signer jose.Signer
}

// jwts returns new tokens of the issuer.
func (p *principals) jwts(n int) (tokens []string, err error) {
	for range n {
		token, err := p.jwt()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

func newPrincipals(dir string, n, groups int) (*principals, error) {
	p := &principals{groups: groups, dir: dir}
	var lines strings.Builder
	for i := range n {
		token := "wt_" + rand.Text()
		p.tokens = append(p.tokens, token)
		fmt.Fprintf(&lines, "user-%d sha256:%x %s\n", i, sha256.Sum256([]byte(token)), p.group(i))
	}
	if err := os.WriteFile(p.file("tokens"), []byte(lines.String()), 0o600); err != nil {
		return nil, err
	}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if p.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k"}}, nil); err != nil {
		return nil, err
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	if err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.file("keys.json"), keys, 0o600)
}

func (p *principals) file(name string) string { return filepath.Join(p.dir, name) }

func (p *principals) group(i int) string { return fmt.Sprintf("g%d", i%p.groups) }

func (p *principals) jwt() (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iss": issuer, "aud": audience, "sub": "ann", "jti": rand.Text(), "exp": time.Now().Add(time.Hour).Unix(), "groups": []string{"g0"},
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

// subscriptions are a request for events for each static token.
func (p *principals) subscriptions() (requests []load.Request) {
	for _, token := range p.tokens {
		requests = append(requests, eventsAs(token, many))
	}
	return requests
}

// settings are those of a gateway that asks for credentials, where a role for each group reads
// what its filter selects, and everybody what the watch few has.
func (p *principals) settings(filter func(group int) string) settings {
	s := settings{stream: viewLimits, sections: fmt.Sprintf(rules, p.file("tokens"), issuer, audience, p.file("keys.json"))}
	var allow []string
	for g := range p.groups {
		s.sections += fmt.Sprintf("  %s: { when: '\"%s\" in principal.groups' }\n", p.group(g), p.group(g))
		allow = append(allow, fmt.Sprintf("{ role: %s, read: %q }", p.group(g), filter(g)))
	}
	s.many = ", allow: [" + strings.Join(allow, ", ") + "]"
	s.few = `, allow: [{ role: anyone, read: "true" }]`
	return s
}
