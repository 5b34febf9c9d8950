package jwt

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/watchtide/watchtide/access"
)

// Limits of the cache of verified tokens.
const (
	maxCached      = 20_000
	maxCachedBytes = 64 << 20
	bytesPerToken  = 512 // besides its principal
)

// tokenHash is the SHA-256 of a token. The cache does not have the tokens themselves.
type tokenHash [32]byte

// verified is a token that is genuine. Static after construction.
type verified struct {
	principal *access.Principal
	issuer    *issuer
	key       digest
	bytes     int
}

// cache has the verified tokens that were used last.
type cache struct {
	mu sync.Mutex
	// Guarded by mu.
	entries *simplelru.LRU[tokenHash, *verified]
	bytes   int
}

func newCache() *cache {
	c := &cache{}
	entries, err := simplelru.NewLRU(maxCached, func(_ tokenHash, v *verified) { c.bytes -= v.bytes })
	if err != nil {
		panic(err) // the size is positive
	}
	c.entries = entries
	return c
}

func (c *cache) get(h tokenHash) *verified {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, _ := c.entries.Get(h)
	return v
}

func (c *cache) add(h tokenHash, v *verified) {
	v.bytes = bytesPerToken + v.principal.Size()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Remove(h)
	c.entries.Add(h, v)
	for c.bytes += v.bytes; c.bytes > maxCachedBytes; {
		c.entries.RemoveOldest()
	}
}

func (c *cache) remove(h tokenHash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Remove(h)
}

// expired reports whether a cached token has expired.
func (v *verified) expired(now time.Time) bool { return !now.Before(v.principal.Expires) }
