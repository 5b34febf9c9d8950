package auth

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/access/jwt"
)

// None is the word that lets other machines reach the listeners although the gateway
// requires no credentials.
const None = "none"

// Section is the section "auth", or the word None in its place.
type Section struct {
	// None says that whoever reaches a listener may do everything.
	None bool `yaml:"-"`
	// Given reports whether there is a section.
	Given bool `yaml:"-"`
	// Keys are read from files, the same on all replicas. The first one seals sessions
	// and tickets, and all of them open (a random one).
	Keys []Key `yaml:"key_files"`
	// Tokens are the static tokens, read from a file (none).
	Tokens Tokens `yaml:"tokens_file"`
	// JWT are the OpenID providers whose tokens are accepted.
	JWT []Issuer `yaml:"jwt"`
	// Certificates says how client certificates name somebody.
	Certificates Certificates `yaml:"certificates"`
	// Tickets is how tickets behave.
	Tickets Tickets `yaml:"tickets"`
	// Revoked says where revocations are.
	Revoked Revoked `yaml:"revoked"`
	// Audit says where decisions are written down (nowhere).
	Audit Audit `yaml:"audit"`
	// Limits are what one principal may have.
	Limits Limits `yaml:"limits"`
}

// Limits is the section "limits" of "auth".
type Limits struct {
	// Streams is the most streams of one principal at a time.
	Streams int `yaml:"streams"`
	// RequestsPerSecond is the most requests of one principal, or of one address without one,
	// on average over 10 s.
	RequestsPerSecond int `yaml:"requests_per_second"`
}

// Issuer is an OpenID provider whose tokens are accepted.
type Issuer struct {
	// Issuer is its URL, as its tokens name it, to the letter.
	Issuer string `yaml:"issuer,required,is=issuer"`
	// Audience must be among those that a token is for.
	Audience string `yaml:"audience,required"`
	// Algorithms are those that its tokens may be signed with.
	Algorithms []string `yaml:"algorithms,required,is=algorithm"`
	// Name is the path of the claim with the name of the principal (sub).
	Name string `yaml:"name,is=claim"`
	// Groups is the path of the claim with its groups (none).
	Groups string `yaml:"groups,is=claim"`
	// Keys is its key set, read from a file, if it is not to be asked for.
	Keys KeySet `yaml:"jwks_file"`
	// TLS is for connections to the provider, as for a source of type grpc; nil: the
	// system's authorities are trusted.
	TLS *tls.Config `yaml:"tls"`
}

// Certificates is the section "certificates" of "auth".
type Certificates struct {
	// Subject is the kind of name that counts (one of Subjects).
	Subject string `yaml:"subject,required,is=subject"`
}

// Subjects are the kinds of names of certificates.
var Subjects = []string{string(credential.SubjectURI), string(credential.SubjectDNS), string(credential.SubjectEmail)}

// Tickets is the section "tickets" of "auth".
type Tickets struct {
	// TTL is how long a ticket can be used.
	TTL time.Duration `yaml:"ttl,min=1s"`
}

// longestTicket is the longest life of a ticket: it is in a URL, which many can read.
const longestTicket = 10 * time.Minute

// Revoked is the section "revoked" of "auth".
type Revoked struct {
	// Watch has a resource for each revocation.
	Watch string `yaml:"watch,required,is=watch"`
}

// Credentials returns what the authenticator has to know of the section.
func (s *Section) Credentials() credential.Config {
	out := credential.Config{
		Tokens:       s.Tokens.Table,
		Certificates: credential.Subject(s.Certificates.Subject),
		TicketTTL:    s.Tickets.TTL,
	}
	for _, k := range s.Keys {
		out.Keys = append(out.Keys, k.Key)
	}
	for _, i := range s.JWT {
		out.Issuers = append(out.Issuers, jwt.Issuer{
			URL: i.Issuer, Audience: i.Audience, Algorithms: i.Algorithms, Name: i.Name, Groups: i.Groups, Keys: i.Keys, TLS: i.TLS,
		})
	}
	return out
}

// Validate reports what is given twice, and tickets that live too long.
func (s *Section) Validate(report func(field any, problem string)) {
	if s.Tickets.TTL > longestTicket {
		report(&s.Tickets.TTL, "want at most 10m: whoever reads a ticket in a URL can use it until then")
	}
	for i := range s.JWT {
		for j, before := range s.JWT[:i] {
			if s.JWT[i].Issuer != "" && s.JWT[i].Issuer == before.Issuer {
				report(&s.JWT, fmt.Sprintf("entries %d and %d are of the same issuer: want one", j+1, i+1))
			}
		}
	}
	for i, k := range s.Keys {
		if k != (Key{}) && slices.Contains(s.Keys[:i], k) {
			report(&s.Keys, "a key is given twice: want each once, the newest first")
		}
	}
}

// Validate reports TLS that nothing would use, and a list without algorithms.
func (i *Issuer) Validate(report func(field any, problem string)) {
	if i.Algorithms != nil && len(i.Algorithms) == 0 {
		report(&i.Algorithms, "want at least one of "+strings.Join(jwt.Algorithms, ", "))
	}
	if i.TLS != nil && (i.Keys != nil || strings.HasPrefix(i.Issuer, "http:")) {
		report(&i.TLS, "there is no connection that could use it: want an issuer with https, and no jwks_file")
	}
}
