package credential

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/jwt"
)

// SignIn says how users sign in with a provider.
//
// Static after construction.
type SignIn struct {
	// Issuer is the URL of one of Config.Issuers, whose keys are fetched.
	Issuer string
	// ClientID is the ID of the gateway at the provider.
	ClientID string
	// ClientSecret is its password there; empty: it has none.
	ClientSecret string
	// Scopes are asked for besides openid.
	Scopes []string
	// Name is the name of the provider that users are shown; empty: the host of Issuer.
	Name string
	// Session is how long a session lasts (DefaultSignInSession).
	Session time.Duration
}

// CallbackPath is the path that the provider sends browsers to, below Config.PublicURL.
const CallbackPath = "/v1/login/callback"

const (
	// DefaultSignInSession is how long a session of a user who has signed in with a provider lasts
	// if nothing else is configured. The token says nothing of that: it is for signing in.
	DefaultSignInSession = 8 * time.Hour

	signInBase = "watchtide-login" // the name of the cookie
	// signInLife is how long a user may take to sign in at the provider.
	signInLife = 10 * time.Minute
	// maxSignIn is the maximum length of the cookie's value, in bytes.
	maxSignIn = maxCookie - len(cookiePrefix) - len(signInBase) - 1
	// maxReturn is the maximum length of the path that the browser returns to, in bytes.
	maxReturn = 1 << 10
)

// check returns an error if nobody could sign in.
func (s *SignIn) check(c *Config) error {
	switch {
	case s == nil:
		return nil
	case s.ClientID == "":
		return errors.New("the client ID of the sign-in is missing")
	case c.PublicURL == "":
		return errors.New("a sign-in needs the public URL, to which the provider sends the browser back")
	case !slices.ContainsFunc(c.Issuers, func(i jwt.Issuer) bool { return i.URL == s.Issuer && i.Keys == nil }):
		return fmt.Errorf("the issuer of the sign-in is %q: want one of the issuers whose keys are fetched", s.Issuer)
	}
	return nil
}

// issuers returns the issuers, of which one signs users in.
func (c *Config) issuers() []jwt.Issuer {
	if c.SignIn == nil {
		return c.Issuers
	}
	out := slices.Clone(c.Issuers)
	for i := range out {
		if out[i].URL == c.SignIn.Issuer {
			out[i].Client = c.SignIn.ClientID
		}
	}
	return out
}

func (c *Config) client() *jwt.Client {
	s := c.SignIn
	return &jwt.Client{Issuer: s.Issuer, ID: s.ClientID, Secret: s.ClientSecret, Scopes: s.Scopes, RedirectURL: c.PublicURL + CallbackPath}
}

// SignsIn returns the name of the provider with which users sign in; empty: there is none.
func (a *Authenticator) SignsIn() string {
	s := a.cfg.SignIn
	if s == nil {
		return ""
	}
	u, _ := url.Parse(s.Issuer) // checked by jwt.New
	return cmp.Or(s.Name, u.Host)
}

// Stranger returns the anonymous identity of a request, whatever credentials it has: a browser with
// a session that is not accepted any more can sign in again.
func (a *Authenticator) Stranger(r *http.Request) *Identity {
	return &Identity{Principal: access.Nobody(), Address: a.ofRequest(r).client}
}

