package subscribers

import (
	"strings"
	"unique"

	"github.com/watchtide/watchtide/stream/view"
)

// View is the part of a watch that a stream follows, in canonical form.
type View struct {
	Watch  string `json:"watch"`
	Prefix string `json:"prefix,omitempty"`
	Labels string `json:"labels,omitempty"`
	Filter string `json:"filter,omitempty"`
	Fields string `json:"fields,omitempty"` // with commas between them

	definition string // its ID
}

// ViewRef refers to a View that all streams of it share. The zero value means all of a
// watch.
type ViewRef struct{ shared unique.Handle[View] }

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
	p := d.Params()
	return ViewRef{unique.Make(View{
		Watch: watch, Prefix: strings.ToValidUTF8(p.Prefix, "\uFFFD"), Labels: p.Labels, Filter: p.Filter,
		Fields: strings.Join(p.Fields, ","), definition: d.ID(),
	})}
}

// Definition returns the ID of the definition; empty: all of the watch.
func (v ViewRef) Definition() string {
	if v == (ViewRef{}) {
		return ""
	}
	return v.shared.Value().definition
}
