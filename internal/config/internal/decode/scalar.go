package decode

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/watchtide/watchtide/internal/suggest"
)

// Scalar is the text of a value, as written and with the environment filled in.
// Errors quote only the text as written.
type Scalar struct {
	Value
	Written  string
	Expanded string
	Text     TemplateText // of a text that uses parameters of a template; nil: it uses none
}

// Text returns the text of a value of one of the kinds: text is always
// accepted, since ${NAME} may stand for anything.
func (d *Decoder) Text(v Value, want string, allowed func(ast.Node) bool) (Scalar, bool) {
	v, ok := d.Resolve(v)
	if !ok {
		return Scalar{}, false
	}
	s := Scalar{Value: v}
	switch n := v.Node.(type) {
	case *ast.StringNode:
		if plain := n.Token.Type == token.StringType; plain && strings.Contains(n.Value, ": ") {
			d.Errorf(v, "%q is one word for YAML; is a comma missing, or quotation marks?", n.Value)
			return s, false
		}
		s.Written = n.Value
	case *ast.LiteralNode:
		s.Written = n.Value.Value
	default:
		if allowed == nil || !allowed(v.Node) {
			d.Errorf(v, "want %s, not %s", want, KindOf(v.Node))
			return Scalar{}, false
		}
		s.Written = v.Node.GetToken().Value
	}
	var message string
	if s.Expanded, message = Expand(s.Written, d.Env.Getenv); message != "" {
		d.Errorf(v, "%s", message)
		return Scalar{}, false
	}
	return s, true
}

// Wrong adds an error that quotes the value as written.
func (d *Decoder) Wrong(s Scalar, want string) {
	written := s.Written
	if !strings.Contains(written, "${") && looksLikeVariable(written) {
		want += "; a variable is written ${NAME}"
	}
	if len(written) > 80 {
		written = strings.ToValidUTF8(written[:80], "") + "…"
	}
	d.Errorf(s.Value, "%q: want %s", written, want)
}

// looksLikeVariable reports whether a text contains a shell variable.
func looksLikeVariable(text string) bool {
	_, after, found := strings.Cut(text, "$")
	return found && after != "" && IsVariable(after[:1])
}

// TextOf returns the text of a value of a kind.
func (d *Decoder) TextOf(v Value, kind Text) (Scalar, bool) {
	s, ok := d.Text(v, kind.Want, nil)
	ok = ok && d.Types.FillIn(&s, kind)
	if ok && kind.Valid != nil && !kind.Valid(s.Expanded) {
		d.Wrong(s, kind.Want)
		return s, false
	}
	return s, ok
}

// ReadText reads a text of a kind.
func (d *Decoder) ReadText(v Value, kind Text, into *string) {
	s, ok := d.TextOf(v, kind)
	if s.Text != nil {
		d.Types.Filled(into, s, kind)
	}
	switch {
	case !ok:
	case kind.Use != nil:
		*into = kind.Use(d, s)
	default:
		*into = s.Expanded
	}
}

// CheckWord reports whether a text is one of the words, and otherwise suggests
// one.
func (d *Decoder) CheckWord(s Scalar, unknown string, words []string) bool {
	if slices.Contains(words, s.Expanded) {
		return true
	}
	d.Errorf(s.Value, "%s %q; %s", unknown, s.Written, suggest.Sentence(s.Written, words))
	return false
}

// readBool reads true or false.
func (d *Decoder) readBool(v Value, not bool, into *bool) {
	const want = "true or false"
	isBool := func(n ast.Node) bool { _, ok := n.(*ast.BoolNode); return ok }
	s, ok := d.Text(v, want, isBool)
	if !ok {
		return
	}
	switch strings.ToLower(s.Expanded) {
	case "true":
		*into = !not
	case "false":
		*into = not
	default:
		d.Wrong(s, want)
	}
}
