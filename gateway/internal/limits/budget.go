package limits

import (
	"container/list"
	"context"
	"sync"
)

// Budget bounds the bytes that requests hold in memory at a time, both in total and
// for each client. One client may hold at most a quarter, so that it cannot starve
// the others.
//
// A claim that finds no room waits. Clients take turns, and the claims of one client
// are granted in the order in which they came. A client that has used up its share
// delays only itself. For room in the whole budget, all clients wait behind the
// first, so that a large claim gets its turn among small ones.
//
// All methods may be called from any goroutine.
type Budget struct {
	mu       sync.Mutex // guards the following fields, accounts, and claims
	size     int64
	share    int64 // of one client, and therefore the largest claim
	taken    int64
	waiting  int
	accounts map[Client]*account
	queue    list.List // of the accounts that have waiting claims
}

// account is one client's part of a budget. A client without claims has none.
type account struct {
	client  Client
	taken   int64
	waiting list.List     // of claims
	place   *list.Element // in the queue; nil: no claim waits
}

// Claim is a part of a budget, granted or waiting.
type Claim struct {
	// Static after construction.
	budget  *Budget
	account *account
	granted chan struct{} // closed at the end of the wait; nil: there was none

	// Guarded by the budget.
	bytes int64
	place *list.Element // in the queue; nil: it does not wait
}

// ClientShare is the number by which a budget is divided to get the part that one
// client may have.
const ClientShare = 4

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget { return NewSharedBudget(size, max(1, size/ClientShare)) }

// NewSharedBudget returns a budget of which one client may have at most share bytes.
func NewSharedBudget(size, share int64) *Budget {
	return &Budget{size: size, share: share, accounts: map[Client]*account{}}
}

// Resize changes the size of the budget, and so the share of each client; see ClientShare. What
// is in use stays in use.
func (b *Budget) Resize(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size, b.share = size, max(1, size/ClientShare)
	b.grantWaiting()
}

// Take waits for n bytes, or for the share of one client if that is less. It
// fails with the error of the context. The claim must be released.
func (b *Budget) Take(ctx context.Context, of Client, n int64) (*Claim, error) {
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
		c.Release()
		return nil, ctx.Err()
	}
}

// TryTake is Take for a request that cannot wait. It returns nil if there is no room.
func (b *Budget) TryTake(of Client, n int64) *Claim {
	c := b.ask(of, n)
	if c.granted == nil {
		return c
	}
	c.Release()
	return nil
}

func (b *Budget) ask(of Client, n int64) *Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[of]
	if a == nil {
		a = &account{client: of}
		b.accounts[of] = a
	}
	c := &Claim{budget: b, account: a, bytes: min(max(n, 0), b.share)}
	c.place = a.waiting.PushBack(c)
	b.waiting++
	if a.place == nil {
		a.place = b.queue.PushBack(a)
	}
	b.grantWaiting()
	if c.place != nil {
		c.granted = make(chan struct{})
	}
	return c
}

// grantWaiting grants the waiting claims for which there is room.
func (b *Budget) grantWaiting() {
	for e := b.queue.Front(); e != nil; {
		a := e.Value.(*account)
		c := a.waiting.Front().Value.(*Claim)
		switch {
		case a.taken > 0 && a.taken+c.bytes > b.share:
			e = e.Next()
		case b.taken > 0 && b.taken+c.bytes > b.size:
			return
		default:
			b.grant(c)
			e = b.queue.Front()
		}
	}
}

func (b *Budget) grant(c *Claim) {
	b.unqueue(c)
	b.taken += c.bytes
	c.account.taken += c.bytes
	if c.granted != nil {
		close(c.granted)
	}
}

// unqueue ends the wait of a claim, and moves the client's next claim behind those of
// other clients.
func (b *Budget) unqueue(c *Claim) {
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

// Shrink releases all but n bytes.
func (c *Claim) Shrink(n int64) {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	back := c.bytes - min(max(n, 0), c.bytes)
	c.bytes -= back
	b.giveBack(c.account, back)
}

// Release releases everything, or ends the wait. It may be called more than once,
// and on a nil claim.
func (c *Claim) Release() {
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

func (b *Budget) giveBack(a *account, n int64) {
	b.taken -= n
	a.taken -= n
	b.grantWaiting()
	if a.taken == 0 && a.place == nil && b.accounts[a.client] == a {
		delete(b.accounts, a.client)
	}
}

// Now returns the number of bytes taken and the number of claims that wait.
func (b *Budget) Now() (taken int64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken, b.waiting
}
