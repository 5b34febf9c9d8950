package credential

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/jwt"
)

// Config says which credentials are accepted, and from where.
//
// Static after construction.
type Config struct {
	// Keys encrypt sessions and tickets, and make tags. The first one encrypts; all of them
	// decrypt. Empty: a random key, which ends with the process.
	Keys []access.SealKey
	// Tokens are the static tokens; nil: there are none.
	Tokens *access.TokenTable
	// Issuers are the OpenID providers whose tokens are accepted.
	Issuers []Issuer
	// Cluster knows who the tokens of a Kubernetes cluster belong to that are of none of Issuers;
	// nil: they are not accepted.
	Cluster *cluster.Tokens
	// Certificates is the kind of name that is read from client certificates; empty:
	// certificates are ignored.
	Certificates Subject
	// ClientCAs are the current authorities for client certificates, of all listeners. A
	// connection may have begun with others. Empty: the authorities with which the connection
	// began.
	ClientCAs []*x509.CertPool
	// TicketTTL is how long a ticket can be used (DefaultTicketTTL).
	TicketTTL time.Duration
	// PublicURL is the origin under which browsers reach the gateway. If it is empty,
	// it is http for a request without TLS from this machine, and https for any other.
	PublicURL string
	// AllowedOrigins are the origins of other pages whose cookies and certificates count.
	AllowedOrigins []string
	// TrustedProxies are networks from which credentials are accepted without TLS, and
	// certificates are ignored.
	TrustedProxies []netip.Prefix
	// Client returns the address to which the failures of a request count; nil: that of the
	// connection.
	Client func(*http.Request) netip.Addr
	// ClientOfCall is like Client, for gRPC.
	ClientOfCall func(context.Context) netip.Addr
	// SignIn says how users sign in with a provider; nil: they cannot.
	SignIn *SignIn
	// Revocations says who has been revoked; nil: nobody.
	Revocations Revocations
	// Previous is the authenticator that this one replaces; nil: none. Its key sets, and what
	// it has learned, are taken over.
	Previous *Authenticator
	// Log gets a warning when an issuer does not answer; nil: nothing does.
	Log *slog.Logger
}

// Issuer is an OpenID provider whose tokens are accepted.
type Issuer = jwt.Issuer

// DefaultTicketTTL is how long a ticket can be used if nothing else is configured.
const DefaultTicketTTL = 30 * time.Second

// Revocations says who has been revoked: see access.Principal.RevocationKeys.
type Revocations interface {
	// Revoked reports whether a principal, its token or its session has been revoked. An
	// error means that this is not known yet.
	Revoked(p *access.Principal) (bool, error)
	// SessionsEnded returns until when the sessions of a principal began that have ended, whichever
	// they are; zero: none have.
	SessionsEnded(p *access.Principal) time.Time
	// Keep writes the end of a session. Where nothing can be written, it does nothing.
	Keep(ctx context.Context, e Ending) error
}

// Authenticator identifies clients by their credentials.
//
// Static after construction, except for what it learns (key sets, verified tokens,
// failures, ended sessions), which may be used by several goroutines at once.
type Authenticator struct {
	cfg      Config
	ring     *access.KeyRing
	tokens   *jwt.Verifier
	failures *failures
	ended    *ended
	turns    *turns // of sign-ins
	reviews  *turns // of tokens of a cluster
}

// New returns an authenticator. It makes no connections: Run does.
func New(cfg Config) (*Authenticator, error) {
	if cfg.TicketTTL == 0 {
		cfg.TicketTTL = DefaultTicketTTL
	}
	if !slices.Contains(Subjects, cfg.Certificates) && cfg.Certificates != "" {
		return nil, fmt.Errorf("the name of a certificate is %q: want one of %v", cfg.Certificates, Subjects)
	}
	if err := cfg.SignIn.check(&cfg); err != nil {
		return nil, err
	}
	a := &Authenticator{cfg: cfg, failures: newFailures(), ended: newEnded(), turns: newTurns(), reviews: newTurns()}
	var verifier *jwt.Verifier
	if old := cfg.Previous; old != nil {
		a.failures, a.ended, a.turns, a.reviews, verifier = old.failures, old.ended, old.turns, old.reviews, old.tokens
		a.cfg.Previous = nil
	}
	a.ring = a.newRing(cfg)
	var err error
	a.tokens, err = jwt.New(cfg.issuers(), verifier, cfg.Log)
	return a, err
}

// newRing returns the keys. It keeps a random key, so that sessions survive a reload.
func (a *Authenticator) newRing(cfg Config) *access.KeyRing {
	if old := cfg.Previous; old != nil && len(cfg.Keys) == 0 && len(old.cfg.Keys) == 0 {
		return old.ring
	}
	return access.NewKeyRing(cfg.Keys)
}

