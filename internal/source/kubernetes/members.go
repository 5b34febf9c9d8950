package kubernetes

import (
	"encoding/json"
	"iter"
)

// member is one member of a JSON object, by the offsets at which its name and
// its value start and end.
type member struct {
	name       string
	start      int // of the name
	value, end int // of the value
}

// members iterates over the members of raw, a valid JSON object; of
// anything else, as far as it looks like one.
func members(raw []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		at := pastSpace(raw, 1)
		for at < len(raw) && raw[at] == '"' {
			m := member{start: at}
			at = pastString(raw, at)
			m.name = text(raw[m.start:at])
			at = pastSpace(raw, at)
			m.value = pastSpace(raw, at+1) // after the colon
			m.end = pastValue(raw, m.value)
			if m.end > len(raw) || !yield(m) {
				return
			}
			at = pastSpace(raw, pastComma(raw, m.end))
		}
	}
}

// text is the content of a JSON string; empty for anything else.
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	for _, b := range raw {
		if b == '\\' {
			var s string
			_ = json.Unmarshal(raw, &s) // s is empty if raw is not a string
			return s
		}
	}
	return string(raw[1 : len(raw)-1])
}

func pastSpace(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\n' || raw[at] == '\r') {
		at++
	}
	return at
}

func pastComma(raw []byte, at int) int {
	at = pastSpace(raw, at)
	if at < len(raw) && raw[at] == ',' {
		at++
	}
	return at
}

// pastString returns the offset after the string that starts at at.
func pastString(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(raw)
}

// pastValue returns the offset after the value that starts at at.
func pastValue(raw []byte, at int) int {
	depth := 0
	for at < len(raw) {
		switch raw[at] {
		case '"':
			at = pastString(raw, at)
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return at + depth + 1 // a brace of the value itself, or the one that encloses a number
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return at
}
