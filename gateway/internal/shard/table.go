package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// table holds the connections of a shard, without pointers, so that the garbage
// collector has nothing to scan. Slots are reused under a new generation.
//
// Owned by one shard.
type table struct {
	slots    []slot
	visitors visitors // by slot
	free     []int32
	count    int
}

// slot is one connection. A member of a group is nothing but its slot.
type slot struct {
	handle     epoll.Handle
	generation uint32
	ref        limits.Ref // under which the stream was admitted
	group      int32      // index of its group, if it is a member
	place      int32      // in the group
	sent       uint64     // how much of the group's output was written

	retryMS int32
	gap     wire.Gap // between its sum and the group's, if they are compressed
	kind    slotKind
	ended   bool  // the client sends nothing more, but may still read
	drains  bool  // it must leave because the gateway drains
	stamp   int64 // of its identity, see introspection.Nanos, like the following
	leaves  int64 // when it must leave; 0: never
	looked  int64 // when the wheel will look at the slot; 0: it will not
}

// slotKind is what a slot holds.
type slotKind uint8

const (
	vacantSlot   slotKind = iota // no connection
	unsharedSlot                 // a stream that has bytes of its own
	memberSlot                   // a member of a group
)

// add adds a connection.
func (t *table) add(h epoll.Handle, as limits.Ref) int32 {
	t.count++
	at := int32(len(t.slots))
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.slots = append(t.slots, slot{})
		t.visitors.grow(len(t.slots))
	}
	t.slots[at] = slot{handle: h, generation: t.slots[at].generation + 1, kind: unsharedSlot, ref: as}
	return at
}

// remove removes a connection, and returns the admission of its stream.
func (t *table) remove(at int32) limits.Ref {
	t.count--
	t.slots[at].kind = vacantSlot
	t.free = append(t.free, at)
	return t.slots[at].ref
}

// clear removes all connections.
func (t *table) clear() {
	t.free, t.count = t.free[:0], 0
	for at := range t.slots {
		t.slots[at].kind = vacantSlot
		t.free = append(t.free, int32(at))
	}
}

// identity returns the identity of the connection's stream.
func (t *table) identity(at int32) introspection.Identity {
	return introspection.Identity{Stamp: t.slots[at].stamp, Origin: t.visitors.at(at).origin}
}

// key identifies the connection in a slot, and no later one.
func (t *table) key(at int32) uint64 { return uint64(uint32(at)) | uint64(t.slots[at].generation)<<32 }

// find returns the slot of a key. It returns false if the connection is gone.
func (t *table) find(key uint64) (int32, bool) {
	at := uint32(key)
	if uint64(at) >= uint64(len(t.slots)) {
		return 0, false
	}
	s := &t.slots[at]
	return int32(at), s.kind != vacantSlot && s.generation == uint32(key>>32)
}

// due returns when a member must end; zero: never.
func (s *slot) due() time.Time { return introspection.FromNanos(s.leaves) }

// drain makes a member end at the given time, unless it reaches its maximum age
// first.
func (s *slot) drain(at time.Time) {
	nanos := introspection.Nanos(at)
	if !s.drains && (s.leaves == 0 || nanos < s.leaves) {
		s.leaves, s.drains = nanos, true
	}
}

// visitor holds the data of one connection that only the list of subscribers uses.
// Nothing here changes while it is a member of a group: its sent bytes are those of
// the group plus the difference at the time it joined.
type visitor struct {
	origin  introspection.Origin
	differs introspection.Delivered
}

// visitors are those of a table. They are apart from the slots, since the data written
// for a member at each event must be close together, and in pages, which need no spare
// room to grow as a very large slice does.
//
// Owned by one shard.
type visitors struct{ pages []*[visitorsPage]visitor }

const visitorsPage = 256

// grow makes room for that many slots.
func (v *visitors) grow(slots int) {
	for len(v.pages)*visitorsPage < slots {
		v.pages = append(v.pages, new([visitorsPage]visitor))
	}
}

func (v *visitors) at(slot int32) *visitor {
	return &v.pages[slot/visitorsPage][slot%visitorsPage]
}
