package gateway

// visitor is what only the list of subscribers needs of one connection of a shard.
// Nothing here changes while it is a member of a group: what was sent to it is what
// the group said plus the difference at the time it joined.
type visitor struct {
	origin  origin
	differs delivered
}

// visitors are those of a table, in pages. They are kept apart from the slots, since
// the data written for a member at each event must be close together, and need no
// spare room as a very large slice does to grow.
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
