package admission

import "github.com/watchtide/watchtide/stream/watch"

// usesTable keeps what streams use of templates. Most streams use nothing, and take no room.
//
// Owned by the holder of the lock around it.
type usesTable struct {
	rows [][]*watch.Use
	free []int32 // numbers of rows without uses
}

// enter returns the number of the uses of a stream; 0: there are none.
func (t *usesTable) enter(uses []*watch.Use) int32 {
	if len(uses) == 0 {
		return 0
	}
	if n := len(t.free); n > 0 {
		at := t.free[n-1]
		t.free, t.rows[at-1] = t.free[:n-1], uses
		return at
	}
	t.rows = append(t.rows, uses)
	return int32(len(t.rows))
}

// leave returns the uses with a number, which is free then.
func (t *usesTable) leave(at int32) []*watch.Use {
	if at == 0 {
		return nil
	}
	uses := t.rows[at-1]
	t.rows[at-1] = nil
	if t.free = append(t.free, at); len(t.free) == len(t.rows) {
		*t = usesTable{} // slices do not shrink
	}
	return uses
}
