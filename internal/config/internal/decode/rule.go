package decode

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/watchtide/watchtide/stream"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Rule says how a value of a parameter, which comes from a client, is written in a kind of
// text, so that it stands for itself and cannot change what the rest means.
//
// Static after construction.
type Rule struct {
	// Escape returns the text for a value that is not empty. false: the value cannot be
	// written, so that there is no such watch. nil: the value itself.
	Escape func(value string) (text string, ok bool)
	// Prefix: the text selects what begins with it.
	Prefix bool
}

// Fill fills in the values of parameters. An empty value is never filled in: in many places
// it would mean "all".
func (r *Rule) Fill(t TemplateText, values map[string]string) (string, bool) {
	written := map[string]string{}
	for _, name := range t.Params() {
		text, ok := values[name], values[name] != ""
		if ok && r.Escape != nil {
			text, ok = r.Escape(text)
		}
		if !ok {
			return "", false
		}
		written[name] = text
	}
	return t.Render(written), true
}

// Characters for OnlyOf.
const (
	LowerCase = "abcdefghijklmnopqrstuvwxyz"
	UpperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Digits    = "0123456789"
)

// OnlyOf is the escape of texts in which only some characters have no meaning.
func OnlyOf(characters string) func(string) (string, bool) {
	return func(value string) (string, bool) { return value, strings.Trim(value, characters) == "" }
}

// Plain is the escape of texts in which no character has a meaning.
func Plain(value string) (string, bool) { return value, utf8.ValidString(value) }

// Name writes a value as one name of a path, whatever is in it.
func Name(value string) (string, bool) {
	return string(stream.AppendJSONString(nil, value)), utf8.ValidString(value)
}

// CEL writes a value as a string literal, which means the same whichever of the two
// quotation marks it is in.
func CEL(value string) (string, bool) {
	if !utf8.ValidString(value) {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range value {
		switch {
		case r == '"' || r == '\'' || r == '\\' || r == '`':
			b.WriteString(`\` + string(r))
		case r < utf8.RuneSelf && unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String(), true
}

// Label is for label selectors, which have no quotation marks: a value is what a label can
// have. The words of the syntax are refused, though most of its places take them for values.
func Label(value string) (string, bool) {
	words := []string{"in", "notin"}
	return value, len(validation.IsValidLabelValue(value)) == 0 && !slices.Contains(words, strings.ToLower(value))
}
