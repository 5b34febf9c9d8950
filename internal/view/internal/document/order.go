package document

import "strings"

// Column is one member by which resources are sorted.
type Column struct {
	At         Path
	Descending bool
}

// ParseOrder reads columns with commas between them, at least one: a path, with a minus before it if
// its order is descending. A name that begins with a minus is written in double quotes.
func ParseOrder(text string) (columns []Column, err error) {
	p := parser{text: text}
	for {
		var c Column
		p.spaces()
		if c.Descending = strings.HasPrefix(text[p.at:], "-"); c.Descending {
			p.at++
		}
		if c.At, err = p.path(); err != nil {
			return nil, err
		}
		columns = append(columns, c)
		if p.at == len(text) {
			return columns, nil
		}
		p.at++ // the comma
	}
}

// String returns the column in its syntax, which ParseOrder reads.
func (c Column) String() string {
	text := c.At.String()
	if strings.HasPrefix(text, "-") {
		name, rest := c.At[:1].String(), text[len(c.At[:1].String()):]
		text = `"` + name + `"` + rest
	}
	if c.Descending {
		return "-" + text
	}
	return text
}

// Find returns the text of what is at a path in a value, which is JSON text; false if nothing is. Of a
// member that is in its object twice the last one counts.
func Find(value []byte, at Path) (text []byte, ok bool) {
	for _, name := range at {
		if value, ok = memberOf(value, name); !ok {
			return nil, false
		}
	}
	s := scanner{text: value}
	text, err := s.skip()
	return text, err == nil
}

// memberOf returns a member of an object, from its value on.
func memberOf(object []byte, name string) (value []byte, ok bool) {
	s := scanner{text: object}
	if !s.take('{') {
		return nil, false
	}
	for first := true; ; first = false {
		more, err := s.more(first, '}')
		if err != nil {
			return nil, false
		}
		if !more {
			return value, ok
		}
		raw, err := s.name()
		if err != nil {
			return nil, false
		}
		s.peek()
		from := s.at
		if _, err := s.skip(); err != nil {
			return nil, false
		}
		if isNamed(raw, name) {
			value, ok = object[from:s.at], true
		}
	}
}

// isNamed reports whether the bytes of a string, with its quotation marks, are a name.
func isNamed(raw []byte, name string) bool {
	if string(raw[1:len(raw)-1]) == name {
		return true
	}
	if len(raw)-2 <= len(name) { // what has escapes is longer
		return false
	}
	text, err := unquote(raw)
	return err == nil && text == name
}
