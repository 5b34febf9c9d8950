package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// errMalformed: bytes that are no JSON. What is skipped is not checked.
var errMalformed = errors.New("the value is no JSON")

// maxDepth is how deep encoding/json lets values be.
const maxDepth = 10_000

// scanner reads JSON text from at on.
type scanner struct {
	text   []byte
	at     int
	copied string // the text, if strings of it are to share one copy; else ""
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// more reports whether another member or element of what close ends follows, and
// consumes what is before it.
func (s *scanner) more(first bool, close byte) (bool, error) {
	switch {
	case s.take(close):
		return false, nil
	case first || s.take(','):
		return true, nil
	}
	return false, errMalformed
}

// quoted returns the bytes of a string, with its quotation marks.
func (s *scanner) quoted() ([]byte, error) {
	if s.peek() != '"' {
		return nil, errMalformed
	}
	start := s.at
	end := closing(s.text, start+1)
	if end < 0 {
		return nil, errMalformed
	}
	s.at = end + 1
	return s.text[start:s.at], nil
}

// closing returns where the quotation mark is that ends the string in which at lies; -1
// if there is none.
func closing(text []byte, at int) int {
	for {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return -1
		}
		end := at + n
		from := end
		for from > at && text[from-1] == '\\' {
			from--
		}
		if (end-from)%2 == 0 {
			return end
		}
		at = end + 1 // a backslash belongs to the mark
	}
}

// name returns the bytes of a member's name, and consumes the colon.
func (s *scanner) name() ([]byte, error) {
	raw, err := s.quoted()
	if err == nil && !s.take(':') {
		err = errMalformed
	}
	return raw, err
}

// skip consumes a value and returns its bytes.
func (s *scanner) skip() ([]byte, error) {
	switch c := s.peek(); c {
	case '"':
		return s.quoted()
	case '{', '[':
		return s.skipNested()
	}
	if word := s.word(); len(word) > 0 {
		return word, nil
	}
	return nil, errMalformed
}

// skipNested consumes an object or an array: up to as many closing brackets as there were
// opening ones.
func (s *scanner) skipNested() ([]byte, error) {
	depth := 0
	for i := s.at; i < len(s.text); i++ {
		switch s.text[i] {
		case '"':
			if i = closing(s.text, i+1); i < 0 {
				return nil, errMalformed
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				start := s.at
				s.at = i + 1
				return s.text[start:s.at], nil
			}
		}
	}
	return nil, errMalformed
}

// word consumes a number or a literal.
func (s *scanner) word() []byte {
	s.peek()
	start := s.at
	for s.at < len(s.text) && !delimits(s.text[s.at]) {
		s.at++
	}
	return s.text[start:s.at]
}

// delimits reports whether c ends a number or a literal.
func delimits(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', '{', '}', '[', ']', '"':
		return true
	}
	return false
}

// scalar reads a string, a number or a literal.
func (s *scanner) scalar() (any, error) {
	if s.peek() == '"' {
		raw, err := s.quoted()
		if err != nil {
			return nil, err
		}
		return s.unquote(raw)
	}
	switch word := s.word(); string(word) {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return number(word)
	}
}

// unquote is the function unquote for a part of the text.
func (s *scanner) unquote(raw []byte) (string, error) {
	if s.copied == "" || bytes.IndexByte(raw, '\\') >= 0 {
		return unquote(raw)
	}
	start := cap(s.text) - cap(raw) // where raw begins
	return s.copied[start+1 : start+len(raw)-1], nil
}

// unquote returns what a string holds, as encoding/json reads it.
func unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", errMalformed
	}
	return text, nil
}

// number returns an int64 or a uint64 for a number without a fraction and an exponent
// that fits in one, so that no digit is lost, and a float64 for any other one: infinite
// if it is beyond all of them.
func number(text []byte) (any, error) {
	if !bytes.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			return n, nil
		}
	}
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !math.IsInf(n, 0) || math.IsNaN(n) {
		return nil, errMalformed
	}
	return n, nil
}
