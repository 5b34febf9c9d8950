package view

import (
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/view/internal/predicate"
)

// keys are the keys that resources of a view can have.
//
// Static after construction.
type keys struct {
	prefix string
	named  []string // sorted; nil: any with the prefix
}

// follow allows only the keys that the top-level conjunction of a filter allows.
func (k *keys) follow(filter *predicate.Predicate) {
	terms, longer := filter.Terms()
	if len(longer) > len(k.prefix) {
		k.prefix = longer // one must begin with the other, or there is no such key
	}
	for _, t := range terms {
		if t.Variable == "key" {
			k.restrict(t.Constants)
		}
	}
}

// restrict allows only some constants. A constant that is not a string is not a key.
func (k *keys) restrict(constants []any) {
	named := make([]string, 0, len(constants))
	for _, c := range constants {
		if key, ok := c.(string); ok && k.allow(key) {
			named = append(named, key)
		}
	}
	slices.Sort(named)
	k.named = slices.Compact(named)
}

// allow reports whether a resource of the view can have a key.
func (k *keys) allow(key string) bool {
	if k.named == nil {
		return strings.HasPrefix(key, k.prefix)
	}
	_, found := slices.BinarySearch(k.named, key)
	return found
}
