package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/watchtide/watchtide/internal/config/internal/parameter"
	"github.com/watchtide/watchtide/internal/suggest"
)

// scalar is the text of a value, as written and with the environment filled in.
// Errors quote only the text as written.
type scalar struct {
	value
	written  string
	expanded string
	text     parameter.Text // of a text that uses parameters of a template; nil: it uses none
}

// text returns the text of a value of one of the kinds: text is always
// accepted, since ${NAME} may stand for anything.
func (d *decoder) text(v value, want string, allowed func(ast.Node) bool) (scalar, bool) {
	v, ok := d.resolve(v)
	if !ok {
		return scalar{}, false
	}
	s := scalar{value: v}
	switch n := v.node.(type) {
	case *ast.StringNode:
		if plain := n.Token.Type == token.StringType; plain && strings.Contains(n.Value, ": ") {
			d.errorf(v, "%q is one word for YAML; is a comma missing, or quotation marks?", n.Value)
			return s, false
		}
		s.written = n.Value
	case *ast.LiteralNode:
		s.written = n.Value.Value
	default:
		if allowed == nil || !allowed(v.node) {
			d.errorf(v, "want %s, not %s", want, kind(v.node))
			return scalar{}, false
		}
		s.written = v.node.GetToken().Value
	}
	var message string
	if s.expanded, message = parameter.Expand(s.written, d.env.Getenv); message != "" {
		d.errorf(v, "%s", message)
		return scalar{}, false
	}
	return s, true
}

// wrong adds an error that quotes the value as written.
func (d *decoder) wrong(s scalar, want string) {
	written := s.written
	if !strings.Contains(written, "${") && looksLikeVariable(written) {
		want += "; a variable is written ${NAME}"
	}
	if len(written) > 80 {
		written = strings.ToValidUTF8(written[:80], "") + "…"
	}
	d.errorf(s.value, "%q: want %s", written, want)
}

// looksLikeVariable reports whether a text contains a shell variable.
func looksLikeVariable(text string) bool {
	_, after, found := strings.Cut(text, "$")
	return found && after != "" && parameter.IsVariable(after[:1])
}

// textOf returns the text of a value of a kind.
func (d *decoder) textOf(v value, kind text) (scalar, bool) {
	s, ok := d.text(v, kind.want, nil)
	ok = ok && d.fillIn(&s, kind)
	if ok && kind.valid != nil && !kind.valid(s.expanded) {
		d.wrong(s, kind.want)
		return s, false
	}
	return s, ok
}

func (d *decoder) readText(v value, kind text, into *string) {
	s, ok := d.textOf(v, kind)
	if s.text != nil {
		d.template.given[into] = option{text: s.text, kind: kind}
	}
	switch {
	case !ok:
	case kind.use != nil:
		*into = kind.use(d, s)
	default:
		*into = s.expanded
	}
}

// checkWord reports whether a text is one of the words, and otherwise suggests
// one.
func (d *decoder) checkWord(s scalar, unknown string, words []string) bool {
	if slices.Contains(words, s.expanded) {
		return true
	}
	d.errorf(s.value, "%s %q; %s", unknown, s.written, suggest.Sentence(s.written, words))
	return false
}

// readBool reads true or false.
func (d *decoder) readBool(v value, into *bool) {
	const want = "true or false"
	isBool := func(n ast.Node) bool { _, ok := n.(*ast.BoolNode); return ok }
	s, ok := d.text(v, want, isBool)
	if !ok {
		return
	}
	switch strings.ToLower(s.expanded) {
	case "true":
		*into = true
	case "false":
		*into = false
	default:
		d.wrong(s, want)
	}
}