// Run keeps the keys of issuers up to date until the context ends.
func (a *Authenticator) Run(ctx context.Context) { a.tokens.Run(ctx) }

// Ready returns an error unless all credentials can be checked.
func (a *Authenticator) Ready() error { return a.tokens.Ready() }

// Ring returns the keys, for the tags of positions.
func (a *Authenticator) Ring() *access.KeyRing { return a.ring }

// Tag returns an opaque tag of a principal. It stays the same as long as the first key does.
func (a *Authenticator) Tag(p *access.Principal) string { return a.ring.Tag(access.Identity, p.Key()) }

// Via says where a credential was.
type Via string

// The places of credentials, in the order in which they are looked for.
const (
	ViaNothing       Via = ""
	ViaAuthorization Via = "authorization"
	ViaTicket        Via = "ticket"
	ViaSession       Via = "session"
	ViaCertificate   Via = "certificate"
	ViaProvider      Via = "provider" // where the user has signed in: of a session that begins so
)

// Identity is a principal, and the credential that it was identified by.
//
// Static after construction.
type Identity struct {
	*access.Principal
	Via Via
	// Address is the address to which failures count; not valid: it is unknown.
	Address netip.Addr
	// Watches are the watches that a ticket is for; empty: all.
	Watches []string

	tokenHash access.TokenHash      // of a static token, or the beginning of that of a token of a cluster
	chains    [][]*x509.Certificate // of a client certificate; nil: there is none, or the credential is a ticket that was made with it
	begun     int64                 // when the session began or was renewed last, in milliseconds; 0: it is none, or of an older version
	purpose   access.SealPurpose    // of a session or a ticket
	sealedBy  string                // the name of the key of a session or a ticket; empty: it was neither
}

// May reports whether the credential is for a watch: a ticket is for some watches only.
func (i *Identity) May(watch string) bool {
	return i.Via != ViaTicket || slices.Contains(i.Watches, watch)
}

// Writes reports whether the credential is for writing: a ticket, which URLs and the logs of
// proxies show, is for reading.
func (i *Identity) Writes() bool { return i.Via != ViaTicket }

// Identify returns the identity of a request. Only the first credential that is present counts:
// if it is invalid, the error is a *access.Refusal, even if there is another, valid one. Without
// a credential, Identify returns the anonymous principal.
func (a *Authenticator) Identify(r *http.Request) (*Identity, error) {
	return a.identify(a.ofRequest(r))
}

// IdentifyCall is like Identify, for gRPC, which carries Authorization and cookies in its
// metadata, and certificates.
func (a *Authenticator) IdentifyCall(ctx context.Context) (*Identity, error) {
	return a.identify(a.ofCall(ctx))
}

func (a *Authenticator) identify(r *request) (*Identity, error) {
	via, text, err := a.present(r)
	if err != nil {
		return nil, a.count(r, err)
	}
	if via == ViaNothing {
		return &Identity{Principal: access.Nobody(), Address: r.client}, nil
	}
	if !a.isPrivate(r) {
		return nil, errPlainText
	}
	id, err := a.check(r, via, text)
	if err != nil {
		return nil, a.count(r, err)
	}
	if err := a.revoked(id); err != nil {
		return nil, err
	}
	id.Via, id.Address = via, r.client
	return id, nil
}

var errPlainText = access.NewRefusal(access.PlainText, "credentials are not taken from another machine without TLS: connect with TLS, to a listener with http.tls, or grpc.tls for gRPC; if a proxy of yours ends TLS, list the address of that proxy in http.trusted_proxies, and never those of clients")

// isPrivate reports whether nobody on the way can have read the request.
func (a *Authenticator) isPrivate(r *request) bool {
	return r.tls != nil || !r.peer.IsValid() || r.peer.IsLoopback() || a.trusts(r.peer)
}

func (a *Authenticator) trusts(peer netip.Addr) bool {
	return slices.ContainsFunc(a.cfg.TrustedProxies, func(n netip.Prefix) bool { return n.Contains(peer) })
}

// present returns the first credential of a request. Browsers send cookies and certificates for
// any page, so they count only for pages that may use them.
func (a *Authenticator) present(r *request) (via Via, text string, err error) {
	if lines := r.header("Authorization"); len(lines) > 0 {
		text, err = bearer(lines)
		return ViaAuthorization, text, err
	}
	if tickets := r.tickets; len(tickets) > 0 {
		if len(tickets) > 1 {
			return "", "", access.NewRefusal(access.InvalidRequest, "the parameter ticket is given more than once")
		}
		return ViaTicket, tickets[0], nil
	}
	if !a.cfg.isOfOurPage(r) {
		return ViaNothing, "", nil
	}
	if cookies := r.cookies; len(cookies) > 0 {
		if len(cookies) > 1 {
			return "", "", access.NewRefusal(access.InvalidRequest, "the cookie of the session is given more than once: delete the cookies of this site")
		}
		return ViaSession, cookies[0], nil
	}
	if a.cfg.Certificates != "" && r.tls != nil && len(r.tls.VerifiedChains) > 0 && !a.trusts(r.peer) {
		return ViaCertificate, "", nil
	}
	return ViaNothing, "", nil
}

