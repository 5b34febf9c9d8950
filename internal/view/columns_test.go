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
	same, all := 0, 0
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
		if c.AllSame() {
			all++
		}
		for i, d := range of {
			if !c.Same(i) {
				continue
			}
			same++
			was, is := d.AppendSortKey(nil, stream.Resource{Value: before}), d.AppendSortKey(nil, stream.Resource{Value: after})
			if !bytes.Equal(was, is) {
				t.Fatalf("%s and %s have the same place in %s: %q, %q", before, after, d.Params().Order, was, is)
			}
		}
	})
	if same == 0 || all == 0 {
		t.Errorf("%d changes leave a resource at its place, %d at all places", same, all)
	}
}
