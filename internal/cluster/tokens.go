package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/jwt"
)

// Limits of the reviews of tokens.
const (
	// reviewsPerSecond, reviewsAtOnce and reviewsWaiting bound the reviews of tokens.
	reviewsPerSecond = 50
	reviewsAtOnce    = 16
	reviewsWaiting   = 256
	// freshFor is how long an answer is used before the server is asked again.
	freshFor = time.Minute
	// refusedFor is how long the answer that a token is unknown is used.
	refusedFor = time.Minute
	// longest is how long a user is known by one review: tokens can be withdrawn before they expire.
	longest = time.Hour
	// pause is how long the server is left alone after it has failed maxFailures times in a row.
	pause       = 2 * time.Second
	maxFailures = 4
	// reviewWait is how long a request waits for a review.
	reviewWait = 10 * time.Second

	maxKnown      = 20_000
	maxKnownBytes = 64 << 20
	bytesPerToken = 512 // besides its principal
	maxRefused    = 4096

	// maxGroups and maxUserBytes limit what is known of one user.
	maxGroups    = 1000
	maxUserBytes = 64 << 10
)

// DefaultHold is how long answers are used while the API server does not answer, unless something else
// is configured.
const DefaultHold = 2 * time.Minute

// TokensConfig is the configuration of Tokens. All fields but Hold and Refresh are required.
//
// Static after construction.
type TokensConfig struct {
	Server Server
	// Issuer is the issuer of the principals: the name of the source of the API server.
	Issuer string
	// Audiences are those for one of which a token must be.
	Audiences []string
	// Hold is how long an answer is used while the server does not answer, at most (DefaultHold).
	Hold time.Duration
	// Refresh is within what time it is noticed that a token in use is not accepted any more (DefaultRefresh).
	Refresh time.Duration
	Log     *slog.Logger
}

// Tokens knows the users of bearer tokens. It asks the API server, and remembers the answers by
// hashes of the tokens.
//
// All methods may be called from any goroutine.
type Tokens struct {
	config  TokensConfig
	gate    *gate
	reviews Counts

	mu sync.Mutex
	// Guarded by mu.
	known    *simplelru.LRU[hash, *known]
	byID     map[TokenID]hash                  // of the known ones
	lost     *simplelru.LRU[TokenID, struct{}] // that were known, and are not accepted any more
	bytes    int
	refused  *simplelru.LRU[hash, refused]
	asking   map[hash]*asking
	failures int       // since the last answer
	resumeAt time.Time // when the server may be asked again after it did not answer
	warned   time.Time
}

// hash is the SHA-256 of a token.
type hash [sha256.Size]byte

// known is a token that the server has authenticated.
type known struct {
	// Static after construction.
	principal *access.Principal
	token     string
	reviewed  time.Time
	bytes     int

	used time.Time // by a stream; guarded by the mutex of Tokens
}

// refused is a token that the server does not know. Static after construction.
type refused struct {
	err   error
	until time.Time
}

// asking is a review that others wait for.
type asking struct {
	done chan struct{}
	// Written before done is closed.
	who *access.Principal
	err error
}

// NewTokens returns Tokens that know nothing yet.
func NewTokens(c TokensConfig) *Tokens {
	c.Hold, c.Refresh = cmp.Or(c.Hold, DefaultHold), cmp.Or(c.Refresh, DefaultRefresh)
	t := &Tokens{config: c, gate: newGate(reviewsPerSecond, reviewsAtOnce, reviewsWaiting), byID: map[TokenID]hash{}, asking: map[hash]*asking{}}
	var noKnown, noLost, noRefused error
	t.known, noKnown = simplelru.NewLRU(maxKnown, func(h hash, k *known) {
		t.bytes -= k.bytes
		delete(t.byID, IDOf(access.TokenHash(h)))
	})
	t.lost, noLost = simplelru.NewLRU[TokenID, struct{}](maxKnown, nil)
	t.refused, noRefused = simplelru.NewLRU[hash, refused](maxRefused, nil)
	if noKnown != nil || noLost != nil || noRefused != nil {
		panic("cluster: the sizes are positive")
	}
	return t
}

// Remembers returns the principal of a token that the server has authenticated lately; nil: it has not.
func (t *Tokens) Remembers(token string) *access.Principal {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, ok := t.known.Get(sha256.Sum256([]byte(token))); ok && k.usable(now, freshFor) {
		return k.principal
	}
	return nil
}

