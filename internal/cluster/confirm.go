package cluster

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/access"
)

const (
	// confirmsPerSecond and confirmsAtOnce bound the reviews of tokens that are in use. Half of all reviews are left to new ones.
	confirmsPerSecond = reviewsPerSecond / 2
	confirmsAtOnce    = 4
)

// TokenID tells a token from others: it is the beginning of its SHA-256.
type TokenID [12]byte

// IDOf returns the identifier of a token with a hash.
func IDOf(h access.TokenHash) TokenID { return TokenID(h[:len(TokenID{})]) }

// Again returns a principal as it is now, whom a token has identified before; false: it is not accepted any more. From then on
// the token is in use, and is reviewed again, for as long as Again is called. A token that is not known here is accepted as it was: one
// review holds for an hour at most.
func (t *Tokens) Again(p *access.Principal, id TokenID) (*access.Principal, bool) {
	if !t.Accepts(p) {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost.Contains(id) {
		return nil, false
	}
	h, ok := t.byID[id]
	if !ok {
		return p, true
	}
	k, ok := t.known.Get(h)
	if !ok {
		return p, true
	}
	k.used = time.Now()
	if sameUser(p, k.principal) {
		return p, true
	}
	now := *p
	now.Groups, now.Claims = k.principal.Groups, k.principal.Claims
	return &now, now.Name == k.principal.Name
}

// sameUser reports whether the cluster says the same of two principals.
func sameUser(a, b *access.Principal) bool {
	return a.Name == b.Name && slices.Equal(a.Groups, b.Groups) && reflect.DeepEqual(a.Claims, b.Claims)
}

// Run reviews the tokens that are in use, until the context ends. It calls changed when one of them is not accepted any more, or
// has other groups, and from time to time, so that open streams ask again. A loss is noticed within the configured time, unless more
// tokens are in use than are reviewed in two thirds of it.
func (t *Tokens) Run(ctx context.Context, changed func()) {
	tick := time.NewTicker(min(time.Second, t.config.Refresh/6))
	defer tick.Stop()
	told := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if t.confirm(ctx) || time.Since(told) >= t.config.Refresh/2 {
			told = time.Now()
			changed()
		}
	}
}

// confirm reviews tokens that are due. It returns true if one of them is not what it was.
func (t *Tokens) confirm(ctx context.Context) bool {
	var running sync.WaitGroup
	var changed atomic.Bool
	places := make(chan struct{}, confirmsAtOnce)
	for _, one := range t.due(time.Now()) {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			if t.confirmOne(ctx, one) {
				changed.Store(true)
			}
		})
	}
	running.Wait()
	return changed.Load()
}

// due returns tokens in use that were not reviewed for two thirds of the interval in which a loss must be noticed: the rest is for
// the server's own cache. There are no more than may be reviewed in a second, those first that have waited longest.
func (t *Tokens) due(now time.Time) (due []*known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.resumeAt) {
		return nil
	}
	for _, k := range t.known.Values() {
		if now.Sub(k.used) <= t.config.Refresh && now.Sub(k.reviewed) >= t.config.Refresh*2/3 && now.Before(k.principal.Expires) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b *known) int { return cmp.Compare(a.reviewed.UnixNano(), b.reviewed.UnixNano()) })
	return due[:min(len(due), confirmsPerSecond)]
}

// confirmOne reviews a token. It returns true if it is not what it was.
func (t *Tokens) confirmOne(ctx context.Context, k *known) bool {
	u, err := t.plausible(k.token)
	if err != nil {
		return false // it has expired
	}
	who, err := t.ask(ctx, k.token, u, k)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.lost.Contains(IDOf(access.HashOfToken(k.token)))
	}
	return !sameUser(who, k.principal)
}
