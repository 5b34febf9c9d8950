package predicate

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Binding has the values of the parts of a rule that depend on given names alone.
//
// Static after Bind.
type Binding struct {
	values map[int64]any // of the parts; noConstant for one without a value
	key    string
	failed bool
}

// Key returns a text that is the same for bindings with which a rule means the same.
func (b *Binding) Key() string { return b.key }

// Failed reports whether some part has no value, for instance because a claim is missing.
func (b *Binding) Failed() bool { return b.failed }

// Bind evaluates the parts of the rule that depend on given names alone.
func (r *Rule) Bind(given map[string]any) *Binding {
	b := &Binding{values: make(map[int64]any, len(r.order))}
	var key []byte
	for _, id := range r.order {
		v, err := r.parts[id].value(given)
		value, ok := any(noConstant{}), false
		if err == nil {
			value, ok = native(v, 0)
		}
		if !ok || !writable(value) {
			value, b.failed = noConstant{}, true
		}
		b.values[id] = value
		key = appendValue(key, value)
	}
	b.key = string(key)
	return b
}

// writable reports whether a value can be written as a constant. NaN cannot, nor can a string
// that is not UTF-8, since "\xff" stands for the letter ÿ.
func writable(v any) bool {
	switch v := v.(type) {
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case string:
		return utf8.ValidString(v)
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !writable(e) })
	case map[string]any:
		for name, member := range v {
			if !writable(name) || !writable(member) {
				return false
			}
		}
	}
	return true
}

// appendValue appends an unambiguous encoding of a value.
func appendValue(out []byte, v any) []byte {
	text := func(kind byte, text string) []byte {
		return append(binary.AppendUvarint(append(out, kind), uint64(len(text))), text...)
	}
	switch v := v.(type) {
	case []any:
		out = binary.AppendUvarint(append(out, 'l'), uint64(len(v)))
		for _, e := range v {
			out = appendValue(out, e)
		}
		return out
	case map[string]any:
		out = binary.AppendUvarint(append(out, 'm'), uint64(len(v)))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = appendValue(appendValue(out, name), v[name])
		}
		return out
	case string:
		return text('s', v)
	case []byte:
		return text('b', string(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(out, 'd'), math.Float64bits(v))
	}
	return text('v', fmt.Sprintf("%T %v", v, v))
}
