package introspection

import (
	"strings"

	"github.com/watchtide/watchtide/internal/view"
)

// View is the part of a watch that a stream follows, in canonical form.
type View struct {
	Watch  string `json:"watch"`
	Prefix string `json:"prefix,omitempty"`
	Keys   string `json:"keys,omitempty"` // with commas between them; of many the first ones
	Labels string `json:"labels,omitempty"`
	Filter string `json:"filter,omitempty"`
	Fields string `json:"fields,omitempty"` // with commas between them
	Order  string `json:"order,omitempty"`  // that of a window
	Limit  int    `json:"limit,omitempty"`
	Offset int    `json:"offset,omitempty"`
	After  string `json:"after,omitempty"`
	By     string `json:"by,omitempty"`  // by which it is counted, with commas between them
	Sum    string `json:"sum,omitempty"` // that is added
}

// ViewRef refers to a View by its definition, and by how that is counted, which all streams of the view should
// share; see authz.Part.Shared. The zero value means all of a watch.
type ViewRef struct {
	watch  string
	of     *view.Definition // nil: all of the watch
	counts *view.Grouping   // nil: the resources are followed
}

// Followed is a watch that a stream follows, and the part of it.
type Followed struct {
	Watch string
	View  ViewRef
}

// ViewOf returns the part of a watch that a definition selects; nil: all of it.
func ViewOf(watch string, d *view.Definition) ViewRef { return CountsOf(watch, d, nil) }

// CountsOf returns the counts of a part of a watch; nil: the part.
func CountsOf(watch string, d *view.Definition, g *view.Grouping) ViewRef {
	if d == nil && g == nil {
		return ViewRef{}
	}
	return ViewRef{watch: watch, of: d, counts: g}
}

// View returns what v refers to.
func (v ViewRef) View() View {
	if v == (ViewRef{}) {
		return View{}
	}
	var p view.Params
	var w view.Window
	if v.of != nil {
		p = v.of.Params()
		w, _ = v.of.Window()
	}
	by, sum := "", ""
	if v.counts != nil {
		by, sum = strings.Join(v.counts.By(), ","), v.counts.Sum()
	}
	return View{
		Watch: v.watch, Prefix: strings.ToValidUTF8(p.Prefix, "\uFFFD"), Keys: shortened(strings.Join(p.Keys, ",")), Labels: p.Labels, Filter: p.Filter,
		Fields: strings.Join(p.Fields, ","), Order: p.Order, Limit: w.Limit, Offset: w.Offset, After: p.After, By: by, Sum: sum,
	}
}

// keysShown is how many bytes of a list of keys are shown.
const keysShown = 1 << 10

// shortened returns a list of keys, with an ellipsis if it is long.
func shortened(keys string) string {
	if len(keys) > keysShown {
		keys = keys[:keysShown] + "…"
	}
	return strings.ToValidUTF8(keys, "\uFFFD")
}

// ID returns the ID of the definition, and that of how it is counted; empty: all of the watch.
func (v ViewRef) ID() (id string) {
	if v.of != nil {
		id = v.of.ID()
	}
	if v.counts != nil {
		id += "/" + v.counts.ID()
	}
	return id
}
