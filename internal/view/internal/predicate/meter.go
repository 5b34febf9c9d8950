package predicate

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// meter counts what an evaluation does with things that can be large, in units of about
// 100 ns. An evaluation ends once it has done too much. What it counts follows from the
// expression and the resource alone, so all replicas end the same evaluations.
//
// Owned by one goroutine.
type meter struct {
	spent int // at most slightly more than WorkLimit
}

// What a unit is enough for.
const (
	searchedBytes = 100 // of a text that is read from one end to the other
	matchedBytes  = 4   // times the instructions of the regular expression
	doublingPart  = 512 // bytes of a part that is searched for, which double what the search costs
)

// take counts some units. It returns false if there have been too many, and then always.
func (m *meter) take(units int) bool {
	if m.spent <= WorkLimit {
		m.spent += min(units, WorkLimit+1)
	}
	return m.spent <= WorkLimit
}

// exceeded reports whether there have been too many.
func (m *meter) exceeded() bool { return m.spent > WorkLimit }

// searching is what it costs to look for a part in a text.
func searching(text, part int) int {
	return 1 + text/searchedBytes*(1+part/doublingPart)
}

// matching is what a regular expression costs for a text: at worst, each of its instructions
// is carried out at each byte.
func matching(text, instructions int) int {
	return 1 + text*instructions/matchedBytes
}

// read counts the size of something that an expression reads: one unit for each thing in it,
// and those for the texts. It returns false if there have been too many units.
func (m *meter) read(v any) bool {
	switch v := v.(type) {
	case string:
		return m.take(1 + len(v)/searchedBytes)
	case types.String:
		return m.take(1 + len(v)/searchedBytes)
	case []byte:
		return m.take(1 + len(v)/searchedBytes)
	case types.Bytes:
		return m.take(1 + len(v)/searchedBytes)
	case []any:
		return m.take(1) && readList(m, v)
	case []ref.Val:
		return m.take(1) && readList(m, v)
	case []string:
		return m.take(1) && readList(m, v)
	case map[string]any:
		return m.take(1) && readMap(m, v)
	case map[string]string:
		return m.take(1) && readMap(m, v)
	case map[ref.Val]ref.Val:
		return m.take(1) && readMap(m, v)
	case traits.MutableLister: // the result of a macro so far: each step has paid for its part
		return m.take(1)
	case traits.Lister:
		return m.read(v.Value())
	case traits.Mapper:
		return m.read(v.Value())
	}
	return m.take(1)
}

func readList[E any](m *meter, list []E) bool {
	for _, e := range list {
		if !m.read(e) {
			return false
		}
	}
	return true
}

func readMap[K comparable, V any](m *meter, all map[K]V) bool {
	if !m.take(len(all)) { // the order must make no difference
		return false
	}
	for name, v := range all {
		if !m.read(name) || !m.read(v) {
			return false
		}
	}
	return true
}
