package document

// Scalar is a string, a number, a truth value or null as the key of a map. Those that
// are equal in CEL have the same one; numbers that differ only beyond the digits of a
// float64 share one too.
type Scalar struct {
	kind   byte
	text   string
	number float64
}

// ScalarOf returns the Scalar of nil, a bool, an int64, a uint64, a float64 or a string,
// and false for anything else.
func ScalarOf(v any) (Scalar, bool) {
	switch v := v.(type) {
	case nil:
		return Scalar{kind: '0'}, true
	case bool:
		if v {
			return Scalar{kind: 't'}, true
		}
		return Scalar{kind: 'f'}, true
	case int64:
		return Scalar{kind: 'n', number: float64(v)}, true
	case uint64:
		return Scalar{kind: 'n', number: float64(v)}, true
	case float64:
		return Scalar{kind: 'n', number: v}, true
	case string:
		return Scalar{kind: 's', text: v}, true
	}
	return Scalar{}, false
}

// Text returns the string that s is; false if it is none.
func (s Scalar) Text() (text string, ok bool) { return s.text, s.kind == 's' }
