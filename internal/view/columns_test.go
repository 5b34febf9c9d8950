package view

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/stream"
)

// TestColumns compares what the columns of several orders say of a change with the sort keys of each order.
func TestColumns(t *testing.T) {
	var of []*Definition
	for _, order := range []string{"a", "-a,b", "c.d,a", "c", "-c.d.e,c.d", "e"} {
		of = append(of, windowOf(t, Params{Order: order, Limit: "5"}))
	}
	rapid.Check(t, func(t *rapid.T) {
		c := NewColumns(of)
		part := rapid.SampledFrom([]string{`"a":1`, `"a":2`, `"a":"x"`, `"b":1`, `"b":null`, `"c":{"d":1}`, `"c":{"d":{"e":2}}`, `"c":{"d"}`, `"c":7`, `"f":0`, `x`})
		value := rapid.Custom(func(t *rapid.T) []byte {
			parts := rapid.SliceOfN(part, 0, 4).Draw(t, "parts")
			out := []byte("{")
			for i, p := range parts {
				if i > 0 {
					out = append(out, ',')
				}
				out = append(out, p...)
			}
			return append(out, rapid.SampledFrom([]string{"}", "}", "}", ""}).Draw(t, "end")...)
		})
		before, after := value.Draw(t, "before"), value.Draw(t, "after")
		c.Read(before, after)
		for i, d := range of {
			if !c.Same(i) && !c.AllSame() {
				continue
			}
			was, is := d.AppendSortKey(nil, stream.Resource{Value: before}), d.AppendSortKey(nil, stream.Resource{Value: after})
			if !bytes.Equal(was, is) {
				t.Fatalf("%s and %s have the same place in %s: %q, %q", before, after, d.Params().Order, was, is)
			}
		}
	})
	for _, c := range []struct {
		before, after string
		same          []bool // in each order
	}{
		{`{"a":1,"f":0}`, `{"a":1,"f":1}`, []bool{true, true, true, true, true, true}},
		{`{"a":1,"b":1}`, `{"a":1,"b":2}`, []bool{true, false, true, true, true, true}},
		{`{"a":1}`, `{"a":2}`, []bool{false, false, false, true, true, true}},
	} {
		columns, all := NewColumns(of), true
		columns.Read([]byte(c.before), []byte(c.after))
		for i, want := range c.same {
			all = all && want
			if got := columns.Same(i); got != want {
				t.Errorf("%s and %s have the same place in %s: %v, want %v", c.before, c.after, of[i].Params().Order, got, want)
			}
		}
		if got := columns.AllSame(); got != all {
			t.Errorf("%s and %s have the same place in all orders: %v, want %v", c.before, c.after, got, all)
		}
	}
}