// usable reports whether the answer may be used so long after the review.
func (k *known) usable(now time.Time, within time.Duration) bool {
	return now.Before(k.principal.Expires) && now.Before(k.reviewed.Add(within))
}

// Accepts reports whether a principal that Verify has returned would still be accepted, as far as the
// configuration goes. A nil *Tokens accepts none.
func (t *Tokens) Accepts(p *access.Principal) bool {
	if t == nil {
		return false
	}
	for _, name := range texts(p.Claims[claimAudiences]) {
		if p.Issuer == t.config.Issuer && slices.Contains(t.config.Audiences, name) {
			return true
		}
	}
	return false
}

// IsIssuer reports whether principals are of an issuer. Those of a nil *Tokens are of none.
func (t *Tokens) IsIssuer(name string) bool { return t != nil && name == t.config.Issuer }

var (
	errUnknown    = access.NewRefusal(access.InvalidToken, "the cluster does not know the token, or it is not for this gateway")
	errTooMuch    = access.NewRefusal(access.InvalidToken, fmt.Sprintf("the user of the token is in too many groups: want at most %d, and %d KiB in all", maxGroups, maxUserBytes>>10))
	errUnanswered = access.Later(access.ReviewUnavailable, "the API server of the cluster cannot check the token now", pause)
)

// Verify returns the principal of a token. The error is a *access.Refusal. A token that cannot be
// right is refused without a question to the server.
func (t *Tokens) Verify(ctx context.Context, token string) (*access.Principal, error) {
	now := time.Now()
	u, err := t.plausible(token)
	if err != nil {
		return nil, err
	}
	h := hash(sha256.Sum256([]byte(token)))
	t.mu.Lock()
	k, _ := t.known.Get(h)
	no, _ := t.refused.Get(h)
	switch {
	case !u.Expires.IsZero() && !now.Before(u.Expires):
		t.mu.Unlock()
		return nil, expired(k, u.Expires, now)
	case k != nil && k.usable(now, freshFor):
		t.mu.Unlock()
		return k.principal, nil
	case now.Before(no.until):
		t.mu.Unlock()
		t.reviews.add(Cached)
		return nil, no.err
	case now.Before(t.resumeAt):
		t.mu.Unlock()
		return t.held(k, now)
	}
	if one := t.asking[h]; one != nil {
		t.mu.Unlock()
		return one.wait(ctx)
	}
	one := &asking{done: make(chan struct{})}
	t.asking[h] = one
	t.mu.Unlock()
	one.who, one.err = t.ask(context.WithoutCancel(ctx), token, u, k) // others may wait for it, if the request leaves
	t.mu.Lock()
	delete(t.asking, h)
	t.mu.Unlock()
	close(one.done)
	return one.who, one.err
}

// wait returns the answer to a question of another request.
func (a *asking) wait(ctx context.Context) (*access.Principal, error) {
	select {
	case <-a.done:
		return a.who, a.err
	case <-ctx.Done():
		return nil, errUnanswered
	}
}

// held returns what was known before the server stopped to answer.
func (t *Tokens) held(k *known, now time.Time) (*access.Principal, error) {
	if k != nil && k.usable(now, freshFor+t.config.Hold) {
		return k.principal, nil
	}
	return nil, errUnanswered
}

// plausible refuses what no API server would accept.
func (t *Tokens) plausible(token string) (*jwt.Unverified, error) {
	u, err := jwt.Peek(token, time.Now())
	switch {
	case err != nil:
		return nil, err
	case u.HasAudience() && !slices.ContainsFunc(t.config.Audiences, u.IsFor):
		return nil, access.NewRefusal(access.InvalidToken, "the token is not for this gateway: want one of the audiences "+strings.Join(t.config.Audiences, ", "))
	}
	return u, nil
}

// expired returns the error for a token that has expired. Only of a token that was reviewed before is it
// known that it is genuine.
func expired(k *known, at, now time.Time) error {
	if k != nil {
		return access.Expiry(k.principal, at, now)
	}
	return access.NewRefusal(access.TokenExpired, "the token has expired: get a new one")
}

