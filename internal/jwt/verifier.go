package jwt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"
	"github.com/watchtide/watchtide/access"
)

// Verifier verifies the tokens of several issuers.
//
// Static after construction; its key sets and its cache may be used by several
// goroutines at once.
type Verifier struct {
	issuers map[string]*issuer
	cache   *cache
}

// issuer is an Issuer with its keys. Static after construction.
type issuer struct {
	Issuer
	keys       *keySet
	algorithms []jose.SignatureAlgorithm
	config     oidc.Config
}

// New returns a verifier. It makes no connections: Run does. It takes over the verified tokens
// of previous, and the key sets of the issuers that it shares with previous. previous and log
// may be nil.
func New(issuers []Issuer, previous *Verifier, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{issuers: map[string]*issuer{}, cache: newCache()}
	if previous != nil {
		v.cache = previous.cache
	}
	for _, given := range issuers {
		if _, twice := v.issuers[given.URL]; twice {
			return nil, fmt.Errorf("issuer %s is given twice", given.URL)
		}
		i, err := newIssuer(given, previous, log)
		if err != nil {
			return nil, err
		}
		v.issuers[given.URL] = i
	}
	return v, nil
}

func newIssuer(given Issuer, previous *Verifier, log *slog.Logger) (*issuer, error) {
	if given.Name == "" {
		given.Name = "sub"
	}
	if err := given.check(); err != nil {
		return nil, err
	}
	if previous != nil {
		if old := previous.issuers[given.URL]; old != nil && old.same(&given) {
			return old, nil
		}
	}
	i := &issuer{Issuer: given}
	for _, a := range given.Algorithms {
		i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(a))
	}
	// The times are checked here, since go-oidc allows another leeway.
	i.config = oidc.Config{SupportedSigningAlgs: given.Algorithms, SkipExpiryCheck: true}
	if given.Keys == nil {
		i.keys = remoteKeys(newProvider(&given), log)
		return i, nil
	}
	k, err := parseKeys(given.Keys)
	if err != nil {
		return nil, fmt.Errorf("issuer %s: %w", given.URL, err)
	}
	i.keys = fixedKeys(k)
	return i, nil
}

// CheckKeys returns an error unless data is a key set.
func CheckKeys(data []byte) error {
	_, err := parseKeys(data)
	return err
}

// Run refreshes the keys of all issuers until the context ends.
func (v *Verifier) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, i := range v.issuers {
		if i.keys.provider != nil {
			all.Go(func() { i.keys.run(ctx) })
		}
	}
	all.Wait()
}

// Ready returns an error unless it has the keys of all issuers. The error names the other
// issuers.
func (v *Verifier) Ready() error {
	var missing []error
	for _, i := range v.issuers {
		if err := i.keys.ready(); err != nil {
			missing = append(missing, fmt.Errorf("issuer %s: its keys are not known: %w", i.URL, err))
		}
	}
	slices.SortFunc(missing, func(a, b error) int { return bytes.Compare([]byte(a.Error()), []byte(b.Error())) })
	return errors.Join(missing...)
}

// Again applies the current configuration to the claims of a principal that was verified
// before. It returns p itself if nothing changes. It does not verify the signature again, but
// checks that its algorithm is accepted and, if the keys are in a file, its key. It does not
// check the end of the token. The error is a *access.Refusal.
func (v *Verifier) Again(p *access.Principal) (*access.Principal, error) {
	i := v.issuers[p.Issuer]
	switch {
	case i == nil:
		return nil, errIssuer
	case !isFor(p.Claims, i.Audience) && (i.Client == "" || !isFor(p.Claims, i.Client)):
		return nil, errAudience(i.Audience)
	case !slices.Contains(i.Algorithms, p.Signature.Algorithm):
		return nil, errAlgorithm
	case i.Keys != nil && !i.keys.now().prints[p.Signature.Key]:
		return nil, errUnknownKey
	}
	now, err := i.principal(p.Claims, p.Expires)
	switch {
	case err != nil:
		return nil, err
	case now.Name == p.Name && slices.Equal(now.Groups, p.Groups):
		return p, nil
	}
	now.Signature, now.ID = p.Signature, p.ID
	return now, nil
}

