package authz

import (
	"strconv"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Shown is a resource with as much of its value as a client may see.
//
// Static after construction.
type Shown struct {
	stream.Resource
	// Tag identifies these bytes: it is the revision and, if only a part of the value is shown,
	// a dot and the ID of the definition that selects the part. It is empty if nothing is
	// shown.
	Tag string
}

// whole returns a resource with its whole value.
func whole(r stream.Resource) Shown {
	return Shown{Resource: r, Tag: strconv.FormatUint(r.Revision, 10)}
}

// show returns a resource as a view has it, or false if it is not in the view. A filter that
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
