package histories

import (
	"fmt"
	"strconv"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// countCase is how resources are counted, and how the model counts.
type countCase struct {
	by, sum string
	model   func(map[string]stream.Resource) map[string]string
}

var countCases = []countCase{
	{by: "n", model: func(all map[string]stream.Resource) map[string]string {
		groups := map[string]string{}
		for _, r := range all {
			groups[strconv.Itoa(memberN(r))] = `{"count":1}` // no two have the same
		}
		return groups
	}},
	{by: "third", sum: "n", model: func(all map[string]stream.Resource) map[string]string {
		if len(all) == 0 {
			return nil
		}
		sum, least, greatest := 0, 0, 0
		for _, r := range all {
			n := memberN(r)
			sum, greatest = sum+n, max(greatest, n)
			if least == 0 || n < least {
				least = n
			}
		}
		return map[string]string{"null": fmt.Sprintf(`{"count":%d,"sum":%d,"min":%d,"max":%d}`, len(all), sum, least, greatest)}
	}},
}

// newCounts returns the counts of the watch.
func newCounts(newHistory func() *streamtest.History) (parts []*part) {
	for _, c := range countCases {
		g, err := view.ParseGrouping([]string{c.by}, c.sum)
		if err != nil {
			panic(err)
		}
		p := &part{name: "counts by " + c.by, history: newHistory(), seen: map[given]bool{}, grouping: g, count: c.model}
		p.history.Groups = true
		parts = append(parts, p)
	}
	return parts
}
