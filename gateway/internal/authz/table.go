package authz

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/stream"
)

// Table has the authorizations of all open streams. There are no more than streams that admission
// has let in.
//
// All methods may be called from any goroutine.
type Table struct {
	// Audit records the ends of authorizations; nil: nothing does. Static once there are authorizations.
	Audit *access.AuditLog

	evaluator atomic.Pointer[Evaluator] // atomic

	mu    sync.Mutex // guards the following fields
	open  map[string]*Authorization
	keyed map[string]map[*Authorization]struct{} // by the key that revokes them
}

// NewTable returns an empty table. Until Reevaluate, it accepts all authorizations.
func NewTable() *Table {
	t := &Table{open: map[string]*Authorization{}, keyed: map[string]map[*Authorization]struct{}{}}
	t.evaluator.Store(&Evaluator{})
	return t
}

// Enter makes the authorization of a stream. The authorization ends when what its holder may see changes, at once
// if that has changed since the request was identified. It is nil if the gateway does not ask
// for credentials. The caller must call Leave.
func (t *Table) Enter(who *credential.Identity, parts ...Part) *Authorization {
	if who == nil {
		return nil
	}
	return t.enter(&Authorization{parts: parts}, who)
}

// EnterSwitching is like Enter, for a stream that switches when what its holder may see
// changes, and whose windows can be moved. If it has any, it has an authorization even if the gateway
// does not ask for credentials. One with counts ends, as with Enter, when what its holder may see changes: a
// count of something else has nothing in common with it.
func (t *Table) EnterSwitching(who *credential.Identity, parts ...Part) *Authorization {
	if who == nil && !slices.ContainsFunc(parts, Part.IsWindow) {
		return nil
	}
	return t.enter(&Authorization{parts: slices.Clone(parts), switches: !slices.ContainsFunc(parts, Part.Counts)}, who)
}

func (t *Table) enter(p *Authorization, who *credential.Identity) *Authorization {
	p.id = rand.Text()
	for _, part := range p.parts {
		p.watches = append(p.watches, part.Name())
		if _, decides := part.rules.resource(); decides {
			p.clustered = true
		}
	}
	p.clustered = p.clustered || who != nil && who.Mechanism == access.Kubernetes
	p.validity.Store(validityOf(who, time.Now()))
	t.mu.Lock()
	t.open[p.id] = p
	if who != nil {
		t.key(p, who)
	}
	p.first = len(p.keys)
	t.mu.Unlock()
	t.checkOne(p)
	return p
}

// key enters an authorization under the revocation keys of an identity. The mutex must be held.
func (t *Table) key(p *Authorization, who *credential.Identity) {
	for _, key := range who.RevocationKeys() {
		if slices.Contains(p.keys, key) {
			continue
		}
		if t.keyed[key] == nil {
			t.keyed[key] = map[*Authorization]struct{}{}
		}
		t.keyed[key][p] = struct{}{}
		p.keys = append(p.keys, key)
	}
}

// unkey removes all revocation keys of an authorization but the first n. The mutex must be held.
func (t *Table) unkey(p *Authorization, n int) {
	for _, key := range p.keys[n:] {
		delete(t.keyed[key], p)
		if len(t.keyed[key]) == 0 {
			delete(t.keyed, key)
		}
	}
	p.keys = p.keys[:n]
}

// Leave removes the authorization of a stream that has ended. The authorization may be nil, and the table too in
// that case.
func (t *Table) Leave(p *Authorization) {
	if p == nil {
		return
	}
	t.expired(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, p.id)
	t.unkey(p, 0)
}

// Count returns how many authorizations there are.
func (t *Table) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// Revoke ends the authorizations of all principals that have one of these revocation keys; see
// access.RevocationKeys.
func (t *Table) Revoke(key string) {
	t.mu.Lock()
	authorizations := make([]*Authorization, 0, len(t.keyed[key]))
	for p := range t.keyed[key] {
		authorizations = append(authorizations, p)
	}
	t.mu.Unlock()
	for _, p := range authorizations {
		t.end(p, stream.GoodbyeRevoked)
	}
}

// Errors of Renew.
var (
	ErrUnknown  = errors.New("there is no such stream here")
	ErrNotYours = errors.New("the stream is of somebody else")
	ErrTicket   = errors.New("a ticket cannot renew a stream")
)

// Renew extends an authorization to the end of another credential of the same principal. It never
// shortens it. If the principal may see something else with that credential, the stream
// switches, or ends.
func (t *Table) Renew(id string, who *credential.Identity) error {
	p := t.find(id)
	switch {
	case p == nil || p.ending.Load() != nil || p.Holder() == nil:
		return ErrUnknown
	case !p.validity.Load().who.Is(who.Principal):
		return ErrNotYours
	case who.Via == credential.ViaTicket:
		return ErrTicket
	}
	t.extend(p, who)
	t.checkOne(p)
	return nil
}

// extend extends an authorization to another credential. Whatever revokes the first credential, such as
// the end of its session, still revokes the authorization.
func (t *Table) extend(p *Authorization, who *credential.Identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[p.id] != p {
		return // it has left
	}
	t.unkey(p, p.first)
	t.key(p, who)
	p.validity.Store(validityOf(who, time.Now()).until(p.validity.Load()))
}
