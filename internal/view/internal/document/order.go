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
