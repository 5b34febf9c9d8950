package document

import (
	"strings"
	"unicode"
)

// Column is one member by which resources are sorted.
type Column struct {
	At         Path
	Descending bool
}

// ParseOrder reads columns with commas between them, at least one: a path, with a minus before it if
// its order is descending. A path that begins with a sign, or ends in a colon and a direction, has that name in
// double quotes.
func ParseOrder(text string) (columns []Column, err error) {
	p := parser{text: text}
	for {
		var c Column
		p.spaces()
		if c.Descending = strings.HasPrefix(text[p.at:], "-"); c.Descending {
			p.at++
		}
		if err := p.unsigned(); err != nil {
			return nil, err
		}
		from := p.at
		if c.At, err = p.path(); err != nil {
			if word := strings.TrimRightFunc(text[from:p.at], unicode.IsSpace); len(word) < p.at-from && isDirection(firstWord(text[p.at:])) {
				return nil, direction(p.at, word)
			}
			return nil, err
		}
		path := strings.TrimRight(text[from:p.at], " ")
		if n := strings.LastIndexByte(path, ':'); n > 0 && isDirection(path[n+1:]) {
			return nil, direction(from+n, path[:n])
		}
		columns = append(columns, c)
		if p.at == len(text) {
			return columns, nil
		}
		p.at++ // the comma
	}
}

// isDirection reports whether a text is the direction of an order, as in SQL.
func isDirection(text string) bool {
	return strings.EqualFold(text, "asc") || strings.EqualFold(text, "desc")
}

// firstWord returns the letters at the beginning of a text.
func firstWord(text string) string {
	n := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if n < 0 {
		return text
	}
	return text[:n]
}

// direction refuses a direction, which begins at an offset, after a path.
func direction(at int, path string) error {
	return &Mistake{
		Offset: at, Problem: "a direction is not written like this",
		Advice: "want -" + path + " for descending, and " + path + " for ascending; a name with it is written in double quotes",
	}
}

// unsigned refuses a sign at the current place.
func (p *parser) unsigned() error {
	p.spaces()
	if p.at < len(p.text) && isSign(p.text[p.at]) {
		return &Mistake{Offset: p.at, Problem: "unexpected " + p.text[p.at:p.at+1], Advice: `a name that begins with a sign is written in double quotes: "-a"`}
	}
	return nil
}

func isSign(c byte) bool { return c == '-' || c == '+' }

// ParseUnsigned is ParseList for paths that have no direction: one that begins with a sign has that name in double
// quotes.
func ParseUnsigned(text string) (paths []Path, err error) {
	p := parser{text: text}
	for {
		if err := p.unsigned(); err != nil {
			return nil, err
		}
		one, err := p.path()
		if err != nil {
			return nil, err
		}
		paths = append(paths, one)
		if p.at == len(text) {
			return paths, nil
		}
		p.at++ // the comma
	}
}

// Unsigned returns the path in its syntax, which ParseUnsigned reads.
func (p Path) Unsigned() string {
	return p.format(func(i int) bool { return i == 0 && p[0] != "" && isSign(p[0][0]) })
}

// String returns the column in its syntax, which ParseOrder reads.
func (c Column) String() string {
	text := c.At.format(func(i int) bool {
		name := c.At[i]
		n := strings.LastIndexByte(name, ':')
		return i == 0 && name != "" && isSign(name[0]) || i == len(c.At)-1 && n >= 0 && isDirection(name[n+1:])
	})
	if c.Descending {
		return "-" + text
	}
	return text
}
