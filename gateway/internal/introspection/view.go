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
}

// ViewRef refers to a View by its definition, which all streams of the view should share; see
// authz.Part.Shared. The zero value means all of a watch.
type ViewRef struct {
	watch string
	of    *view.Definition
}

// Followed is a watch that a stream follows, and the part of it.
type Followed struct {
	Watch string
	View  ViewRef
}

// ViewOf returns the part of a watch that a definition selects; nil: all of it.
func ViewOf(watch string, d *view.Definition) ViewRef {
	if d == nil {
		return ViewRef{}
	}
	return ViewRef{watch: watch, of: d}
}

// View returns what v refers to.
func (v ViewRef) View() View {
	if v.of == nil {
		return View{}
	}
	p := v.of.Params()
	w, _ := v.of.Window()
	return View{
		Watch: v.watch, Prefix: strings.ToValidUTF8(p.Prefix, "\uFFFD"), Keys: shortened(strings.Join(p.Keys, ",")), Labels: p.Labels, Filter: p.Filter,
		Fields: strings.Join(p.Fields, ","), Order: p.Order, Limit: w.Limit, Offset: w.Offset, After: p.After,
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

// Definition returns the ID of the definition; empty: all of the watch.
func (v ViewRef) Definition() string {
	if v.of == nil {
		return ""
	}
	return v.of.ID()
}
