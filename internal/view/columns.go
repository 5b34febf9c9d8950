package view

import (
	"bytes"
	"slices"

	"github.com/watchtide/watchtide/internal/order"
	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// Columns are the columns of several orders. They tell in which of these a change leaves a resource at its place, after one look at
// its values for all of them.
//
// Owned by one goroutine.
type Columns struct {
	at     [][]int // by order: which of all columns its own are
	finder *document.Finder

	old, new [][]byte
	known    bool // both values are JSON as far as they were read
	same     bool // no column of any order has changed; old and new are not set
}

// NewColumns returns the columns of the orders of some definitions, none of which projects.
func NewColumns(of []*Definition) *Columns {
	c := &Columns{}
	var paths []document.Path
	for _, d := range of {
		var at []int
		for _, column := range d.order {
			i := slices.IndexFunc(paths, func(p document.Path) bool { return slices.Equal(p, column.At) })
			if i < 0 {
				i, paths = len(paths), append(paths, column.At)
			}
			at = append(at, i)
		}
		c.at = append(c.at, at)
	}
	c.finder, c.old, c.new = document.NewFinder(paths), make([][]byte, len(paths)), make([][]byte, len(paths))
	return c
}

// Read reads the values of a resource before a change and after it.
func (c *Columns) Read(before, after []byte) {
	if c.same = c.finder.Unchanged(before, after); c.same {
		return
	}
	c.known = c.finder.Find(before, c.old) && c.finder.Find(after, c.new)
}

// AllSame reports whether the change certainly leaves the resource at its place in all orders.
func (c *Columns) AllSame() bool { return c.same }

// Same reports whether the change certainly leaves the resource at its place in an order.
func (c *Columns) Same(order int) bool {
	if c.same {
		return true
	}
	for _, i := range c.at[order] {
		if (c.old[i] == nil) != (c.new[i] == nil) || !bytes.Equal(c.old[i], c.new[i]) {
			return false
		}
	}
	return c.known
}

// appendColumn appends the sort key of a column; nil: it is absent.
func appendColumn(dst, text []byte, descending bool) []byte {
	if text == nil {
		return order.AppendAbsent(dst)
	}
	return order.AppendValue(dst, text, descending)
}
