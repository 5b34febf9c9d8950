package config

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/jwt"
)

// NoAuth is the word that allows listeners that other machines can reach without credentials.
const NoAuth = "none"

// Auth is the section "auth", or the word NoAuth in its place.
type Auth struct {
	// None means that everybody who reaches a listener may do everything.
	None bool `yaml:"-"`
	// Given reports whether there is a section.
	Given bool `yaml:"-"`
	// Keys are read from files, the same on all replicas. The first one encrypts sessions and
	// tickets; all of them decrypt (a random one).
	Keys []Key `yaml:"key_files"`
	// Tokens are the static tokens, read from a file (none).
	Tokens Tokens `yaml:"tokens_file"`
	// JWT are the OpenID providers whose tokens are accepted.
	JWT []Issuer `yaml:"jwt"`
	// Login says with which of them users sign in, in a browser.
	Login Login `yaml:"login"`
	// Kubernetes is the cluster whose users are known.
	Kubernetes Cluster `yaml:"kubernetes"`
	// Certificates says which name in a client certificate is that of the principal.
	Certificates Certificates `yaml:"certificates"`
	// Tickets says how long tickets last.
	Tickets Tickets `yaml:"tickets"`
	// Revoked names the watch of revocations.
	Revoked Revoked `yaml:"revoked"`
	// Audit says where decisions are recorded (nowhere).
	Audit Audit `yaml:"audit"`
	// Limits are the limits of one principal.
	Limits gateway.PrincipalLimits `yaml:"limits"`
}

// Issuer is an OpenID provider whose tokens are accepted.
type Issuer struct {
	// Issuer is its URL, exactly as in its tokens.
	Issuer string `yaml:"issuer,required,is=issuer"`
	// Audience must be among the audiences of a token.
	Audience string `yaml:"audience,required"`
	// Algorithms are the algorithms with which its tokens may be signed.
	Algorithms []string `yaml:"algorithms,required,is=algorithm"`
	// Name is the path of the claim with the name of the principal (sub).
	Name string `yaml:"name,is=claim"`
	// Groups is the path of the claim with its groups (none).
	Groups string `yaml:"groups,is=claim"`
	// Keys is its key set, read from a file; empty: it is fetched from the provider.
	Keys KeySet `yaml:"jwks_file"`
	// TLS is for connections to the provider, as for a source of type grpc; nil: the
	// system's authorities are trusted.
	TLS *tls.Config `yaml:"tls"`
	// Kubernetes says that the cluster of auth.kubernetes knows its users too (it does not).
	Kubernetes ClusterNames `yaml:"kubernetes"`
}

// ClusterNames are the names by which a cluster knows the users of an OpenID provider.
type ClusterNames struct {
	// Known reports whether there is a section.
	Known bool `yaml:"-"`
	// NamePrefix and GroupsPrefix are what the cluster puts before the names and the groups (nothing).
	NamePrefix   string `yaml:"name_prefix"`
	GroupsPrefix string `yaml:"groups_prefix"`
}

// read reads the section.
func (n *ClusterNames) read(d *decoder, v decode.Value, _ decode.Key) {
	n.Known = true
	d.Section(v, n)
}

// Validate reports prefixes with which nobody is known.
func (n *ClusterNames) Validate(report func(field any, problem string)) {
	for _, prefix := range []*string{&n.NamePrefix, &n.GroupsPrefix} {
		if strings.HasPrefix(*prefix, "system:") {
			report(prefix, "Kubernetes keeps names that begin with system: for itself, so that nobody would be known; want the prefix of the API server's --oidc flags")
		}
	}
}

// Login is the section "login" of "auth".
type Login struct {
	// Issuer is the URL of an entry of "jwt".
	Issuer string `yaml:"issuer,required,is=issuer"`
	// ClientID is the ID of the gateway at the provider.
	ClientID string `yaml:"client_id,required"`
	// Secret is its password there, read from a file (none).
	Secret ClientSecret `yaml:"client_secret_file"`
	// Scopes are asked for besides openid (none).
	Scopes []string `yaml:"scopes,is=scope"`
	// Name is the name of the provider that users are shown (the host of the issuer).
	Name string `yaml:"name"`
	// Session is how long a session lasts.
	Session time.Duration `yaml:"session,min=1m"`
}

// longestSession is the longest session of a user who has signed in: groups and claims are as old
// as it is.
const longestSession = 24 * time.Hour

