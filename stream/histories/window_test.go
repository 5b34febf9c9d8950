package histories

import (
	"cmp"
	"encoding/json"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// windowCase is a window, and how the model sorts.
type windowCase struct {
	params  view.Params
	compare func(a, b stream.Resource) int
	after   string // the key behind whose place it begins, in place of an offset; its value has no members
}

// windowCases are full, partly full, in the middle, behind a place, and of a view.
var windowCases = []windowCase{
	{params: view.Params{Order: "-n", Limit: "3"}, compare: func(a, b stream.Resource) int { return cmp.Compare(memberN(b), memberN(a)) }},
	{params: view.Params{Order: "n", Limit: "2", Offset: "1", Filter: `value.n % 2 == 0`}, compare: func(a, b stream.Resource) int { return cmp.Compare(memberN(a), memberN(b)) }},
	{params: view.Params{Order: "third", Limit: "2"}, compare: byKey, after: "a/2"},
	{params: view.Params{Prefix: "a/", Order: "-n", Limit: "1", Fields: []string{"n"}}, compare: func(a, b stream.Resource) int { return cmp.Compare(memberN(b), memberN(a)) }},
}

// byKey leaves the order to the keys.
func byKey(stream.Resource, stream.Resource) int { return 0 }

// memberN returns the member n of a value.
func memberN(r stream.Resource) int {
	var value struct{ N int }
	if err := json.Unmarshal(r.Value, &value); err != nil {
		panic(err) // every value has it
	}
	return value.N
}

// newWindows returns the windows of the watch.
func newWindows(newHistory func() *streamtest.History) (parts []*part) {
	for _, c := range windowCases {
		p := &part{name: "window " + c.params.Prefix + c.params.Filter + " by " + c.params.Order, history: newHistory(), seen: map[given]bool{}}
		p.history.Window, p.sorting = true, &streamtest.Sorting{Compare: c.compare}
		if c.after != "" {
			d := parsed(c.params)
			after := stream.Resource{Key: c.after, Value: []byte("{}")}
			c.params.After, p.sorting.After = d.Cursor(string(d.AppendSortKey(nil, after))+after.Key), &after
		}
		p.params, p.definition = c.params, parsed(c.params)
		parts = append(parts, p)
	}
	return parts
}

func parsed(p view.Params) *view.Definition {
	d, err := view.Parse(p)
	if err != nil {
		panic(err)
	}
	return d
}
