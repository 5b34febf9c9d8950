//go:build servers

package soak

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
)

// part is what a subscriber follows of a watch.
//
// Static after construction.
type part struct {
	params     view.Params
	definition *view.Definition
}

// whole is all of a watch.
var whole = newPart(view.Params{})

func newPart(p view.Params) *part {
	d, err := view.Parse(p)
	if err != nil {
		panic(err)
	}
	return &part{p, d}
}

// partOf is what the i-th subscriber follows: a view that an index finds by its keys or by
// a member of the values, one that has to be asked about each change and shows only some
// fields, or, mostly, all of the watch.
func partOf(i int) *part {
	switch i % 7 {
	case 0:
		return newPart(view.Params{Prefix: fmt.Sprintf("f%d/", rand.IntN(folders))})
	case 1:
		return newPart(view.Params{Filter: fmt.Sprintf("value.team == %q", team())})
	case 2:
		return newPart(view.Params{Filter: "size(value.text) > 100", Fields: []string{"n", "team"}})
	}
	return whole
}

// add adds the parameters to a query, with a suffix.
func (p *part) add(query url.Values, suffix string) {
	for name, value := range map[string]string{"prefix": p.params.Prefix, "filter": p.params.Filter, "fields": strings.Join(p.params.Fields, ",")} {
		if value != "" {
			query.Set(name+suffix, value)
		}
	}
}

// of returns the truth of the part, of that of all. To narrow it takes a while, so call it
// with no more than is needed.
func (p *part) of(all *streamtest.Truth) *streamtest.Truth {
	if p.definition.IsWhole() {
		return all
	}
	return streamtest.TruthOfView(all, p.definition)
}
