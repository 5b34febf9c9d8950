package consul

import (
	"regexp"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/stream"
)

// typeName is the form that Consul's own registry of types demands.
var typeName = regexp.MustCompile(`^([a-z][a-z\d_]+)\.(v(?:[a-z\d]+)?\d)\.([A-Z][A-Za-z\d]+)$`)

// WantType describes what ParseType accepts.
const WantType = "group.version.Kind, such as demo.v2.Artist"

// ParseType reads the name of a resource type, as Consul writes it: group,
// version of the group, and kind.
func ParseType(name string) (*pbresource.Type, error) {
	part := typeName.FindStringSubmatch(name)
	if part == nil {
		return nil, &stream.InvalidError{What: "resource type", Got: name, Want: WantType}
	}
	return &pbresource.Type{Group: part[1], GroupVersion: part[2], Kind: part[3]}, nil
}