// Cluster is the section "kubernetes" of "auth".
type Cluster struct {
	// Source is the name of a source of type "kubernetes", whose API server is asked.
	Source string `yaml:"source,required"`
	// Audiences are those for one of which the token of a user must be.
	Audiences []string `yaml:"audiences,required"`
	// Refresh is how often the rights of users are looked at.
	Refresh time.Duration `yaml:"refresh,min=2s"`
	// Hold is how long answers are used while the API server does not answer.
	Hold time.Duration `yaml:"hold,min=2s"`
	// ReviewsPerSecond is how many questions about rights are asked per second at most.
	ReviewsPerSecond int `yaml:"reviews_per_second"`
}

// longestHold is the longest time for which answers are used that nobody has confirmed.
const longestHold = time.Hour

// Validate reports an empty list, and answers that are used for too long.
func (k *Cluster) Validate(report func(field any, problem string)) {
	if k.Audiences != nil && len(k.Audiences) == 0 {
		report(&k.Audiences, "want at least one: the audience of the tokens that clients send, such as watchtide")
	}
	for _, d := range []*time.Duration{&k.Hold, &k.Refresh} {
		if *d > longestHold {
			report(d, "want at most 1h: what somebody has lost is seen until then")
		}
	}
	if refresh, hold := cmp.Or(k.Refresh, cluster.DefaultRefresh), cmp.Or(k.Hold, cluster.DefaultHold); hold < refresh {
		report(k, fmt.Sprintf("hold is %s, and nothing is confirmed more often than refresh, which is %s; want a longer hold", hold, refresh))
	}
}

// Certificates is the section "certificates" of "auth".
type Certificates struct {
	// Subject is the kind of name that is used (one of Subjects).
	Subject string `yaml:"subject,required,is=subject"`
}

// Subjects are the kinds of names of certificates.
var Subjects = []string{string(credential.SubjectURI), string(credential.SubjectDNS), string(credential.SubjectEmail)}

// Tickets is the section "tickets" of "auth".
type Tickets struct {
	// TTL is how long a ticket can be used after it was made.
	TTL time.Duration `yaml:"ttl,min=1s"`
}

// longestTicket is the longest life of a ticket. It is short since a ticket is part of a URL,
// which many can read.
const longestTicket = 10 * time.Minute

// Revoked is the section "revoked" of "auth".
type Revoked struct {
	// Watch has a resource for each revocation.
	Watch string `yaml:"watch,required,is=watch"`
}

// Credentials returns the part of the authenticator's configuration that is in the section.
func (s *Auth) Credentials() credential.Config {
	out := credential.Config{
		Tokens:       s.Tokens.TokenTable,
		Certificates: credential.Subject(s.Certificates.Subject),
		TicketTTL:    s.Tickets.TTL,
	}
	for _, k := range s.Keys {
		out.Keys = append(out.Keys, k.SealKey)
	}
	for _, i := range s.JWT {
		out.Issuers = append(out.Issuers, jwt.Issuer{
			URL: i.Issuer, Audience: i.Audience, Algorithms: i.Algorithms, Name: i.Name, Groups: i.Groups, Keys: i.Keys, TLS: i.TLS,
		})
	}
	if l := s.Login; l.Issuer != "" {
		out.SignIn = &credential.SignIn{
			Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: string(l.Secret), Scopes: l.Scopes, Name: l.Name, Session: l.Session,
		}
	}
	return out
}

// Validate reports duplicates, and tickets that last too long.
func (s *Auth) Validate(report func(field any, problem string)) {
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
	s.validateLogin(report)
	for i, k := range s.Keys {
		if k != (Key{}) && slices.Contains(s.Keys[:i], k) {
			report(&s.Keys, "a key is given twice: want each once, the newest first")
		}
	}
}

// validateLogin reports an issuer that cannot sign anybody in, and sessions that last too long.
func (s *Auth) validateLogin(report func(field any, problem string)) {
	if s.Login.Session > longestSession {
		report(&s.Login.Session, "want at most 24h: groups and claims are those of the sign-in until then")
	}
	at := slices.IndexFunc(s.JWT, func(i Issuer) bool { return i.Issuer == s.Login.Issuer })
	switch {
	case s.Login.Issuer == "":
	case at < 0:
		report(&s.Login.Issuer, "want the issuer of one of the entries of auth.jwt")
	case s.JWT[at].Keys != nil:
		report(&s.Login.Issuer, "want an issuer without jwks_file: the gateway must reach the provider to sign users in")
	}
}

// Validate reports TLS settings that nothing would use, and an empty list of algorithms.
func (i *Issuer) Validate(report func(field any, problem string)) {
	if i.Algorithms != nil && len(i.Algorithms) == 0 {
		report(&i.Algorithms, "want at least one of "+strings.Join(jwt.Algorithms, ", "))
	}
	if i.TLS != nil && (i.Keys != nil || strings.HasPrefix(i.Issuer, "http:")) {
		report(&i.TLS, "there is no connection that could use it: want an issuer with https, and no jwks_file")
	}
}
