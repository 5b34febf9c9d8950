package shard

import "github.com/watchtide/watchtide/gateway/internal/introspection"

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
