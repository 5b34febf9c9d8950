package jwt

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access"
	"golang.org/x/oauth2"
)

// Client is the gateway as a client of a provider, with which it signs users in: the authorization
// code flow of OpenID Connect with PKCE.
//
// Static after construction.
type Client struct {
	// Issuer is the URL of an issuer of the verifier whose Client is ID.
	Issuer string
	// ID is the ID of the gateway at the provider.
	ID string
	// Secret is its password there; empty: it has none.
	Secret string
	// Scopes are asked for besides openid.
	Scopes []string
	// RedirectURL is where the provider sends the browser with its answer.
	RedirectURL string
}

// SignIn has the secrets of one sign-in. They bind the answer of the provider to the browser that
// the sign-in began with.
type SignIn struct {
	State    string // the browser brings it back
	Nonce    string // in the token
	Verifier string // of PKCE (RFC 7636)
}

// NewSignIn returns new secrets.
func NewSignIn() SignIn {
	return SignIn{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
}

// endpoints is what the metadata of a provider says about signing in. Static after construction.
type endpoints struct {
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	NamesIssuer   bool     `json:"authorization_response_iss_parameter_supported"` // in each answer (RFC 9207)
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
}

// check returns an error if a URL of the provider could be read or replaced on the way.
func (e *endpoints) check(issuer string) error {
	for name, text := range map[string]string{"authorization_endpoint": e.Authorization, "token_endpoint": e.Token} {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || strings.Contains(text, "#") {
			return unavailable("the metadata of the provider has no usable " + name)
		}
		if u.Scheme != "https" && (strings.HasPrefix(issuer, "https:") || secure(u) != nil) {
			return unavailable("the " + name + " of the provider is not https")
		}
	}
	return nil
}

// style returns how the client authenticates itself.
func (e *endpoints) style(c *Client) oauth2.AuthStyle {
	basic := len(e.Methods) == 0 || slices.Contains(e.Methods, "client_secret_basic")
	if c.Secret == "" || !basic {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// unavailable says that a provider cannot sign anybody in at the moment.
func unavailable(text string) error {
	return access.Later(access.ProviderUnavailable, text+": try again later", retryEvery)
}

// notSignedIn says that a sign-in does not go on.
func notSignedIn(text string) error {
	return access.NewRefusal(access.LoginRefused, text+": sign in again")
}

// provider returns the issuer of a client, and what is known of its endpoints.
func (v *Verifier) provider(ctx context.Context, c *Client) (*issuer, *endpoints, error) {
	i := v.issuers[c.Issuer]
	if i == nil || i.keys.provider == nil {
		return nil, nil, unavailable("the provider of the sign-in is not known")
	}
	latest := i.keys.latest()
	if latest == nil { // the gateway has just started, or the provider does not answer
		_, _ = i.keys.await(ctx, "")
		if latest = i.keys.latest(); latest == nil {
			return nil, nil, unavailable("the provider of the sign-in does not answer")
		}
	}
	return i, &latest.endpoints, latest.endpoints.check(i.URL)
}

func (e *endpoints) config(c *Client) *oauth2.Config {
	return &oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, RedirectURL: c.RedirectURL, Scopes: append([]string{"openid"}, c.Scopes...),
		Endpoint: oauth2.Endpoint{AuthURL: e.Authorization, TokenURL: e.Token, AuthStyle: e.style(c)},
	}
}

// SignInURL returns the URL of the provider that a browser is sent to. The error is a
// *access.Refusal.
func (v *Verifier) SignInURL(ctx context.Context, c *Client, s SignIn) (string, error) {
	_, e, err := v.provider(ctx, c)
	if err != nil {
		return "", err
	}
	return e.config(c).AuthCodeURL(s.State, oauth2.S256ChallengeOption(s.Verifier), oauth2.SetAuthURLParam("nonce", s.Nonce)), nil
}

// Finish returns who has signed in, given the parameters with which the browser comes back. The
// error is a *access.Refusal. No text of the provider is in it.
func (v *Verifier) Finish(ctx context.Context, c *Client, s SignIn, answer url.Values) (*access.Principal, error) {
	if !isOnce(answer, "state", s.State) {
		return nil, notSignedIn("the answer of the provider is not for this sign-in")
	}
	i, e, err := v.provider(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case (e.NamesIssuer || answer.Has("iss")) && !isOnce(answer, "iss", i.URL):
		return nil, notSignedIn("the answer is of another provider than the one that the sign-in began with")
	case answer.Has("error"):
		return nil, refusedBy(answer.Get("error"))
	case len(answer["code"]) != 1 || answer.Get("code") == "":
		return nil, notSignedIn("the answer of the provider has no code")
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, i.keys.provider.client), fetchTimeout)
	defer cancel()
	token, err := e.config(c).Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(s.Verifier))
	if err != nil {
		return nil, notExchanged(err)
	}
	text, _ := token.Extra("id_token").(string)
	if text == "" {
		return nil, unavailable("the provider answers the code without an id_token")
	}
	return i.signedIn(ctx, c, s, text, token.AccessToken)
}

