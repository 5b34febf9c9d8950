package document

import (
	"bytes"
	"strings"
)

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

// FindAll finds the texts of what is at several columns of a value, which is JSON text, in one pass over its
// members. found has a place for each column; nil: nothing is there. Of a member that is in its object twice the
// last one counts.
func FindAll(value []byte, columns []Column, found [][]byte) {
	clear(found)
	if !members(value, func(raw, member []byte) {
		for i, c := range columns {
			if isNamed(raw, c.At[0]) {
				found[i] = member
			}
		}
	}) {
		clear(found)
		return
	}
	for i, c := range columns {
		if found[i] != nil && len(c.At) > 1 {
			found[i] = find(found[i], c.At[1:])
		}
	}
}

// find returns the text of what is at a path in a value; nil if nothing is.
func find(value []byte, at Path) []byte {
	for _, name := range at {
		value = memberOf(value, name)
	}
	return value
}

// memberOf returns a member of an object; nil if there is none, or the text is no object.
func memberOf(object []byte, name string) (value []byte) {
	if !members(object, func(raw, member []byte) {
		if isNamed(raw, name) {
			value = member
		}
	}) {
		return nil
	}
	return value
}

// members calls f with the name of each member of an object, in its quotation marks, and with its value. It
// reports whether the text is an object.
func members(object []byte, f func(raw, member []byte)) bool {
	s := scanner{text: object}
	if !s.take('{') {
		return false
	}
	for first := true; ; first = false {
		more, err := s.more(first, '}')
		if err != nil {
			return false
		}
		if !more {
			return true
		}
		raw, err := s.name()
		if err != nil {
			return false
		}
		s.peek()
		from := s.at
		if _, err := s.skip(); err != nil {
			return false
		}
		f(raw, object[from:s.at])
	}
}

// isNamed reports whether the bytes of a string, with its quotation marks, are a name.
func isNamed(raw []byte, name string) bool {
	if string(raw[1:len(raw)-1]) == name {
		return true
	}
	if len(raw)-2 <= len(name) || bytes.IndexByte(raw, '\\') < 0 { // what has escapes is longer
		return false
	}
	text, err := unquote(raw)
	return err == nil && text == name
}
