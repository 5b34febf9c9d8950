package difference

import (
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
)

// Cache keeps each difference while readers use it, and keepFor longer, and counts its memory.
//
// All methods may be called from any goroutine.
type Cache struct {
	later func(time.Duration) // static after construction; arranges a call of Expire

	mu      sync.Mutex // guards the following fields
	account *memory.Account
	known   map[any]*Kept
	closed  bool
}

// NewCache returns an empty cache, whose memory is counted in a ceiling. Expire must be called
// some time after each call of later, which must not block. Close the cache after use.
func NewCache(c *memory.Ceiling, later func(time.Duration)) *Cache {
	return &Cache{later: later, account: memory.NewAccount(0, c), known: map[any]*Kept{}}
}

// Kept is an entry of a cache: a difference, or the fact that there is none.
type Kept struct {
	once sync.Once
	made *Difference // nil: there is none, or no memory for it; static once made

	// Guarded by the mutex of the cache.
	cache *Cache
	users int
	used  time.Time // when it was last asked for
	holds int64     // bytes that are counted
	known bool
}

// keepFor is how long a difference is kept after it was last asked for.
const keepFor = 2 * time.Second

// Get returns the difference with a key. If the cache does not have it, Get makes it. It
// returns nil if there is no difference, or no memory for it. Otherwise the caller must release
// it.
func (c *Cache) Get(key any, make func() *Difference) *Kept {
	k := c.find(key)
	k.once.Do(func() { k.keep(make()) })
	if k.made == nil {
		k.Release()
		return nil
	}
	return k
}

func (c *Cache) find(key any) *Kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[key]
	if k == nil {
		k = &Kept{cache: c, known: !c.closed}
		if k.known {
			c.known[key] = k
		}
		if len(c.known) == 1 {
			c.later(keepFor)
		}
	}
	k.users++
	k.used = time.Now()
	return k
}

// Expire removes the differences that nobody has asked for within keepFor.
func (c *Cache) Expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, k := range c.known {
		if time.Since(k.used) >= keepFor {
			delete(c.known, key)
			k.forget()
		}
	}
	if len(c.known) > 0 {
		c.later(keepFor)
	}
}

// Close removes all differences that are not in use.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for key, k := range c.known {
		delete(c.known, key)
		k.forget()
	}
}

// Difference returns the difference.
func (k *Kept) Difference() *Difference { return k.made }

// keep keeps a new difference, if there is memory for it.
func (k *Kept) keep(d *Difference) {
	if d == nil {
		return
	}
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	if k.cache.account.Grow(d.Holds) == nil {
		k.made, k.holds = d, d.Holds
	}
}

// Release must be called once for each call of Get that returned k.
func (k *Kept) Release() {
	if k == nil {
		return
	}
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	k.users--
	k.free()
}

func (k *Kept) forget() {
	k.known = false
	k.free()
}

// free gives back the memory of an entry that is neither in use nor in the cache.
func (k *Kept) free() {
	if k.users > 0 || k.known {
		return
	}
	_ = k.cache.account.Grow(-k.holds) // giving back is never refused
	k.holds = 0
}
