package listing

import (
	"time"

	"github.com/watchtide/watchtide/stream/log/internal/pin"
	"github.com/watchtide/watchtide/stream/log/internal/version"
)

// Cache keeps what the listings of a log need again for their next pages. The zero value is empty. Any number of goroutines may use it.
type Cache struct {
	versions pageVersions
	sorted   sortedGroups
}

// Keep keeps the version of a listing readable for its next pages.
func (c *Cache) Keep(pins *pin.Set, v *version.Version, asOf uint64) {
	c.versions.keep(pins, v, asOf, time.Now())
}

// Find returns a version that was kept and shows the state at the token's revision; nil
// if there is none.
func (c *Cache) Find(t Token) *version.Version { return c.versions.find(t) }

// Expire releases versions that were not asked for lately.
func (c *Cache) Expire(pins *pin.Set) { c.versions.expire(pins) }

// SortedBytes is the memory of orders that are kept.
func (c *Cache) SortedBytes() int64 { return c.sorted.bytes() }

// ExpireSorted releases orders that were made long ago.
func (c *Cache) ExpireSorted() { c.sorted.expire() }
