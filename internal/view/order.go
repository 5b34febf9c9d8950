package view

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/internal/order"
	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/stream"
)

// Limits of a window.
const (
	MaxColumns = 8       // of its order
	MaxLimit   = 1000    // resources in it
	MaxOffset  = 1 << 31 // resources before it
)

// Window is which resources of a view are in a window of it.
type Window struct {
	Limit  int // how many, at most
	Offset int // how many come before them in the order
}

// Window returns which resources of the view are in the window; false if the definition is none of a
// window.
func (d *Definition) Window() (Window, bool) { return d.window, len(d.order) > 0 }

// OrderID is the ID that all windows of one view and one order share.
func (d *Definition) OrderID() string { return d.orderID }

// AppendSortKey appends what a resource is sorted by: see package order. The resource is as Project
// leaves it.
func (d *Definition) AppendSortKey(dst []byte, r stream.Resource) []byte {
	for _, c := range d.order {
		text, ok := document.Find(r.Value, c.At)
		if !ok {
			dst = order.AppendAbsent(dst)
			continue
		}
		dst = order.AppendValue(dst, text, c.Descending)
	}
	return dst
}

// parseOrder reads the parameters of a window.
func (d *Definition) parseOrder(p Params) error {
	if p.Order == "" {
		switch {
		case p.Limit != "":
			return refuse("limit", "", errors.New("a limit belongs to an order: want order=… too"))
		case p.Offset != "":
			return refuse("offset", "", errors.New("an offset belongs to an order: want order=… too"))
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
	for _, c := range columns {
		if err := limitNames("order", c.At); err != nil {
			return err
		}
		texts = append(texts, c.String())
	}
	if d.window.Limit, err = number("limit", p.Limit, 1, MaxLimit); err != nil {
		return err
	}
	if p.Offset != "" {
		if d.window.Offset, err = number("offset", p.Offset, 0, MaxOffset); err != nil {
			return err
		}
	}
	d.order, d.texts.order = columns, strings.Join(texts, ",")
	return limitCanonical("order", d.texts.order)
}

// number reads a number from least to most.
func number(parameter, text string, least, most int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	switch {
	case text == "":
		return 0, refuse(parameter, "", fmt.Errorf("it is missing: want %d to %d with an order", least, most))
	case err != nil || n < uint64(least) || n > uint64(most):
		return 0, refuse(parameter, "", fmt.Errorf("%.20q: want %d to %d", text, least, most))
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
