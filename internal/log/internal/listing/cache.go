package listing

import (
	"strconv"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/storage"
)

// Cache keeps what the listings of a log need again for their next pages. The zero value is empty. Any number of goroutines may use it.
type Cache struct {
	versions pageVersions
	sorted   sortedGroups
	newest   newest
}

// AsOf returns a version, and the seq at which to read it, that show the state at the token's
// revision: one that was kept, or the newest. It returns false if neither does.
func (c *Cache) AsOf(t Token, newest *storage.Version) (v *storage.Version, seq uint64, ok bool) {
	if v := c.versions.find(t); v != nil {
		return v, v.Seq, true
	}
	if t.Count == newest.Count() && t.isOf(newest) && c.newest.get(newest) <= t.AsOf {
		return newest, newest.Seq, true // it has only lost resources since then, and has as many
	}
	seq, ok = t.in(newest)
	return newest, seq, ok
}

// Tag names the state that a version shows: it is the place of the newest resource, and how
// many there are. As long as there is no newer one, resources can only have gone. Where
// deletes have no revision, which of them have gone depends on the replica, which the run
// names.
func (c *Cache) Tag(v *storage.Version) string {
	tag := TagOf(v.Epoch, c.newest.get(v), v.Count())
	if v.Run.Name != 0 {
		tag += "~" + strconv.FormatUint(uint64(v.Run.Name), 36)
	}
	return tag
}

// TagOf is the tag of a state with so many resources, given the revision of the newest of them, where deletes
// have a revision.
func TagOf(epoch string, newest uint64, count int) string {
	return epoch + "-" + strconv.FormatUint(newest, 10) + "." + strconv.Itoa(count)
}

// Keep keeps the version of a listing readable for its next pages.
func (c *Cache) Keep(pins *pin.Set, v *storage.Version, asOf uint64) {
	c.versions.keep(pins, v, asOf, time.Now())
}

// Expire releases versions that were not asked for lately.
func (c *Cache) Expire(pins *pin.Set) { c.versions.expire(pins) }

// SortedBytes is the memory of orders that are kept.
func (c *Cache) SortedBytes() int64 { return c.sorted.bytes() }

// ExpireSorted releases orders that were made long ago.
func (c *Cache) ExpireSorted() { c.sorted.expire() }
