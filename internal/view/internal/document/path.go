package document

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/watchtide/watchtide/stream"
)

// Path is the names of members, from the root of a value on. The empty path is the value.
type Path []string

// Parse reads one path, which is not empty.
func Parse(text string) (Path, error) {
	list, err := ParseList(text)
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, &Mistake{Offset: strings.IndexByte(text, ','), Problem: "there are several paths", Advice: "want one; a name with a comma is written in double quotes"}
	}
	return list[0], nil
}

// ParseList reads paths with commas between them; at least one.
func ParseList(text string) (paths []Path, err error) {
	p := parser{text: text}
	for {
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

// parser reads text from at on.
type parser struct {
	text string
	at   int
}

// path reads a path up to a comma or the end.
func (p *parser) path() (path Path, err error) {
	for {
		p.spaces()
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		path = append(path, name)
		p.spaces()
		if p.at == len(p.text) || p.text[p.at] == ',' {
			return path, nil
		}
		if p.text[p.at] != '.' {
			return nil, p.unexpected()
		}
		p.at++
	}
}

func (p *parser) spaces() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// name reads one name, quoted or not.
func (p *parser) name() (string, error) {
	if strings.HasPrefix(p.text[p.at:], `"`) {
		return p.quoted()
	}
	n := strings.IndexFunc(p.text[p.at:], special)
	if n < 0 {
		n = len(p.text) - p.at
	}
	if n == 0 {
		return "", p.unexpected()
	}
	name := p.text[p.at : p.at+n]
	if !utf8.ValidString(name) {
		return "", &Mistake{Offset: p.at, Problem: "the name is not UTF-8"}
	}
	p.at += n
	return name, nil
}

// quoted reads a name that is a JSON string.
func (p *parser) quoted() (string, error) {
	rest := p.text[p.at:]
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			var name string
			if !utf8.ValidString(rest[:i+1]) || json.Unmarshal([]byte(rest[:i+1]), &name) != nil {
				return "", &Mistake{Offset: p.at, Problem: rest[:i+1] + " is no JSON string"}
			}
			p.at += i + 1
			return name, nil
		}
	}
	return "", &Mistake{Offset: p.at, Problem: "the quotation mark is never closed", Advice: `want another " after the name`}
}

// unexpected says what is wrong at the current place.
func (p *parser) unexpected() error {
	e := &Mistake{Offset: p.at, Advice: "want names with dots between them, and commas between paths"}
	if p.at == len(p.text) {
		e.Problem = "a name is missing at the end"
		return e
	}
	switch c, _ := utf8.DecodeRuneInString(p.text[p.at:]); c {
	case ',', '.':
		e.Problem = "a name is missing before " + string(c)
	case '[':
		if name, ok := quotedName(p.text[p.at+1:]); ok {
			e.Problem, e.Advice = "names are not written in brackets", "want "+strings.TrimSuffix(p.text[:p.at], ".")+"."+string(stream.AppendJSONString(nil, name))
			break
		}
		e.Problem, e.Advice = "there are no indices", "a path applies to all elements of an array: want items.name, not items[0].name"
	case '\\':
		e.Problem, e.Advice = "a dot in a name is not written with a backslash", `want the name in double quotes: metadata.labels."app.kubernetes.io/name"`
	case ']':
		e.Problem, e.Advice = "there are no indices", "a path applies to all elements of an array: want items.name, not items[0].name"
	case '\'':
		e.Problem, e.Advice = "a name is quoted with '", `want double quotes: "a.b"`
	default:
		e.Problem, e.Advice = "unexpected "+string(c), `a name with such a character is written in double quotes: "a b"`
	}
	return e
}

// quotedName returns the name in quotation marks at the start of the text.
func quotedName(text string) (name string, ok bool) {
	if text == "" || !strings.ContainsRune(`"'`, rune(text[0])) {
		return "", false
	}
	name, _, ok = strings.Cut(text[1:], text[:1])
	return name, ok
}

// special reports whether a name with r must be quoted.
func special(r rune) bool {
	return strings.ContainsRune(`.,"'[]\`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
}

// String returns the path in its syntax, which Parse reads.
func (p Path) String() string { return p.format(func(int) bool { return false }) }

// format returns the path in its syntax, with quotation marks around names that need them, and around the others
// for which quoted is true.
func (p Path) format(quoted func(i int) bool) string {
	var b strings.Builder
	for i, name := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		if !quoted(i) && name != "" && !strings.ContainsFunc(name, special) && utf8.ValidString(name) {
			b.WriteString(name)
			continue
		}
		b.Write(stream.AppendJSONString(nil, name))
	}
	return b.String()
}

// Minimal returns the paths in order, without those that lie at or below another one.
func Minimal(paths []Path) []Path {
	sorted := slices.SortedFunc(slices.Values(paths), func(a, b Path) int { return slices.Compare(a, b) })
	var out []Path
	for _, p := range sorted {
		if len(out) == 0 || !p.Below(out[len(out)-1]) {
			out = append(out, p)
		}
	}
	return out
}

// Below reports whether p is q, or lies below it.
func (p Path) Below(q Path) bool {
	return len(p) >= len(q) && slices.Equal(p[:len(q)], q)
}
