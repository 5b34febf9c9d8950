package wire

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// Key names a text. Two texts with the same key are the same.
type Key struct {
	Place  uint64 // where the text is; never reused for another location
	Parts  string // which part of it, and how it is written
	Coding Coding
}

// Cache holds the most recently used pieces, within a budget, so that a text is
// compressed once for all streams that hold it.
//
// All methods may be called from any goroutine.
type Cache struct {
	fingerprint fingerprint // static after construction

	// Atomic: for the metrics.
	hits, misses atomic.Uint64
	bytes        atomic.Int64 // written under mu

	mu      sync.Mutex // guards the following fields
	budget  int64
	entries map[Key]*list.Element
	used    *list.List // of *cached, the most recently used in front
}

// cached is a piece that is made or being made.
type cached struct {
	// Static after construction.
	key Key

	once  sync.Once
	piece Piece // once made: static
	size  int64 // counted in bytes; guarded by Cache.mu
}

// overhead is the size of a piece's entry besides the piece and its key.
const overhead = 320

// NewCache returns a cache that holds up to budget bytes.
func NewCache(budget int64) *Cache {
	return &Cache{fingerprint: newFingerprint(), budget: budget, entries: map[Key]*list.Element{}, used: list.New()}
}

// Piece returns the piece of a text in a coding. It waits while another caller makes the same
// piece.
func (c *Cache) Piece(in Coding, place uint64, parts []byte, text [][]byte) Piece {
	e := c.find(in, place, parts)
	e.once.Do(func() {
		e.piece = in.Compress(text)
		c.made(e)
	})
	return e.piece
}

// find returns the entry of a text, new or not.
func (c *Cache) find(in Coding, place uint64, parts []byte) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.entries[Key{place, string(parts), in}]; at != nil {
		c.hits.Add(1)
		c.used.MoveToFront(at)
		return at.Value.(*cached)
	}
	c.misses.Add(1)
	e := &cached{key: Key{place, string(parts), in}}
	c.entries[e.key] = c.used.PushFront(e)
	return e
}

// made counts a new piece and evicts others to make room for it.
func (c *Cache) made(e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.entries[e.key]; at == nil || at.Value != e {
		return // it was evicted meanwhile
	}
	e.size = overhead + int64(len(e.key.Parts)+len(e.piece.Bytes))
	c.bytes.Add(e.size)
	c.shrink()
}

// Resize changes how many bytes the cache holds at most.
func (c *Cache) Resize(budget int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget = budget
	c.shrink()
}

// shrink evicts pieces until the others fit. c.mu is held.
func (c *Cache) shrink() {
	for c.bytes.Load() > c.budget {
		c.drop(c.used.Back())
	}
}

func (c *Cache) drop(at *list.Element) {
	e := c.used.Remove(at).(*cached)
	delete(c.entries, e.key)
	c.bytes.Add(-e.size)
}

// Stats are the counts of a cache since it was made, and its current size in
// bytes.
type Stats struct {
	Hits, Misses uint64
	Bytes        int64
}

// Plus returns the statistics of two caches together.
func (s Stats) Plus(other Stats) Stats {
	return Stats{Hits: s.Hits + other.Hits, Misses: s.Misses + other.Misses, Bytes: s.Bytes + other.Bytes}
}

// Stats returns what the cache has done so far.
func (c *Cache) Stats() Stats {
	return Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Bytes: c.bytes.Load()}
}