// bearer returns the token of the header Authorization (RFC 6750, section 2.1).
func bearer(lines []string) (string, error) {
	if len(lines) > 1 {
		return "", access.NewRefusal(access.InvalidRequest, "the header Authorization is given more than once")
	}
	scheme, text, _ := strings.Cut(lines[0], " ")
	text = strings.TrimSpace(text)
	if !strings.EqualFold(scheme, "Bearer") || text == "" || strings.ContainsFunc(text, notVisible) {
		return "", access.NewRefusal(access.InvalidRequest, "the header Authorization is not of the form: Bearer TOKEN")
	}
	return text, nil
}

func notVisible(r rune) bool { return r <= ' ' || r > '~' }

func (a *Authenticator) check(r *request, via Via, text string) (*Identity, error) {
	switch via {
	case ViaAuthorization:
		return a.checkToken(r, text)
	case ViaTicket:
		return a.openTicket(text)
	case ViaSession:
		return a.openSession(text)
	default:
		return a.checkCertificate(r.tls.VerifiedChains)
	}
}

const (
	// maxToken is the maximum length of a token, in bytes.
	maxToken = 16 << 10
	// unguessable is the length in bytes from which on a static token cannot be guessed,
	// however often somebody tries.
	unguessable = 32
)

// checkToken checks a static token or a JWT. An address that has failed too often can
// neither guess tokens nor have signatures verified; others at the same address can go
// on with what is known to be valid.
func (a *Authenticator) checkToken(r *request, text string) (*Identity, error) {
	if len(text) > maxToken {
		return nil, access.NewRefusal(access.InvalidToken, "the token is larger than 16 KiB")
	}
	blocked := a.failures.blocked(r.client) > 0
	if !blocked || len(text) >= unguessable {
		h := access.HashOfToken(text)
		if p := a.cfg.Tokens.Lookup(h); p != nil {
			if now := time.Now(); expired(p, now) {
				return nil, access.Expiry(p, p.Expires, now)
			}
			return &Identity{Principal: p, tokenHash: h}, nil
		}
	}
	if !jwt.LooksLike(text) || len(a.cfg.Issuers) == 0 && a.cfg.Cluster == nil {
		return nil, access.NewRefusal(access.InvalidToken, "the token is unknown")
	}
	if p := a.remembered(text); p != nil {
		return ofJWT(p, text), nil
	}
	if blocked {
		return nil, a.tooMany(r)
	}
	p, err := a.verify(r, text)
	if err != nil {
		return nil, err
	}
	return ofJWT(p, text), nil
}

// ofJWT returns the identity of a JWT.
func ofJWT(p *access.Principal, text string) *Identity {
	id := &Identity{Principal: p}
	if p.Mechanism == access.Kubernetes {
		id.tokenHash = access.HashOfToken(text)
	}
	return id
}

// remembered returns the principal of a JWT that was verified before; nil: it is not known.
func (a *Authenticator) remembered(text string) *access.Principal {
	if p := a.tokens.Remembers(text); p != nil || a.cfg.Cluster == nil {
		return p
	}
	return a.cfg.Cluster.Remembers(text)
}

// verify returns the principal of a JWT, of one of the issuers or of the cluster.
func (a *Authenticator) verify(r *request, text string) (*access.Principal, error) {
	if a.cfg.Cluster == nil {
		return a.tokens.Verify(r.ctx, text)
	}
	u, err := jwt.Peek(text, time.Now())
	switch {
	case err != nil:
		return nil, err
	case a.tokens.IsOf(u):
		return a.tokens.Verify(r.ctx, text)
	case !a.reviews.take(r.client):
		return nil, access.Later(access.ReviewUnavailable, "many tokens of this address are being checked: come back later", time.Second)
	}
	defer a.reviews.leave(r.client)
	return a.cfg.Cluster.Verify(r.ctx, text)
}

// revoked returns an error if a session has ended, or its principal has been revoked, or if
// that is not known.
func (a *Authenticator) revoked(id *Identity) error {
	if id.ID != "" && a.ended.has(id) {
		return errEnded
	}
	if a.cfg.Revocations == nil {
		return nil
	}
	revoked, err := a.cfg.Revocations.Revoked(id.Principal)
	switch {
	case err != nil:
		return access.Later(access.RevocationsUnknown, "it is not known yet whether the credential has been revoked", time.Second)
	case revoked:
		return access.NewRefusal(access.Revoked, "the credential has been revoked")
	case id.ID != "" && id.begun <= endOf(a.cfg.Revocations, id.Principal):
		return errEnded
	}
	return nil
}
