package consul

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/stream"
)

// object is the remembered part of a resource: enough to decide whether another
// version is newer, or the same.
type object struct {
	version uint64
	uid     string // unique to the resource: another one of the same name has another
}

// observed is a resource as the server reported it.
type observed struct {
	object
	key string
	pb  *pbresource.Resource
}

// read checks a resource from the server. Servers before Consul 1.18 report
// changes in another form, which cannot be parsed here.
func (c *Config) read(r *pbresource.Resource) (observed, error) {
	id := r.GetId()
	version, err := strconv.ParseUint(r.GetVersion(), 10, 64)
	if err != nil || version == 0 || id.GetName() == "" || id.GetUid() == "" {
		return observed{}, fmt.Errorf("%w: %s: a resource named %.80q with uid %.80q and version %.40q: want all three, the version a number, as Consul sends them since 1.18",
			stream.ErrInvalid, c.where(), id.GetName(), id.GetUid(), r.GetVersion())
	}
	return observed{object{version, id.GetUid()}, keyOf(id), r}, nil
}

// keyOf is partition/namespace/name. A type of a wider scope has no namespace, or
// neither, and its keys omit them.
func keyOf(id *pbresource.ID) string {
	key := id.GetName()
	if namespace := id.GetTenancy().GetNamespace(); namespace != "" {
		key = namespace + "/" + key
	}
	if partition := id.GetTenancy().GetPartition(); partition != "" {
		key = partition + "/" + key
	}
	return key
}

// idOf is the id of a resource with a key.
func (s *Source) idOf(key string) *pbresource.ID {
	units := strings.Split(key, "/")
	id := &pbresource.ID{Name: units[len(units)-1], Type: s.ofType(), Tenancy: &pbresource.Tenancy{}}
	if len(units) > 1 {
		id.Tenancy.Partition = units[0]
	}
	if len(units) > 2 {
		id.Tenancy.Namespace = units[1]
	}
	return id
}

// resource renders the object for a Sink.
func (t observed) resource() (stream.Resource, error) {
	value, err := render(t.pb)
	if err != nil {
		return stream.Resource{}, fmt.Errorf("%w: value of key %.80q: %w", stream.ErrInvalid, t.key, err)
	}
	return stream.Resource{Key: t.key, Revision: t.version, Value: value}, nil
}
