package difference

import (
	"sync"
	"time"

	"github.com/watchtide/watchtide/stream/memory"
)

// Cache keeps differences while readers go the way that they lead, and a moment longer, and
// counts what they hold.
//
// All methods may be called from any goroutine.
type Cache struct {
	later func(time.Duration) // static after construction; has Expire called after a time

	mu      sync.Mutex // guards the following fields
	account *memory.Account
	known   map[any]*Kept
	closed  bool
}

// NewCache returns an empty cache. What it keeps is counted in a ceiling. Expire has to be
// called some time after each call of later, which must not wait. Close it.
func NewCache(c *memory.Ceiling, later func(time.Duration)) *Cache {
	return &Cache{later: later, account: memory.NewAccount(0, c), known: map[any]*Kept{}}
}

// Kept is a difference of a cache, or the fact that there is none.
type Kept struct {
	once sync.Once
	made *Difference // nil: there is none, or it cannot be held; static once made

	// Guarded by the mutex of the cache.
	cache *Cache
	users int
	used  time.Time // when it was last asked for
	holds int64     // bytes that are counted
	known bool
}

// keepFor is how long a difference is kept after it was last asked for.
const keepFor = 2 * time.Second

// Get returns the difference with a key, which it makes if it does not know it; nil: there is
// none, or there is no memory for it. Otherwise it must be released.
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

// Expire forgets what nobody has asked for in a while.
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

// Close forgets everything that nobody uses.
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

// keep keeps a difference that was made, if there is memory for it.
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

// Release is called once by each that Get gave it to. That may be nobody.
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

// free counts what it holds out, once nobody uses it and it is not known any more.
func (k *Kept) free() {
	if k.users > 0 || k.known {
		return
	}
	_ = k.cache.account.Grow(-k.holds) // to hold less is never refused
	k.holds = 0
}
