package gateway

import (
	"container/list"
	"context"
	"sync"

	"github.com/watchtide/watchtide/gateway/internal/admission"
)

// budget bounds the bytes that requests hold in memory at a time, both in total and
// for each client. One client may hold at most a quarter, so that it cannot leave the
// others without room.
//
// A claim that finds no room waits. Clients take turns, and the claims of one client
// are granted in the order in which they came. A client that has used up its share
// delays only itself. For room in the whole budget, all clients wait behind the
// first, so that a large claim gets its turn among small ones.
//
// All methods may be called from any goroutine.
type budget struct {
	// Static after construction.
	size  int64
	share int64 // of one client, and therefore the largest claim

	mu       sync.Mutex // guards the following fields, accounts, and claims
	taken    int64
	waiting  int
	accounts map[admission.Client]*account
	queue    list.List // of the accounts that have waiting claims
}

// account is what one client has of a budget. A client without claims has none.
type account struct {
	client  admission.Client
	taken   int64
	waiting list.List     // of claims
	place   *list.Element // in the queue; nil: nothing waits
}

// claim is a part of a budget, or waits to be one.
type claim struct {
	// Static after construction.
	budget  *budget
	account *account
	granted chan struct{} // closed at the end of the wait; nil: there was none

	// Guarded by the budget.
	bytes int64
	place *list.Element // among those that wait; nil: it does not
}

// clientShare is the number by which a budget is divided to get the part that one
// client may have.
const clientShare = 4

// newBudget returns a budget of size bytes.
func newBudget(size int64) *budget { return newSharedBudget(size, max(1, size/clientShare)) }

// newSharedBudget returns a budget of which one client may have at most share bytes.
func newSharedBudget(size, share int64) *budget {
	return &budget{size: size, share: share, accounts: map[admission.Client]*account{}}
}

// take waits for n bytes, or for all that one client may have if that is less. It
// fails with the error of the context. The claim must be released.
func (b *budget) take(ctx context.Context, of admission.Client, n int64) (*claim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := b.ask(of, n)
	if c.granted == nil {
		return c, nil
	}
	select {
	case <-c.granted:
		return c, nil
	case <-ctx.Done():
		c.release()
		return nil, ctx.Err()
	}
}

// tryTake is take for a request that cannot wait. It returns nil if there is no room.
func (b *budget) tryTake(of admission.Client, n int64) *claim {
	c := b.ask(of, n)
	if c.granted == nil {
		return c
	}
	c.release()
	return nil
}

func (b *budget) ask(of admission.Client, n int64) *claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[of]
	if a == nil {
		a = &account{client: of}
		b.accounts[of] = a
	}
	c := &claim{budget: b, account: a, bytes: min(max(n, 0), b.share)}
	c.place = a.waiting.PushBack(c)
	b.waiting++
	if a.place == nil {
		a.place = b.queue.PushBack(a)
	}
	b.letIn()
	if c.place != nil {
		c.granted = make(chan struct{})
	}
	return c
}

// letIn grants the waiting claims for which there is room.
func (b *budget) letIn() {
	for e := b.queue.Front(); e != nil; {
		a := e.Value.(*account)
		c := a.waiting.Front().Value.(*claim)
		switch {
		case a.taken+c.bytes > b.share:
			e = e.Next()
		case b.taken+c.bytes > b.size:
			return
		default:
			b.grant(c)
			e = b.queue.Front()
		}
	}
}

func (b *budget) grant(c *claim) {
	b.unqueue(c)
	b.taken += c.bytes
	c.account.taken += c.bytes
	if c.granted != nil {
		close(c.granted)
	}
}

// unqueue ends the wait of a claim, and moves the client's next claim behind those of
// other clients.
func (b *budget) unqueue(c *claim) {
	a := c.account
	a.waiting.Remove(c.place)
	c.place = nil
	b.waiting--
	if a.waiting.Len() > 0 {
		b.queue.MoveToBack(a.place)
		return
	}
	b.queue.Remove(a.place)
	a.place = nil
}

// shrink gives back all but n bytes.
func (c *claim) shrink(n int64) {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	back := c.bytes - min(max(n, 0), c.bytes)
	c.bytes -= back
	b.giveBack(c.account, back)
}

// release gives everything back, or ends the wait. It may be called more than once,
// and on a nil claim.
func (c *claim) release() {
	if c == nil {
		return
	}
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.place != nil {
		b.unqueue(c)
		c.bytes = 0
	}
	back := c.bytes
	c.bytes = 0
	b.giveBack(c.account, back)
}

func (b *budget) giveBack(a *account, n int64) {
	b.taken -= n
	a.taken -= n
	b.letIn()
	if a.taken == 0 && a.place == nil && b.accounts[a.client] == a {
		delete(b.accounts, a.client)
	}
}

// now returns the number of bytes taken and the number of claims that wait.
func (b *budget) now() (taken int64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken, b.waiting
}
