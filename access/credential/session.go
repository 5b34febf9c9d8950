package credential

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access"
)

const (
	// cookieBase is the name of the cookie. The prefix makes browsers refuse one that
	// another name of the same domain has set (RFC 6265bis, section 4.1.3.2).
	cookieBase   = "watchtide-session"
	cookiePrefix = "__Host-"
	// maxCookie is the maximum length of name and value that browsers accept, in bytes.
	maxCookie = 4096
	// maxSession is the maximum length of the value, in bytes.
	maxSession = maxCookie - len(cookiePrefix) - len(cookieBase) - 1
	// sessionLife is how long a session lasts if its token never expires.
	sessionLife = 12 * time.Hour
)

// cookieName returns the name of a cookie in a request.
func (a *Authenticator) cookieName(r *request, base string) string {
	if a.cfg.isSecure(r) {
		return cookiePrefix + base
	}
	return base
}

// errNeedsToken refuses to make a session with anything but a token: a ticket allows less, and
// sessions that are made with sessions would never end.
var errNeedsToken = access.NewRefusal(access.CredentialNotUsable, "a session is made of a token: send Authorization: Bearer")

// Login is a session that has begun.
//
// Static after construction.
type Login struct {
	Cookie *http.Cookie
	// Principal is the principal of the session; its ID names the session.
	Principal *access.Principal
	// Ended is the session of another principal that the browser had until then; nil: it had
	// none.
	Ended *Identity
}

// NewSession turns the token that a request came with into a session. If the request has the
// cookie of a session of the same principal, the session goes on; that of another principal
// ends, since the browser forgets it. The error is a *access.Refusal.
func (a *Authenticator) NewSession(r *http.Request, id *Identity) (*Login, error) {
	if id.IsAnonymous() {
		return nil, access.NewRefusal(access.CredentialRequired, "a session is made of a token: send Authorization: Bearer")
	}
	if id.Via != ViaAuthorization {
		return nil, errNeedsToken
	}
	return a.begin(r, id, a.sessionOf(a.ofRequest(r)))
}

// begin begins a session of an identity. before is the session that the browser had until then;
// nil: it had none.
func (a *Authenticator) begin(r *http.Request, id, before *Identity) (*Login, error) {
	p, out := *id.Principal, &Login{}
	switch {
	case before == nil:
		p.ID = rand.Text()
	case before.Is(&p):
		p.ID = before.ID // with another one, its end would not end the streams that were opened before
	default:
		p.ID, out.Ended = rand.Text(), before
	}
	if p.Mechanism == access.Token || p.Expires.IsZero() {
		p.Expires = earlier(p.Expires, time.Now().Add(sessionLife))
	}
	session := &Identity{Principal: &p, tokenHash: id.tokenHash, begun: a.begun(&p)}
	text, err := a.seal(access.Session, session.contents(), maxSession)
	if err != nil {
		return nil, err
	}
	if out.Ended != nil {
		a.end(r.Context(), out.Ended)
	}
	// The cookie outlives its content, so that an expired session can be told from none.
	left := time.Until(p.Expires) + access.GracePeriod
	out.Cookie, out.Principal = a.cookie(r, cookieBase, text, left, http.SameSiteStrictMode), &p
	return out, nil
}

// sessionOf returns the session whose cookie a request has, whatever other credentials it has;
// nil: there is none, or it is not accepted.
func (a *Authenticator) sessionOf(r *request) *Identity {
	if len(r.cookies) != 1 || !a.cfg.isOfOurPage(r) {
		return nil
	}
	id, err := a.openSession(r.cookies[0])
	if err != nil || a.revoked(id) != nil {
		return nil
	}
	id.Via, id.Address = ViaSession, r.client
	return id
}

// EndSession ends the session whose cookie a request has, and returns the cookie that removes it from
// the browser. ended is the session; nil: there was none.
func (a *Authenticator) EndSession(r *http.Request) (forget *http.Cookie, ended *Identity) {
	if ended = a.sessionOf(a.ofRequest(r)); ended != nil {
		a.end(r.Context(), ended)
	}
	return a.cookie(r, cookieBase, "", -time.Second, http.SameSiteStrictMode), ended
}

// cookie returns a cookie that the browser keeps for some time; negative: it removes it.
func (a *Authenticator) cookie(r *http.Request, base, value string, keep time.Duration, site http.SameSite) *http.Cookie {
	from := a.ofRequest(r)
	return &http.Cookie{
		Name: a.cookieName(from, base), Value: value, Path: "/", MaxAge: int(keep.Seconds()),
		HttpOnly: true, Secure: a.cfg.isSecure(from), SameSite: site,
	}
}

func (a *Authenticator) openSession(text string) (*Identity, error) {
	s, err := a.open(access.Session, text, maxSession)
	if err != nil {
		return nil, err
	}
	return a.identity(s)
}
