package load

import "bytes"

// marker finds a text in a stream that arrives in pieces. Static after
// construction: the state of each stream is a number that the caller keeps.
type marker struct {
	text []byte
	// border is how many bytes of text still match after i+1 matched and the
	// next did not: the failure function of Knuth, Morris and Pratt.
	border []uint8
}

// longest is the most bytes that a marker may have: a state is one byte.
const longest = 255

func newMarker(text []byte) marker {
	m := marker{text: text, border: make([]uint8, len(text))}
	for i := 1; i < len(text); i++ {
		m.border[i] = m.step(m.border[i-1], text[i])
	}
	return m
}

// step returns how many bytes of text match after one more byte, if state did.
func (m *marker) step(state uint8, b byte) uint8 {
	for m.text[state] != b {
		if state == 0 {
			return 0
		}
		state = m.border[state-1]
	}
	return state + 1
}

// next looks for the first match in b, of which a part may precede b: state is
// that part's length. It returns the index after the match and 0, or -1 and the
// state for what follows b.
func (m *marker) next(b []byte, state uint8) (end int, after uint8) {
	i := 0
	for ; state > 0; i++ {
		if i == len(b) {
			return -1, state
		}
		if state = m.step(state, b[i]); int(state) == len(m.text) {
			return i + 1, 0
		}
	}
	if at := bytes.Index(b[i:], m.text); at >= 0 {
		return i + at + len(m.text), 0
	}
	for _, c := range b[max(i, len(b)-len(m.text)+1):] {
		state = m.step(state, c)
	}
	return -1, state
}

// count returns how many matches end in b, and the state for what follows.
func (m *marker) count(b []byte, state uint8) (n int, after uint8) {
	for {
		end, after := m.next(b, state)
		if end < 0 {
			return n, after
		}
		b, state = b[end:], 0
		n++
	}
}