// ask asks the server.
func (t *Tokens) ask(ctx context.Context, token string, u *jwt.Unverified, before *known) (*access.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewWait)
	defer cancel()
	if err := t.gate.enter(ctx); err != nil {
		t.reviews.add(Crowded)
		return t.held(before, time.Now())
	}
	review, err := t.config.Server.ReviewToken(ctx, token, t.config.Audiences)
	t.gate.leave()
	now := time.Now()
	if err != nil {
		t.failed(err, now)
		return t.held(before, now)
	}
	who, err := t.principal(review, u, now)
	h := hash(access.HashOfToken(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Remove(h)
	t.failures = 0
	if err != nil {
		t.reviews.add(Refused)
		t.refused.Add(h, refused{err, now.Add(refusedFor)})
		if before != nil {
			t.lost.Add(IDOf(access.TokenHash(h)), struct{}{})
		}
		return nil, err
	}
	t.reviews.add(Allowed)
	t.refused.Remove(h)
	t.lost.Remove(IDOf(access.TokenHash(h)))
	k := &known{principal: who, token: token, reviewed: now, bytes: bytesPerToken + len(token) + who.Size()}
	if before != nil {
		k.used = before.used
	}
	t.known.Add(h, k)
	t.byID[IDOf(access.TokenHash(h))] = h
	for t.bytes += k.bytes; t.bytes > maxKnownBytes; {
		t.known.RemoveOldest()
	}
	return who, nil
}

// failed notes that the server did not answer.
func (t *Tokens) failed(err error, now time.Time) {
	t.reviews.add(Failed)
	t.mu.Lock()
	if t.failures++; t.failures >= maxFailures || retryAfter(err) > 0 {
		t.resumeAt = now.Add(min(max(pause, retryAfter(err)), time.Minute))
	}
	warn := now.Sub(t.warned) >= time.Minute
	if warn {
		t.warned = now
	}
	t.mu.Unlock()
	if warn {
		t.config.Log.Warn("a token could not be reviewed: tokens that were not reviewed lately get 503", "issuer", t.config.Issuer, "error", err.Error())
	}
}

// Claims of a principal.
const (
	claimUID       = "uid"
	claimExtra     = "extra"
	claimAudiences = "audiences"
)

// principal returns the principal of a review.
func (t *Tokens) principal(r Review, u *jwt.Unverified, now time.Time) (*access.Principal, error) {
	name := r.User.Name
	audiences := slices.DeleteFunc(slices.Clone(r.Audiences), func(a string) bool { return !slices.Contains(t.config.Audiences, a) })
	switch {
	case !r.Authenticated, len(audiences) == 0:
		return nil, errUnknown
	case name == "", name == "system:anonymous", slices.Contains(r.User.Groups, "system:unauthenticated"), !r.User.readable():
		return nil, errUnknown
	case len(r.User.Groups) > maxGroups, r.User.size() > maxUserBytes:
		return nil, errTooMuch
	}
	expires := now.Add(longest)
	if !u.Expires.IsZero() && u.Expires.Before(expires) {
		expires = u.Expires
	}
	extra := map[string]any{}
	for key, values := range r.User.Extra {
		extra[key] = list(values)
	}
	return &access.Principal{
		Mechanism: access.Kubernetes, Issuer: t.config.Issuer, Name: name, Groups: r.User.Groups, Expires: expires,
		Claims: map[string]any{claimUID: r.User.UID, claimExtra: extra, claimAudiences: list(audiences)},
	}, nil
}

// readable reports whether all names are text.
func (u User) readable() bool {
	isNone := func(text string) bool { return !utf8.ValidString(text) }
	for key, values := range u.Extra {
		if isNone(key) || slices.ContainsFunc(values, isNone) {
			return false
		}
	}
	return !isNone(u.Name) && !isNone(u.UID) && !slices.ContainsFunc(u.Groups, isNone)
}

// size returns about how many bytes there are in all names.
func (u User) size() int {
	n := len(u.Name) + len(u.UID)
	for _, g := range u.Groups {
		n += len(g)
	}
	for key, values := range u.Extra {
		n += len(key)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// list returns texts as claims have them, and texts does the reverse.
func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

func texts(claim any) (out []string) {
	all, _ := claim.([]any)
	for _, v := range all {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// Stats returns the figures of the reviews of tokens.
func (t *Tokens) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{Results: t.reviews.all(), AtOnce: t.gate.load(), Cached: t.known.Len() + t.refused.Len()}
}