// IsReturn reports whether a browser may be sent to a path of the gateway after its user has signed
// in. With the public URL before it, no such text leads to another origin.
func IsReturn(path string) bool {
	return len(path) <= maxReturn && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") &&
		!strings.Contains(path, `\`) && !strings.ContainsFunc(path, notVisible)
}

// pending is the content of the cookie of a browser whose user is at the provider. The gateway
// itself keeps nothing of it.
type pending struct {
	jwt.SignIn
	Issuer string // to which the user was sent
	Return string // where the browser goes afterwards
	Until  int64  // in milliseconds
}

// BeginSignIn returns the URL of the provider to which the browser is sent, and the cookie that
// binds its answer to this browser. The path is one of IsReturn. The error is a *access.Refusal.
func (a *Authenticator) BeginSignIn(r *http.Request, path string) (to string, cookie *http.Cookie, err error) {
	from := a.ofRequest(r)
	switch {
	case !a.isPrivate(from):
		return "", nil, errPlainText
	case a.failures.blocked(from.client) > 0:
		return "", nil, a.tooMany(from)
	}
	p := pending{SignIn: jwt.NewSignIn(), Issuer: a.cfg.SignIn.Issuer, Return: path, Until: millis(time.Now().Add(signInLife))}
	if to, err = a.tokens.SignInURL(from.ctx, a.cfg.client(), p.SignIn); err != nil {
		return "", nil, err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return "", nil, err
	}
	if access.SealedLen(len(data)) > maxSignIn {
		return "", nil, access.NewRefusal(access.CredentialTooLarge, "the sign-in does not fit into a cookie: return to a shorter path")
	}
	return to, a.signInCookie(r, a.ring.Seal(access.SignIn, data), signInLife), nil
}

// signInCookie returns the cookie, which browsers send with the answer of the provider: that comes
// from another site.
func (a *Authenticator) signInCookie(r *http.Request, value string, keep time.Duration) *http.Cookie {
	return a.cookie(r, signInBase, value, keep, http.SameSiteLaxMode)
}

// SignedIn is a sign-in that has ended.
//
// Static after construction.
type SignedIn struct {
	*Login
	By     *Identity    // who has signed in
	To     string       // the URL that the browser is sent to
	Forget *http.Cookie // removes what the browser has of the sign-in
}

var errNotPending = access.NewRefusal(access.LoginRefused, "no sign-in of this browser is under way: it has ended, it began more than ten minutes ago, or it began in another browser or under another address than http.public_url: sign in again")

// FinishSignIn ends a sign-in with the answer of the provider, with which the browser comes back.
// The error is a *access.Refusal. An address whose sign-ins have failed too often has to wait.
func (a *Authenticator) FinishSignIn(r *http.Request) (*SignedIn, error) {
	from := a.ofRequest(r)
	if !a.isPrivate(from) {
		return nil, errPlainText
	}
	if a.failures.blocked(from.client) > 0 {
		return nil, a.tooMany(from)
	}
	if !a.turns.take(from.client) {
		return nil, access.Later(access.TooManyFailures, "too many sign-ins end at the same time: try again", time.Second)
	}
	defer a.turns.leave(from.client)
	out, err := a.finishSignIn(r, from)
	return out, a.count(from, err)
}

func (a *Authenticator) finishSignIn(r *http.Request, from *request) (*SignedIn, error) {
	p := a.pendingOf(from)
	if p == nil {
		return nil, errNotPending
	}
	answer, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, access.NewRefusal(access.LoginRefused, "the answer of the provider cannot be read: sign in again")
	}
	who, err := a.tokens.Finish(from.ctx, a.cfg.client(), p.SignIn, answer)
	if err != nil {
		return nil, err
	}
	who.Expires = time.Now().Add(cmp.Or(a.cfg.SignIn.Session, DefaultSignInSession))
	by := &Identity{Principal: who, Via: ViaProvider, Address: from.client}
	if err := a.revoked(by); err != nil {
		return nil, err
	}
	login, err := a.begin(r, by, nil)
	if err != nil {
		return nil, err
	}
	return &SignedIn{Login: login, By: by, To: a.cfg.PublicURL + p.Return, Forget: a.signInCookie(r, "", -time.Second)}, nil
}

// pendingOf returns the sign-in of the cookie of a request; nil: there is none that goes on.
func (a *Authenticator) pendingOf(r *request) *pending {
	cookies := a.cookies(r, signInBase)
	if len(cookies) != 1 {
		return nil
	}
	data, _, err := a.ring.Open(access.SignIn, cookies[0], maxSignIn)
	if err != nil {
		return nil
	}
	p := &pending{}
	if json.Unmarshal(data, p) != nil || !time.Now().Before(timeOf(p.Until)) || p.Issuer != a.cfg.SignIn.Issuer || !IsReturn(p.Return) {
		return nil
	}
	return p
}
