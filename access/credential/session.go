package credential

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access/principal"
	"github.com/watchtide/watchtide/access/refusal"
	"github.com/watchtide/watchtide/access/seal"
)

const (
	// cookieBase is the name of the cookie. The prefix makes browsers refuse one that
	// another name of the same domain has set (RFC 6265bis, section 4.1.3.2).
	cookieBase   = "watchtide-session"
	cookiePrefix = "__Host-"
	// maxCookie is the most bytes of name and value that browsers keep.
	maxCookie = 4096
	// maxSession is the most bytes of the value.
	maxSession = maxCookie - len(cookiePrefix) - len(cookieBase) - 1
	// sessionLife is how long a session lasts whose token has no end.
	sessionLife = 12 * time.Hour
)

// cookieName returns the name of the cookie in a request.
func (a *Authenticator) cookieName(r *request) string {
	if a.isSecure(r) {
		return cookiePrefix + cookieBase
	}
	return cookieBase
}

// errNeedsToken answers an attempt to turn anything else than a token into a session: a
// ticket is for less, and a session would never end.
var errNeedsToken = refusal.New(refusal.CredentialNotUsable, "a session is made of a token: send Authorization: Bearer")

// NewSession turns the token that a request came with into the cookie of a session, and
// returns its principal, whose ID names the session. If the request has the cookie of a
// session of the same principal, the session goes on. The error is a *refusal.Error.
func (a *Authenticator) NewSession(r *http.Request, id *Identity) (*http.Cookie, *principal.Principal, error) {
	if id.IsAnonymous() {
		return nil, nil, refusal.New(refusal.CredentialRequired, "a session is made of a token: send Authorization: Bearer")
	}
	if id.Via != ViaAuthorization {
		return nil, nil, errNeedsToken
	}
	p := *id.Principal
	p.ID = cmp.Or(a.continued(a.ofRequest(r), &p), rand.Text())
	if p.Expires.IsZero() {
		p.Expires = time.Now().Add(sessionLife)
	}
	session := &Identity{Principal: &p, tokenHash: id.tokenHash}
	text, err := a.seal(seal.Session, session.contents(), maxSession)
	if err != nil {
		return nil, nil, err
	}
	// The cookie outlives its contents, so that an expired session can be told apart.
	left := time.Until(p.Expires) + refusal.GracePeriod
	return a.cookie(r, text, int(left.Seconds())), &p, nil
}

// continued returns the ID of the session that a request has besides the token of p; empty if
// it has none, or one that p cannot continue. With another ID, the end of the session would
// not end the streams that were opened before.
func (a *Authenticator) continued(r *request, p *principal.Principal) string {
	if len(r.cookies) != 1 || !a.isOfOurPage(r) {
		return ""
	}
	id, err := a.openSession(r.cookies[0])
	if err != nil || !id.Is(p) || a.revoked(id.Principal) != nil {
		return ""
	}
	return id.ID
}

// EndSession ends the session of an identity on this replica, and returns the cookie
// that makes the browser forget it. Without a session it only does the latter.
func (a *Authenticator) EndSession(r *http.Request, id *Identity) *http.Cookie {
	if id != nil && id.Principal != nil && id.ID != "" {
		a.ended.add(id.ID)
	}
	return a.cookie(r, "", -1)
}

func (a *Authenticator) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	from := a.ofRequest(r)
	return &http.Cookie{
		Name: a.cookieName(from), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: a.isSecure(from), SameSite: http.SameSiteStrictMode,
	}
}

func (a *Authenticator) openSession(text string) (*Identity, error) {
	s, err := a.open(seal.Session, text, maxSession)
	if err != nil {
		return nil, err
	}
	return a.identity(s)
}
