package limits

import "github.com/watchtide/watchtide/stream/watch"

// usesTable keeps the streams that use watches of templates: most use none, and take no room.
//
// Owned by the holder of the lock around it.
type usesTable struct {
	rows []usesRow
	free []int32 // numbers of rows of no stream
}

// usesRow is one stream.
type usesRow struct {
	watches int32 // the set of its watches
	uses    []*watch.Use
}

// enter returns the number of the row of a stream, at least 1.
func (t *usesTable) enter(watches int32, uses []*watch.Use) int32 {
	row := usesRow{watches, uses}
	if n := len(t.free); n > 0 {
		at := t.free[n-1]
		t.free, t.rows[at-1] = t.free[:n-1], row
		return at
	}
	t.rows = append(t.rows, row)
	return int32(len(t.rows))
}

// leave returns what the row of a number has, which is free then.
func (t *usesTable) leave(at int32) (watches int32, uses []*watch.Use) {
	row := t.rows[at-1]
	t.rows[at-1] = usesRow{}
	if t.free = append(t.free, at); len(t.free) == len(t.rows) {
		*t = usesTable{} // slices do not shrink
	}
	return row.watches, row.uses
}
