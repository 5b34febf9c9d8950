package access

import (
	"encoding/binary"
	"net/url"
	"strings"
	"time"
)

// The ways in which a principal can prove who it is.
const (
	Anonymous   = "anonymous"   // no credential at all
	Token       = "token"       // a line of the tokens file
	JWT         = "jwt"         // a token of an OpenID provider
	Certificate = "certificate" // a client certificate
	Kubernetes  = "kubernetes"  // a token that a Kubernetes cluster has authenticated
)

// Principal is a client that was identified. Mechanism, issuer and name together are its
// identity; everything else may change while it stays the same principal.
//
// Static after construction.
type Principal struct {
	// Mechanism is how it has proved who it is.
	Mechanism string
	// Issuer is the issuer of the credential: the URL of a provider, or the authority of a
	// certificate, or the name of the source of a cluster; empty: this gateway.
	Issuer string
	// Name is unique among the principals of an issuer; empty only if anonymous.
	Name string
	// Groups are those that the principal is a member of.
	Groups []string
	// Claims are the claims of a JWT, or uid, extra and audiences of a user of a cluster, as nil, bool, int64, float64, string, []any and
	// map[string]any.
	Claims map[string]any
	// Signature says how a JWT is signed; zero: the credential is no JWT.
	Signature Signature
	// Expires is the end of the credential; zero: it has none.
	Expires time.Time
	// ID names the session; empty: the credential came without one.
	ID string
}

// Signature says how a JWT is signed.
type Signature struct {
	Algorithm string
	Key       string // a text that is the same for the same key
}

// Nobody returns the principal of a request without a credential.
func Nobody() *Principal { return &Principal{Mechanism: Anonymous} }

// IsAnonymous reports whether there was no credential.
func (p *Principal) IsAnonymous() bool { return p.Mechanism == Anonymous }

// Key returns a text that identifies the principal, whatever characters are in its parts. It is
// not meant to be read by people.
func (p *Principal) Key() string {
	var key []byte
	for _, part := range []string{p.Mechanism, p.Issuer, p.Name} {
		key = binary.AppendUvarint(key, uint64(len(part)))
		key = append(key, part...)
	}
	return string(key)
}

// Is reports whether two credentials are of the same principal.
func (p *Principal) Is(other *Principal) bool {
	return p.Mechanism == other.Mechanism && p.Issuer == other.Issuer && p.Name == other.Name
}

// escapeSubject makes the last slash of a key of a subject the one before the subject:
// otherwise a subject with a slash could be read as part of the issuer.
var escapeSubject = strings.NewReplacer("%", "%25", "/", "%2F")

// RevocationKeys returns the keys of the resources that revoke p: token/NAME,
// subject/ISSUER/SUBJECT and session/ID. In a subject, "/" is written %2F and "%" is
// written %25.
func (p *Principal) RevocationKeys() []string {
	var keys []string
	switch p.Mechanism {
	case Token:
		keys = append(keys, "token/"+p.Name)
	case JWT, Certificate, Kubernetes:
		keys = append(keys, "subject/"+p.Issuer+"/"+escapeSubject.Replace(p.subject()))
	}
	if p.ID != "" {
		keys = append(keys, "session/"+p.ID)
	}
	return keys
}

// ParseRevocation reports whether a key has the form of those of RevocationKeys, or that of one of a
// principal after "sessions/", which only ends its sessions, and returns the issuer that it names;
// empty: it names none.
func ParseRevocation(key string) (issuer string, ok bool) {
	key, ofAll := strings.CutPrefix(key, "sessions/")
	kind, name, _ := strings.Cut(key, "/")
	if ofAll && kind == "session" {
		return "", false
	}
	if kind == "token" || kind == "session" {
		return "", name != ""
	}
	at := strings.LastIndexByte(name, '/')
	if kind != "subject" || at <= 0 {
		return "", false
	}
	subject, err := url.PathUnescape(name[at+1:])
	return name[:at], err == nil && subject != "" && escapeSubject.Replace(subject) == name[at+1:]
}

// ClientID returns the OAuth client that a JWT was issued to: an application of the provider. It is
// the claim azp (OpenID Connect), or else client_id (RFC 9068); empty: the token names none.
func (p *Principal) ClientID() string {
	if azp, ok := p.Claims["azp"].(string); ok && azp != "" {
		return azp
	}
	id, _ := p.Claims["client_id"].(string)
	return id
}

// subject returns the name by which the issuer knows the principal. A configuration may
// take the name from another claim than sub.
func (p *Principal) subject() string {
	if sub, ok := p.Claims["sub"].(string); ok && p.Mechanism == JWT && sub != "" {
		return sub
	}
	return p.Name
}
