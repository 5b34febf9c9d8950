package predicate

import (
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// adapter makes maps of the objects in a value, and of labels, whose keys macros go
// through in order. In Go's order, which differs each time, a filter could be true of a
// resource at one time and not at another.
type adapter struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return orderedMap{types.NewStringInterfaceMap(a, v), a}
	case map[string]string:
		return orderedMap{types.NewStringStringMap(a, v), a}
	case []any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

// orderedMap is a map that iterates over its keys, which are strings, in order.
type orderedMap struct {
	traits.Mapper
	adapter types.Adapter
}

// Iterator implements traits.Iterable.
func (m orderedMap) Iterator() traits.Iterator {
	var keys []string
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		if key, ok := it.Next().(types.String); ok {
			keys = append(keys, string(key))
		}
	}
	slices.Sort(keys)
	return types.NewStringList(m.adapter, keys).Iterator()
}
