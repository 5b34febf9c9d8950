package gateway

// visitor is what only the list of subscribers knows of one connection of a shard. While
// it is a member of a group nothing here changes: what was sent to it is what was
// said by the group, and the difference that there was when it joined.
type visitor struct {
	origin  origin
	differs delivered
}

// visitors are those of a table, in pages: beside the slots, since what is written
// to a member at each event must lie close together, and without the room that a
// slice of very many has to grow.
//
// Owned by one shard.
type visitors struct{ pages []*[visitorsPage]visitor }

const visitorsPage = 256

// grow makes room for so many.
func (v *visitors) grow(slots int) {
	for len(v.pages)*visitorsPage < slots {
		v.pages = append(v.pages, new([visitorsPage]visitor))
	}
}

func (v *visitors) at(slot int32) *visitor {
	return &v.pages[slot/visitorsPage][slot%visitorsPage]
}
