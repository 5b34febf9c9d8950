package credential

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/access"
	kjson "sigs.k8s.io/json"
)

// sealed is the content of a session or a ticket. The names are short, since a cookie has
// little room.
type sealed struct {
	Mechanism string         `json:"m"`
	Issuer    string         `json:"i,omitempty"`
	Name      string         `json:"n"`
	Groups    []string       `json:"g,omitempty"`
	Claims    map[string]any `json:"c,omitempty"`
	Algorithm string         `json:"a,omitempty"` // of the signature of a JWT
	Key       string         `json:"k,omitempty"` // that has signed it
	Expires   int64          `json:"e,omitempty"` // of the credential, in milliseconds
	ID        string         `json:"s,omitempty"`
	Begun     int64          `json:"b,omitempty"` // of a session, in milliseconds
	Token     string         `json:"t,omitempty"` // the beginning of the hash of a static token, or of one of a cluster
	Watches   []string       `json:"w,omitempty"` // of a ticket
	Until     int64          `json:"u,omitempty"` // the end of a ticket, not after that of the credential

	purpose  access.SealPurpose // for which it was sealed
	sealedBy string             // the name of the key
}

// tokenPrint is the number of bytes of a hash that tell a token from its replacement.
func tokenPrint(h access.TokenHash) string { return base64.RawURLEncoding.EncodeToString(h[:12]) }

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis)
}

// contents returns the content of a session or a ticket of an identity. It leaves out the
// groups of a static token: they are looked up, so that a change of the file takes effect at
// once.
func (i *Identity) contents() sealed {
	s := sealed{
		Mechanism: i.Mechanism, Issuer: i.Issuer, Name: i.Name, Groups: i.Groups, Claims: i.Claims,
		Algorithm: i.Signature.Algorithm, Key: i.Signature.Key, Expires: millis(i.Expires), ID: i.ID, Begun: i.begun,
	}
	if i.Mechanism == access.Token {
		s.Groups, s.Token = nil, tokenPrint(i.tokenHash)
	}
	if i.Mechanism == access.Kubernetes {
		s.Token = tokenPrint(i.tokenHash)
	}
	return s
}

// seal encrypts contents as text of at most the given number of bytes.
func (a *Authenticator) seal(p access.SealPurpose, s sealed, most int) (string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("a principal that cannot be written: %w", err)
	}
	if n := access.SealedLen(len(data)); n > most {
		return "", access.NewRefusal(access.CredentialTooLarge, fmt.Sprintf("the claims of the credential do not fit into a %s: it would have %d bytes, of %d at most; have the issuer put fewer claims into its tokens", p, n, most))
	}
	return a.ring.Seal(p, data), nil
}

// open returns the content of a session or a ticket.
func (a *Authenticator) open(p access.SealPurpose, text string, most int) (*sealed, error) {
	data, key, err := a.ring.Open(p, text, most)
	if err != nil {
		return nil, access.NewRefusal(access.InvalidToken, fmt.Sprintf("the %s was not issued by this gateway, or with a key that it no longer has", p))
	}
	s := &sealed{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, s); err != nil {
		return nil, access.NewRefusal(access.InvalidToken, fmt.Sprintf("the %s is of another version of the gateway", p))
	}
	s.purpose, s.sealedBy = p, key
	return s, nil
}

// identity returns the identity in a session or a ticket, if the credential behind it is still
// accepted.
func (a *Authenticator) identity(s *sealed) (*Identity, error) {
	id := &Identity{Principal: &access.Principal{
		Mechanism: s.Mechanism, Issuer: s.Issuer, Name: s.Name, Groups: s.Groups, Claims: s.Claims,
		Signature: access.Signature{Algorithm: s.Algorithm, Key: s.Key}, Expires: timeOf(s.Expires), ID: s.ID,
	}, Watches: s.Watches, begun: s.Begun, purpose: s.purpose, sealedBy: s.sealedBy}
	accepted := false
	switch s.Mechanism {
	case access.Token:
		accepted = a.fillToken(id, s.Token)
	case access.JWT:
		id, accepted = a.jwtAgain(id)
	case access.Certificate:
		accepted = a.cfg.Certificates != ""
	case access.Kubernetes:
		print, _ := base64.RawURLEncoding.DecodeString(s.Token) // sealed by a gateway
		copy(id.tokenHash[:], print)
		id, accepted = a.clusterAgain(id)
	}
	if !accepted {
		return nil, access.NewRefusal(access.InvalidToken, "the credential behind this one is not accepted any more")
	}
	if end, now := timeOf(cmp.Or(s.Until, s.Expires)), time.Now(); !end.IsZero() && !now.Before(end) {
		return nil, access.Expiry(id.Principal, end, now)
	}
	return id, nil
}

// fillToken completes the principal of a static token, if the token is still accepted.
func (a *Authenticator) fillToken(id *Identity, print string) bool {
	for _, h := range a.cfg.Tokens.Hashes(id.Name) {
		if tokenPrint(h) != print {
			continue
		}
		p := a.cfg.Tokens.Lookup(h)
		id.Groups, id.Expires, id.tokenHash = p.Groups, earlier(id.Expires, p.Expires), h
		return !expired(p, time.Now())
	}
	return false
}

// expired reports whether the credential of a principal has ended.
func expired(p *access.Principal, now time.Time) bool {
	return !p.Expires.IsZero() && !now.Before(p.Expires)
}
