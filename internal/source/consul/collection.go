package consul

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// The collections.
const (
	// KV are keys of the key-value store.
	KV = "kv"
	// Health are instances of services with their checks.
	Health = "health"
	// Services are the names of services, with the tags that their instances have.
	Services = "services"
	// Nodes are the nodes of the catalog.
	Nodes = "nodes"
	// Checks are the checks of nodes and of instances of services.
	Checks = "checks"
	// Intentions say which services of the mesh may connect to which.
	Intentions = "intentions"
	// Resource are resources of the resource service. It is the default.
	Resource = "resource"
)

// Collections are those that can be followed.
var Collections = []string{Checks, Health, Intentions, KV, Nodes, Resource, Services}

// An option is a key of a watch that some collections have.
type option struct {
	name  string // in the configuration
	given func(c *Config) bool
	of    []string
}

var options = []option{
	{"resource_type", func(c *Config) bool { return c.Type != "" }, []string{Resource}},
	{"name_prefix", func(c *Config) bool { return c.NamePrefix != "" }, []string{Resource}},
	{"prefix", func(c *Config) bool { return c.Prefix != "" }, []string{KV}},
	{"values", func(c *Config) bool { return c.Values != stream.AnyValues }, []string{KV}},
	{"entries", func(c *Config) bool { return c.Entries }, []string{KV}},
	{"service", func(c *Config) bool { return c.Service != "" }, []string{Health}},
	{"datacenter", func(c *Config) bool { return c.Datacenter != "" }, []string{Checks, Health, Intentions, KV, Nodes, Services}},
	{"filter_expression", func(c *Config) bool { return c.FilterExpression != "" }, []string{Checks, Health, Intentions, Nodes, Services}},
}

// collection is the collection that is followed.
func (c *Config) collection() string {
	if c.Collection == "" {
		return Resource
	}
	return c.Collection
}

// CheckCollection returns what is wrong with the options of a watch together, by the name of an option;
// "": with those of its source.
func (c *Config) CheckCollection() (option, problem string) {
	of := c.collection()
	for _, o := range options {
		if o.given(c) && !slices.Contains(o.of, of) {
			return o.name, fmt.Sprintf("%s is for the collection %s, and this one is %s", o.name, strings.Join(o.of, " or "), of)
		}
	}
	switch {
	case of == Health && c.Service == "" && c.FilterExpression != "":
		return "filter_expression", "of the collection health, filter_expression is for one service; want service as well, or a view with filter"
	case of == Resource && c.Address == "":
		return "", "the source has no address, which the collection resource needs; want " + WantAddress
	case of != Resource && c.HTTPAddress == "":
		return "", "the source has no http_address, which the collection " + of + " needs; want " + WantHTTPAddress
	case of == Resource && c.Type == "":
		return "resource_type", "resource_type is missing; want " + WantType + ", or another collection: " + strings.Join(Collections, ", ")
	}
	return "", ""
}
