package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// Piece is a part of a text: a literal, or the name of a parameter.
type Piece struct {
	Literal string
	Param   string
}

// TemplateText is a text with parameters.
type TemplateText []Piece

// Params returns the names of the parameters, in order, as often as they are there.
func (t TemplateText) Params() (names []string) {
	for _, p := range t {
		if p.Param != "" {
			names = append(names, p.Param)
		}
	}
	return names
}

// Has reports whether a parameter is in the text.
func (t TemplateText) Has(param string) bool { return slices.Contains(t.Params(), param) }

// Render returns the text with what is written for the parameters.
func (t TemplateText) Render(written map[string]string) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.Literal + written[p.Param])
	}
	return b.String()
}

// IsName reports whether a name is meant to have parameters.
func IsName(name string) bool { return strings.ContainsAny(name, "{}") }

// ParseName splits the name of a template.
func ParseName(name string) (TemplateText, error) {
	var t TemplateText
	for rest := name; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" && stream.CheckWatchName(literal) != nil {
			return nil, errors.New("want letters, digits, '.', '_' and '-', and parameters such as {region}")
		}
		if literal != "" {
			t = append(t, Piece{Literal: literal})
		}
		if !found {
			break
		}
		param, after, closed := strings.Cut(after, "}")
		switch {
		case !closed || !validParam(param):
			return nil, errors.New("want parameters such as {region}, of lower-case letters, digits and '_'")
		case t.Has(param):
			return nil, fmt.Errorf("{%s} is there twice", param)
		case len(t) > 0 && t[len(t)-1].Param != "":
			return nil, fmt.Errorf("nothing separates {%s} from {%s}; put a character such as '-' between them", t[len(t)-1].Param, param)
		}
		t = append(t, Piece{Param: param})
		rest = after
	}
	return t, nil
}

// validParam reports whether a word is the name of a parameter.
func validParam(name string) bool {
	for i, r := range name {
		if letter := 'a' <= r && r <= 'z'; !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != ""
}

// ParseText splits the text of an option at its parameters: {name}, where name is a word.
// Other braces, and those of ${NAME}, are literal. The last piece is a literal.
func ParseText(text string) (t TemplateText) {
	literal := 0
	for at := 0; at < len(text); at++ {
		if text[at] != '{' {
			continue
		}
		name, _, closed := strings.Cut(text[at+1:], "}")
		if variable := at > 0 && text[at-1] == '$'; variable || !closed || !validParam(name) {
			continue
		}
		t = append(t, Piece{Literal: text[literal:at]}, Piece{Param: name})
		literal = at + len(name) + 2
		at = literal - 1
	}
	return append(t, Piece{Literal: text[literal:]})
}
