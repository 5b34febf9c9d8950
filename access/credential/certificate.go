package credential

import (
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"github.com/watchtide/watchtide/access"
)

// Subject is the kind of name that is read from certificates. It is always a subject
// alternative name: a common name has no kind, so it could be anything.
type Subject string

// The kinds of names.
const (
	SubjectURI   Subject = "uri"
	SubjectDNS   Subject = "dns"
	SubjectEmail Subject = "email"
)

// Subjects are all kinds of names.
var Subjects = []Subject{SubjectURI, SubjectDNS, SubjectEmail}

// names returns the names of that kind in a certificate.
func (s Subject) names(c *x509.Certificate) (names []string) {
	switch s {
	case SubjectDNS:
		return c.DNSNames
	case SubjectEmail:
		return c.EmailAddresses
	}
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	return names
}

// checkCertificate returns the principal of a certificate that the TLS stack has verified.
func (a *Authenticator) checkCertificate(chains [][]*x509.Certificate) (*Identity, error) {
	leaf := chains[0][0]
	if !a.vouches(chains) {
		return nil, access.NewRefusal(access.InvalidToken, "the client certificate is of an authority that is not accepted any more: connect with another one")
	}
	names := a.cfg.Certificates.names(leaf)
	if len(names) != 1 || names[0] == "" {
		return nil, access.NewRefusal(access.InvalidToken, "the client certificate does not have exactly one subject alternative name of the kind that is configured: "+string(a.cfg.Certificates))
	}
	p := &access.Principal{Mechanism: access.Certificate, Issuer: root(chains), Name: names[0], Expires: leaf.NotAfter}
	// A connection may outlive the certificate that it began with.
	if now := time.Now(); now.After(leaf.NotAfter) {
		return nil, access.Expiry(p, leaf.NotAfter, now)
	}
	return &Identity{Principal: p, chains: chains}, nil
}

// vouches reports whether a certificate comes from a current authority. Its signatures were
// checked when the connection began.
func (a *Authenticator) vouches(chains [][]*x509.Certificate) bool {
	if len(a.cfg.ClientCAs) == 0 {
		return true
	}
	return slices.ContainsFunc(chains, func(chain []*x509.Certificate) bool {
		root := chain[len(chain)-1]
		return slices.ContainsFunc(a.cfg.ClientCAs, func(pool *x509.CertPool) bool {
			_, err := root.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			return err == nil // it is in the pool
		})
	})
}

// certificateAgain returns the principal of a certificate under the current configuration. It
// returns false if the certificate is no longer accepted. If the credential is a ticket,
// nothing is known about the certificate.
func (a *Authenticator) certificateAgain(id *Identity) (*Identity, bool) {
	if id.chains == nil || a.cfg.Certificates == "" {
		return id, a.cfg.Certificates != ""
	}
	now, err := a.checkCertificate(id.chains)
	var why *access.Refusal
	switch {
	case errors.As(err, &why) && why.Reason == access.TokenExpired:
		return id, true // the caller checks the end
	case err != nil:
		return nil, false
	case now.Is(id.Principal):
		return id, true
	}
	now.Via = id.Via
	return now, true
}

// root returns the name of the authority that a certificate comes from. If there are several,
// it is always the same one.
func root(chains [][]*x509.Certificate) string {
	names := make([]string, len(chains))
	for i, chain := range chains {
		names[i] = chain[len(chain)-1].Subject.String()
	}
	return slices.Min(names)
}
