package pass

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/access/audit"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/access"
	"github.com/watchtide/watchtide/stream"
)

// Table has the passes of all open streams. There are no more than streams that admission
// has let in.
//
// All methods may be called from any goroutine.
type Table struct {
	// Audit is told when passes end; nil: nobody is. Static once there are passes.
	Audit *audit.Log

	judge   atomic.Pointer[Judge] // atomic
	formers formers               // which has a lock of its own

	mu    sync.Mutex // guards the following fields
	open  map[string]*Pass
	keyed map[string]map[*Pass]struct{} // by the key that revokes them
}

// NewTable returns a table without passes. Nobody is refused anything until Rejudge.
func NewTable() *Table {
	t := &Table{open: map[string]*Pass{}, keyed: map[string]map[*Pass]struct{}{}}
	t.judge.Store(&Judge{})
	return t
}

// Enter makes the pass of a stream that ends when its holder may see something else. It is
// nil if nobody was asked who they are. What has changed since the request was identified
// ends it at once. Leave must follow.
func (t *Table) Enter(who *credential.Identity, parts ...access.Part) *Pass {
	return t.enter(&Pass{parts: parts}, who)
}

// EnterSwitching is Enter for a stream that follows something else then.
func (t *Table) EnterSwitching(who *credential.Identity, parts ...access.Part) *Pass {
	return t.enter(&Pass{parts: slices.Clone(parts), switches: true}, who)
}

func (t *Table) enter(p *Pass, who *credential.Identity) *Pass {
	if who == nil {
		return nil
	}
	p.id = rand.Text()
	for _, part := range p.parts {
		p.watches = append(p.watches, part.Name())
	}
	p.validity.Store(validityOf(who, time.Now()))
	t.mu.Lock()
	t.open[p.id] = p
	t.key(p, who)
	p.first = len(p.keys)
	t.mu.Unlock()
	t.checkOne(p)
	return p
}

// key makes the keys of somebody revoke a pass. The mutex must be held.
func (t *Table) key(p *Pass, who *credential.Identity) {
	for _, key := range who.RevocationKeys() {
		if slices.Contains(p.keys, key) {
			continue
		}
		if t.keyed[key] == nil {
			t.keyed[key] = map[*Pass]struct{}{}
		}
		t.keyed[key][p] = struct{}{}
		p.keys = append(p.keys, key)
	}
}

// unkey removes all keys of a pass but the first n. The mutex must be held.
func (t *Table) unkey(p *Pass, n int) {
	for _, key := range p.keys[n:] {
		delete(t.keyed[key], p)
		if len(t.keyed[key]) == 0 {
			delete(t.keyed, key)
		}
	}
	p.keys = p.keys[:n]
}

// Leave removes the pass of a stream that has ended. If it is nil, so may the table be.
func (t *Table) Leave(p *Pass) {
	if p == nil {
		return
	}
	t.expired(p)
	t.left(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, p.id)
	t.unkey(p, 0)
}

// Count returns how many passes there are.
func (t *Table) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// Revoke ends the passes of whoever has one of the keys of principal.RevocationKeys.
func (t *Table) Revoke(key string) {
	t.mu.Lock()
	passes := make([]*Pass, 0, len(t.keyed[key]))
	for p := range t.keyed[key] {
		passes = append(passes, p)
	}
	t.mu.Unlock()
	for _, p := range passes {
		t.end(p, stream.GoodbyeRevoked)
	}
}

// Why a pass is not renewed.
var (
	ErrUnknown  = errors.New("there is no such stream here")
	ErrNotYours = errors.New("the stream is of somebody else")
	ErrTicket   = errors.New("a ticket cannot renew a stream")
)

// Renew lets a stream go on until the end of another credential of the same principal. It
// never shortens it. If the other credential lets the principal see something else, the
// stream shows that, or ends.
func (t *Table) Renew(id string, who *credential.Identity) error {
	t.mu.Lock()
	p := t.open[id]
	t.mu.Unlock()
	switch {
	case p == nil || p.ending.Load() != nil:
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

// extend makes a pass that of another credential. What revokes the first credential, such
// as the end of its session, still revokes it.
func (t *Table) extend(p *Pass, who *credential.Identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[p.id] != p {
		return // it has left
	}
	t.unkey(p, p.first)
	t.key(p, who)
	p.validity.Store(validityOf(who, time.Now()).until(p.validity.Load()))
}
