package view

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/stream"
)

// Limits of a window.
const (
	MaxColumns = 8        // of its order
	MaxLimit   = 1000     // resources in it
	MaxOffset  = 1 << 31  // resources before it
	MaxCursor  = 16 << 10 // bytes of a cursor
)

// Window is which resources of a view are in a window of it.
type Window struct {
	Limit  int // how many, at most
	Offset int // how many come before them in the order
	// After is the place behind which they begin, a sort key and a key; empty: there is none.
	After string
}

// Window returns which resources of the view are in the window; false if the definition is none of a
// window.
func (d *Definition) Window() (Window, bool) { return d.window, len(d.order) > 0 }

// SortsAll reports whether the definition is one of a window of all of the watch, with whole values.
func (d *Definition) SortsAll() bool { return len(d.order) > 0 && !d.filters() && !d.Projects() }

// OrderID is the ID that all windows of one view and one order share.
func (d *Definition) OrderID() string { return d.orderID }

// AppendSortKey appends what a resource is sorted by: see package order. The resource is as Project
// leaves it.
func (d *Definition) AppendSortKey(dst []byte, r stream.Resource) []byte {
	var texts [MaxColumns][]byte
	found := texts[:len(d.order)]
	d.columns.Find(r.Value, found)
	for i, c := range d.order {
		dst = appendColumn(dst, found[i], c.Descending)
	}
	return dst
}

// parseOrder reads the parameters of a window.
func (d *Definition) parseOrder(p Params) error {
	if p.Order == "" {
		switch {
		case p.Limit != "":
			return needOrder("limit", "a limit")
		case p.Offset != "":
			return needOrder("offset", "an offset")
		case p.After != "":
			return needOrder("after", "a cursor")
		}
		return nil
	}
	if err := limitText("order", p.Order); err != nil {
		return err
	}
	columns, err := document.ParseOrder(p.Order)
	if err != nil {
		return refuse("order", p.Order, err)
	}
	if len(columns) > MaxColumns {
		return refuse("order", "", fmt.Errorf("there are %d columns, and at most %d are allowed", len(columns), MaxColumns))
	}
	var texts []string
	for i, c := range columns {
		if slices.ContainsFunc(columns[:i], func(other document.Column) bool { return slices.Equal(other.At, c.At) }) {
			return refuse("order", "", fmt.Errorf("the field %s is named twice", c.At))
		}
		if err := limitNames("order", c.At); err != nil {
			return err
		}
		texts = append(texts, c.String())
	}
	d.order, d.texts.order = columns, strings.Join(texts, ",")
	paths := make([]document.Path, len(columns))
	for i, c := range columns {
		paths[i] = c.At
	}
	d.columns = document.NewFinder(paths)
	if err := limitCanonical("order", d.texts.order); err != nil {
		return err
	}
	return d.parsePlace(p)
}

// parsePlace reads which resources of the order there are.
func (d *Definition) parsePlace(p Params) (err error) {
	if d.window.Limit, err = number("limit", p.Limit, 1, MaxLimit); err != nil {
		return err
	}
	if p.Offset != "" {
		if d.window.Offset, err = number("offset", p.Offset, 0, MaxOffset); err != nil {
			return err
		}
	}
	return d.parseAfter(p)
}

// Moved returns the window of the same view and the same order that Limit, Offset and After of p say. It costs
// much less than Parse does with a filter. d must be a window.
func (d *Definition) Moved(p Params) (*Definition, error) {
	m := &Definition{
		filtered: d.filtered, labeled: d.labeled, filter: d.filter, reads: d.reads, selector: d.selector, texts: d.texts,
		labelsAt: d.labelsAt, fields: d.fields, grants: d.grants, keys: d.keys, order: d.order, columns: d.columns, orderID: d.orderID,
	}
	m.texts.after = ""
	if err := m.parsePlace(p); err != nil {
		return nil, err
	}
	m.id = identify(m.encode(m.window))
	return m, nil
}

// parseAfter reads the cursor.
func (d *Definition) parseAfter(p Params) error {
	if p.After == "" {
		return nil
	}
	if p.Offset != "" {
		return refuse("after", "", errors.New("both after and offset are given: want one of them"))
	}
	if len(p.After) > MaxCursor {
		return refuse("after", "", fmt.Errorf("the cursor is %d bytes long, and at most %d are allowed", len(p.After), MaxCursor))
	}
	place, err := base64.RawURLEncoding.Strict().DecodeString(p.After)
	if err != nil || len(place) <= orderBytes {
		return refuse("after", "", errors.New("it is no cursor: want one as it was sent"))
	}
	if string(place[:orderBytes]) != d.orderName() {
		return refuse("after", "", errors.New("it is a cursor of another order: want one that was sent for this order"))
	}
	d.window.After, d.texts.after = string(place[orderBytes:]), p.After
	return nil
}

// orderBytes is how many bytes of a cursor name its order.
const orderBytes = 4

// orderName names the order in its cursors.
func (d *Definition) orderName() string {
	sum := sha256.Sum256([]byte(d.texts.order))
	return string(sum[:orderBytes])
}

// Cursor returns the cursor of a place in the order: a sort key, with a key after it. It is empty if it
// would be too long.
func (d *Definition) Cursor(place string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(d.orderName() + place))
	if len(text) > MaxCursor {
		return ""
	}
	return text
}

// number reads a number from least to most.
func number(parameter, text string, least, most int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	switch {
	case text == "":
		return 0, refuse(parameter, "", fmt.Errorf("it is missing: want %d to %d with an order", least, most))
	case err != nil || n < uint64(least) || n > uint64(most):
		return 0, refuse(parameter, "", fmt.Errorf("%s: want %d to %d", Quoted(text), least, most))
	}
	return int(n), nil
}

// asParameter returns a number as a parameter; nothing: 0.
func asParameter(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
