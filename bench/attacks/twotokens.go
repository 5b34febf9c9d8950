package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
)

var twoTokens = attack{
	name:  "two-tokens",
	title: "a principal with two tokens, two sessions of each and several addresses opens more streams than one principal may",
	run:   runTwoTokens,
}

const twoTokensConfiguration = listeners + `
auth:
  tokens_file: DIR/tokens
  jwt: [ { issuer: "https://idp.example.com", audience: attacks, algorithms: [ES256], jwks_file: DIR/keys } ]
  limits: { streams: 6 }
roles: { anyone: { when: "true" } }
sources: { a: { type: store } }
watches: { notes: { source: a, allow: [ { role: anyone, read: "true", write: "true" } ] } }
`

func runTwoTokens(ctx context.Context, r *rig) error {
	keys, bearers, err := twoOf("eve")
	if err != nil {
		return err
	}
	t, err := r.start(ctx, twoTokensConfiguration, map[string]string{"keys": keys})
	if err != nil {
		return err
	}
	var all []*client
	for i, bearer := range bearers {
		for j := range 3 {
			c := t.as("", fmt.Sprintf("127.0.0.%d", 60+10*i+j))
			c.token = bearer
			if j > 0 {
				if c, err = c.session(ctx); err != nil {
					return err
				}
			}
			all = append(all, c)
		}
	}
	streaming, stop := context.WithCancel(ctx)
	defer stop()
	open, refused := 0, 0
	for range 3 {
		for _, c := range all {
			response, err := c.open(streaming, http.MethodGet, "/v1/events?watch=notes&format=ndjson", "")
			if err != nil {
				return err
			}
			defer response.Body.Close()
			switch response.StatusCode {
			case http.StatusOK:
				open++
			case http.StatusTooManyRequests:
				refused++
			}
		}
	}
	r.report("streams of both tokens together", "6", open == 6, "%d", open)
	r.report("the others are answered with 429", "12", refused == 12, "%d", refused)
	r.equal("somebody else", "200", statusOf(ctx, t.as("bob", "127.0.0.5"), "/v1/watches/notes/resources"))
	return nil
}

// session exchanges the token of the client for a session, and returns a client with its
// cookie alone.
func (c *client) session(ctx context.Context) (*client, error) {
	a, err := c.ask(ctx, http.MethodPost, "/v1/session", "")
	if err != nil {
		return nil, err
	}
	cookies := (&http.Response{Header: a.header}).Cookies()
	if a.status != http.StatusNoContent || len(cookies) != 1 {
		return nil, fmt.Errorf("POST /v1/session: %d %s, with %d cookies", a.status, a.body, len(cookies))
	}
	other := c.with("Cookie", cookies[0].Name+"="+cookies[0].Value)
	other.token = ""
	return other, nil
}

// twoOf returns two tokens of a principal, and the keys of their provider.
func twoOf(name string) (keys string, tokens []string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	key := jose.JSONWebKey{Key: private, KeyID: "1", Algorithm: string(jose.ES256), Use: "sig"}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		return "", nil, err
	}
	for n := range 2 {
		claims, err := json.Marshal(map[string]any{
			"iss": "https://idp.example.com", "aud": "attacks", "sub": name, "jti": fmt.Sprint(n), "exp": time.Now().Add(time.Hour).Unix(),
		})
		if err != nil {
			return "", nil, err
		}
		signed, err := signer.Sign(claims)
		if err != nil {
			return "", nil, err
		}
		token, err := signed.CompactSerialize()
		if err != nil {
			return "", nil, err
		}
		tokens = append(tokens, token)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}})
	return string(set), tokens, err
}