// signedIn returns the principal of an ID token (OpenID Connect Core 1.0, section 3.1.3.7).
func (i *issuer) signedIn(ctx context.Context, c *Client, s SignIn, token, accessToken string) (*access.Principal, error) {
	u, err := parse(token)
	if err != nil {
		return nil, err
	}
	if u.claims["iss"] != i.URL {
		return nil, notSignedIn("the token is of another issuer than the provider")
	}
	if azp, given := u.claims["azp"]; given && azp != c.ID {
		return nil, notSignedIn("the token was issued to another client")
	}
	nonce, _ := u.claims["nonce"].(string)
	if !same(nonce, s.Nonce) {
		return nil, notSignedIn("the token is not for this sign-in")
	}
	now := time.Now()
	known, err := i.verify(ctx, token, u, c.ID, now)
	switch {
	case err != nil:
		return nil, err
	case known.expired(now):
		return nil, access.Expiry(known.principal, known.principal.Expires, now)
	case !u.isBeside(accessToken):
		return nil, notSignedIn("the tokens of the provider do not belong together")
	}
	return known.principal, nil
}

// sizes are the hashes of at_hash, by the end of the name of the algorithm.
var sizes = map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512, "DSA": crypto.SHA512}

// isBeside reports whether the token came with an access token, if it says with which one.
func (u *unverified) isBeside(accessToken string) bool {
	given, is := u.claims["at_hash"]
	if !is {
		return true
	}
	text, _ := given.(string)
	a := u.header.Algorithm
	h := sizes[a[max(0, len(a)-3):]].New()
	h.Write([]byte(accessToken))
	sum := h.Sum(nil)
	return same(text, base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2]))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isOnce reports whether a parameter is given exactly once, with that value.
func isOnce(values url.Values, name, value string) bool {
	return len(values[name]) == 1 && same(values.Get(name), value)
}

// refusals are the errors of providers that a user may be told (RFC 6749, sections 4.1.2.1 and 5.2;
// OpenID Connect Core 1.0, section 3.1.2.6).
var refusals = []string{
	"access_denied", "account_selection_required", "consent_required", "interaction_required", "invalid_client", "invalid_grant",
	"invalid_request", "invalid_scope", "login_required", "server_error", "temporarily_unavailable", "unauthorized_client",
	"unsupported_grant_type", "unsupported_response_type",
}

// refusedBy returns the error for a user whom the provider has not signed in.
func refusedBy(code string) error {
	if !slices.Contains(refusals, code) {
		code = "an error that is not of the protocol"
	}
	return notSignedIn("the provider has not signed the user in (" + code + ")")
}

// notExchanged returns the error for a code that the provider has not exchanged.
func notExchanged(err error) error {
	var answer *oauth2.RetrieveError
	switch {
	case !errors.As(err, &answer):
		return unavailable("the provider did not exchange the code for a token")
	case answer.ErrorCode == "invalid_grant":
		return notSignedIn("the provider does not accept the code: it was used before, or has expired")
	case answer.ErrorCode == "invalid_client" || answer.ErrorCode == "unauthorized_client" || answer.Response.StatusCode == http.StatusUnauthorized:
		return unavailable("the provider does not accept this gateway as a client: compare auth.login with what is registered there")
	case slices.Contains(refusals, answer.ErrorCode):
		return unavailable("the provider did not exchange the code for a token (" + answer.ErrorCode + ")")
	}
	return unavailable(fmt.Sprintf("the provider answered the code with the status %d", answer.Response.StatusCode))
}