// Remembers returns the principal of a token that is in the cache; nil: it is not, or something
// has changed since.
func (v *Verifier) Remembers(token string) *access.Principal {
	known := v.remembered(sha256.Sum256([]byte(token)))
	if known == nil || known.expired(time.Now()) {
		return nil
	}
	return known.principal
}

// remembered returns a token of the cache, unless its issuer is gone or has retired the key.
func (v *Verifier) remembered(h tokenHash) *verified {
	known := v.cache.get(h)
	if known == nil {
		return nil
	}
	found, certain := known.issuer.keys.has(known.key)
	if v.issuers[known.issuer.URL] == known.issuer && found {
		return known
	}
	if certain {
		v.cache.remove(h)
	}
	return nil
}

// Verify returns the principal that a token names. The error is a *access.Refusal.
func (v *Verifier) Verify(ctx context.Context, token string) (*access.Principal, error) {
	if len(token) > maxToken {
		_, err := parse(token)
		return nil, err
	}
	h, now := tokenHash(sha256.Sum256([]byte(token))), time.Now()
	if known := v.remembered(h); known != nil {
		if !known.expired(now) {
			return known.principal, nil
		}
		v.cache.remove(h)
		return nil, access.Expiry(known.principal, known.principal.Expires, now)
	}
	known, err := v.verify(ctx, token, now)
	if err != nil {
		return nil, err
	}
	if known.expired(time.Now()) {
		return nil, access.Expiry(known.principal, known.principal.Expires, now)
	}
	v.cache.add(h, known)
	return known.principal, nil
}

// verify checks everything about a token except that it has not expired.
func (v *Verifier) verify(ctx context.Context, token string, now time.Time) (*verified, error) {
	u, err := parse(token)
	if err != nil {
		return nil, err
	}
	name, _ := u.claims["iss"].(string)
	i := v.issuers[name]
	if i == nil {
		return nil, errIssuer
	}
	return i.verify(ctx, token, u, i.Audience, now)
}

// verify is like that of the Verifier, for a token that is of the issuer and for an audience.
func (i *issuer) verify(ctx context.Context, token string, u *unverified, audience string, now time.Time) (*verified, error) {
	p, err := i.read(u, audience, now)
	if err != nil {
		return nil, err
	}
	k, err := i.authenticate(ctx, token, u, audience)
	if err != nil {
		return nil, err
	}
	p.Signature = access.Signature{Algorithm: u.header.Algorithm, Key: k.print()}
	return &verified{principal: p, issuer: i, key: k}, nil
}

var errIssuer = access.NewRefusal(access.UnknownIssuer, "the token is of an issuer that the configuration does not name")

var errAlgorithm = invalid("the token is signed with an algorithm that is not allowed for its issuer")

func errAudience(want string) error {
	return invalid("the token is not for this gateway: want the audience %s", want)
}

// read checks the content of a token before its signature, since that is cheap.
func (i *issuer) read(u *unverified, audience string, now time.Time) (*access.Principal, error) {
	if !slices.Contains(i.Algorithms, u.header.Algorithm) {
		return nil, errAlgorithm
	}
	if !isFor(u.claims, audience) {
		return nil, errAudience(audience)
	}
	expires, err := times(u.claims, now)
	if err != nil {
		return nil, err
	}
	p, err := i.principal(u.claims, expires)
	if err == nil && now.After(expires.Add(access.GracePeriod)) {
		err = access.Expiry(p, expires, now)
	}
	return p, err
}

var errSignature = access.NewRefusal(access.InvalidToken, "the signature of the token is wrong")

// authenticate checks the signature of a token, and returns the key that has signed it. The
// other checks of go-oidc repeat earlier ones; both must agree.
func (i *issuer) authenticate(ctx context.Context, token string, u *unverified, audience string) (digest, error) {
	candidates, err := i.keys.find(ctx, u.header.KeyID, u.header.Algorithm)
	if err != nil {
		return digest{}, err
	}
	s := &signature{issuer: i, token: u, candidates: candidates}
	config := i.config
	config.ClientID = audience
	_, err = oidc.NewVerifier(i.URL, s, &config).Verify(ctx, token)
	if err != nil || !bytes.Equal(s.payload, u.payload) {
		return digest{}, errSignature
	}
	return s.by, nil
}
