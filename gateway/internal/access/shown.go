package access

import (
	"strconv"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/view"
)

// Shown is as much of a resource as somebody is shown.
//
// Static after construction.
type Shown struct {
	stream.Resource
	// Tag is the same for the same bytes only: the revision and, if only a part of the value
	// is shown, a dot and the ID of the definition that selects it. Empty: nothing is shown.
	Tag string
}

// whole shows all of a resource.
func whole(r stream.Resource) Shown {
	return Shown{Resource: r, Tag: strconv.FormatUint(r.Revision, 10)}
}

// show returns a resource as a view has it, and false if the view has not. A filter that
// fails does not match.
func show(r stream.Resource, d *view.Definition) (Shown, bool, error) {
	if matches, _ := d.Matches(r); !matches {
		return Shown{}, false, nil
	}
	if d.Keeps(r) {
		return whole(r), true, nil
	}
	r, err := d.Project(r)
	shown := whole(r)
	shown.Tag += "." + d.ID()
	return shown, err == nil, err
}
