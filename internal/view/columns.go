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
	of       []*Definition
	at       [][]int // by definition: which of all columns its own are
	finder   *document.Finder
	old, new [][]byte
	known    bool // both values are JSON as far as they were read
}

// NewColumns returns the columns of the orders of some definitions, none of which projects.
func NewColumns(of []*Definition) *Columns {
	c := &Columns{of: of}
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
	c.known = c.finder.Find(before, c.old) && c.finder.Find(after, c.new)
}

// Same reports whether the change certainly leaves the resource at its place in an order.
func (c *Columns) Same(order int) bool {
	for _, i := range c.at[order] {
		if (c.old[i] == nil) != (c.new[i] == nil) || !bytes.Equal(c.old[i], c.new[i]) {
			return false
		}
	}
	return c.known
}

// AppendSortKey appends what the resource is sorted by in an order after the change.
func (c *Columns) AppendSortKey(dst []byte, of int) []byte {
	for n, i := range c.at[of] {
		dst = appendColumn(dst, c.new[i], c.of[of].order[n].Descending)
	}
	return dst
}

// appendColumn appends the sort key of a column; nil: it is absent.
func appendColumn(dst, text []byte, descending bool) []byte {
	if text == nil {
		return order.AppendAbsent(dst)
	}
	return order.AppendValue(dst, text, descending)
}
