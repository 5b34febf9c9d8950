package jwt

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	jose "github.com/go-jose/go-jose/v4"
)

// Algorithms are the algorithms that a configuration may allow. All are asymmetric, so that a
// verifier of tokens cannot make one.
var Algorithms = []string{
	string(jose.ES256), string(jose.ES384), string(jose.ES512), string(jose.EdDSA),
	string(jose.PS256), string(jose.PS384), string(jose.PS512), string(jose.RS256), string(jose.RS384), string(jose.RS512),
}

// Issuer is an OpenID provider whose tokens are accepted.
//
// Static after construction.
type Issuer struct {
	// URL is the issuer, exactly as in its tokens.
	URL string
	// Audience must be among the audiences of a token.
	Audience string
	// Client is the ID under which the gateway signs users in; empty: it does not. The tokens of
	// these sign-ins are for this audience.
	Client string
	// Algorithms are the algorithms with which a token may be signed: some of the package's.
	Algorithms []string
	// Name is the path of the claim with the name of the principal (sub).
	Name string
	// Groups is the path of the claim with its groups; empty: it has none.
	Groups string
	// Keys is a key set (RFC 7517) that never changes; nil: it is fetched.
	Keys []byte
	// TLS is for connections to the provider; nil: the system's authorities.
	TLS *tls.Config
	// Transport replaces connections to the provider in tests; nil: TLS.
	Transport http.RoundTripper
}

// check returns an error if no token could be valid, or none could be verified.
func (i *Issuer) check() error {
	if err := CheckURL(i.URL); err != nil {
		return err
	}
	if i.Audience == "" {
		return fmt.Errorf("issuer %s: the audience is missing: a token for another service would be accepted", i.URL)
	}
	if len(i.Algorithms) == 0 {
		return fmt.Errorf("issuer %s: want at least one algorithm of %s", i.URL, strings.Join(Algorithms, ", "))
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(Algorithms, a) {
			return fmt.Errorf("issuer %s: algorithm %q: want one of %s", i.URL, a, strings.Join(Algorithms, ", "))
		}
	}
	return nil
}

// same reports whether two issuers have the same settings, so that one can take over the keys of
// the other.
func (i *Issuer) same(other *Issuer) bool {
	return i.URL == other.URL && i.Audience == other.Audience && i.Client == other.Client && slices.Equal(i.Algorithms, other.Algorithms) &&
		i.Name == other.Name && i.Groups == other.Groups && string(i.Keys) == string(other.Keys) &&
		(i.TLS == other.TLS || i.TLS != nil && other.TLS != nil && i.TLS.RootCAs.Equal(other.TLS.RootCAs))
}

// WantURL describes a valid URL of an issuer.
const WantURL = "the URL of an issuer as its tokens name it, such as https://idp.example.com, without query and fragment; http only on loopback"

// CheckURL returns an error unless the URL can be that of an issuer. Keys that come over plain
// HTTP could be forged, so it is allowed only for this machine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return errors.New("want " + WantURL)
	}
	return secure(u)
}

// secure returns an error if answers from a URL could be forged.
func secure(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
		return nil
	}
	return errors.New("want https: otherwise anybody on the way could replace the keys (http is possible on loopback)")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
