package session

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
)

// Turn writes one batch of each watch that has one.
func (c *Session) Turn(out Encoder) bool {
	said := false
	for i := range c.Follows {
		said = c.TurnOf(i, out) || said
	}
	return said
}

// TurnOf writes one batch of the watch at the index, if it has one.
func (c *Session) TurnOf(i int, out Encoder) bool {
	f := &c.Follows[i]
	if c.Until && f.Sub.Synced() {
		return false // its part of this response is complete
	}
	if f.waits = c.waits(i); f.waits {
		return false
	}
	c.check(f)
	if !c.next(f) {
		return false
	}
	c.Lease.Moved()
	c.share(i)
	c.WriteBatch(f, out)
	return true
}

// waits reports whether a watch lets another one go first that is in the middle of a large
// transaction, or of deletes: until that is over, no id can be sent for any of them, and two
// watches that were never at such a place at the same time would never have one. The reset with which
// another part of a watch begins waits in any case, since it must have an id.
func (c *Session) waits(of int) bool {
	if c.Follows[of].Sub.Uncovered() {
		return false
	}
	for i := range c.Follows {
		if sub := c.Follows[i].Sub; sub.Uncovered() && (sub.Busy() || c.Follows[of].Sub.Replaces()) {
			return true
		}
	}
	return false
}

// next fills the batch with the next flush of a watch. It returns false if there is
// nothing now.
func (c *Session) next(f *Follow) bool {
	if !c.Turns {
		return f.Sub.Next(&c.Batch)
	}
	if f.Sub.NextTurn(&c.Batch) {
		return true
	}
	if f.Sub.Busy() {
		c.Lease.Moved() // the client is not the cause
	}
	return false
}

// share tells the other watches that the connection also carries the batch of one.
func (c *Session) share(of int) {
	for i := range c.Follows {
		if i != of {
			c.Follows[i].Sub.Moved(c.Batch.Bytes())
		}
	}
}

// Busy reports whether a watch has more to read, although its last turn wrote
// nothing.
func (c *Session) Busy() bool {
	for i := range c.Follows {
		if f := &c.Follows[i]; f.waits && !c.waits(i) || f.Sub.Busy() {
			return true
		}
	}
	return false
}

// check makes a watch with a large amount to read wait for the stream's turn.
func (c *Session) check(f *Follow) {
	if !c.Lease.Check(f.Sub) && c.Lease.Asks() && !c.hasMuch() {
		c.Lease.Release()
	}
	f.granted = c.Lease.Granted
}

// hasMuch reports whether a lease is still needed.
func (c *Session) hasMuch() bool {
	for i := range c.Follows {
		if limits.IsMuch(c.Follows[i].Sub) {
			return true
		}
	}
	return false
}

// Bookmarks writes the position in watches that were quiet for a heartbeat, or whose
// changes all lie outside the view.
func (c *Session) Bookmarks(now time.Time, out Encoder) bool {
	said := false
	for i := range c.Follows {
		f := &c.Follows[i]
		if c.Answer == nil && now.Sub(f.quietSince) >= c.Deps.Heartbeat && f.Sub.Bookmark(&c.Batch) {
			c.WriteBatch(f, out)
			said = true
		}
	}
	return said
}
