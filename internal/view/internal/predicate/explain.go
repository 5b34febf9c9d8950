package predicate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/internal/view/internal/document"
)

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '(.+)' \(in container`)
	overload   = regexp.MustCompile(`^found no matching overload for '(.+)' applied to '(.*)'$`)
	token      = regexp.MustCompile(`^\pL+`)
	tokenAtEnd = regexp.MustCompile(`\pL+\s*$`)
)

// explain turns an error of cel-go into one that says what would be right.
func explain(env *cel.Env, text string, e *common.Error) *document.Mistake {
	at := offset(text, e.Location.Line(), e.Location.Column())
	m := &document.Mistake{Offset: at, Problem: e.Message}
	if found := undeclared.FindStringSubmatch(e.Message); found != nil {
		explainName(env, text, found[1], m)
	} else if found := overload.FindStringSubmatch(e.Message); found != nil {
		explainOverload(found[1], found[2], m)
	} else if strings.HasPrefix(e.Message, "Syntax error: ") {
		explainSyntax(text, m)
	} else if strings.Contains(e.Message, "recursion") {
		m.Problem = fmt.Sprintf("the filter is nested more than %d deep", MaxDepth)
		m.Advice = "a long chain of + or of dots counts, one of && or || does not"
	} else if strings.HasPrefix(e.Message, "expression ") && strings.Contains(e.Message, "limit") {
		m.Problem = fmt.Sprintf("the filter has more than %d operands and operators", MaxNodes)
	}
	return m
}

// explainName is about a variable or a function that does not exist. The place of a
// function is that of its parenthesis.
func explainName(env *cel.Env, text, name string, m *document.Mistake) {
	if !strings.HasPrefix(text[m.Offset:], "(") {
		m.Problem = fmt.Sprintf("there is no variable %q", name)
		if near := suggest.Nearest(name, Variables()); near != "" {
			m.Advice = fmt.Sprintf("did you mean %q?", near)
		} else if strings.HasSuffix(text[:m.Offset], "-") {
			m.Advice = `a name with - in it is in brackets and quotes, as in value["a-b"]`
		} else {
			m.Advice = fmt.Sprintf("a member of the value is value.%s, a label labels.%[1]s, and text is in quotes", name)
		}
		return
	}
	if strings.HasSuffix(text[:m.Offset], name) {
		m.Offset -= len(name)
	}
	m.Problem = fmt.Sprintf("there is no function %q", name)
	m.Advice = suggest.Sentence(name, functions(env))
}

// functions returns the names of functions and macros that can be written as calls.
func functions(env *cel.Env) (names []string) {
	for name := range env.Functions() {
		if token.FindString(name) == name {
			names = append(names, name)
		}
	}
	for _, m := range env.Macros() {
		names = append(names, m.Function())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// explainOverload is about a function that does not take what it is given.
func explainOverload(function, operands string, m *document.Mistake) {
	name := strings.Trim(function, "_@")
	m.Problem = fmt.Sprintf("%s cannot be applied to %s", name, operands)
	switch name {
	case "==", "!=", "<", "<=", ">", ">=":
		m.Advice = "both sides must have the same type; text is in quotes, a number is not"
	case "in":
		m.Advice = `want a list on the right, as in key in ["a", "b"]`
	case "&&", "||", "!":
		m.Advice = "want conditions, which are true or false"
	case "startsWith", "endsWith", "contains", "matches":
		m.Advice = fmt.Sprintf("want text on both sides, as in key.%s(%q)", name, "a")
	}
}

// foreign are words and symbols of other languages, and what they are here.
var foreign = map[string]string{
	"and": "&&", "or": "||", "not": "!", "is": "==", "eq": "==", "ne": "!=", "like": ".contains(…)", "then": "? … : …",
	"startswith": ".startsWith(…)", "endswith": ".endsWith(…)", "contains": ".contains(…)", "matches": ".matches(…)",
}

// explainSyntax is about text that is no expression, by what stands there.
func explainSyntax(text string, m *document.Mistake) {
	before, after := text[:m.Offset], text[m.Offset:]
	word := token.FindString(after)
	last := strings.TrimSpace(tokenAtEnd.FindString(before))
	r, size := utf8.DecodeRuneInString(after)
	switch {
	case strings.HasPrefix(after, "=") && strings.HasSuffix(before, "=="):
		m.Problem, m.Advice = "=== is no operator", "did you mean ==?"
	case strings.HasPrefix(after, "="):
		m.Problem, m.Advice = "= is no operator", "did you mean ==?"
	case strings.HasPrefix(after, ">") && strings.HasSuffix(before, "<"):
		m.Problem, m.Advice = "<> is no operator", "did you mean !=?"
	case r == '&' || r == '|':
		m.Problem, m.Advice = string(r)+" is no operator", "did you mean "+strings.Repeat(string(r), 2)+"?"
	case foreign[strings.ToLower(word)] != "":
		m.Problem, m.Advice = word+" is no operator", "did you mean "+foreign[strings.ToLower(word)]+"?"
	case foreign[strings.ToLower(last)] != "":
		m.Offset = strings.LastIndex(before, last)
		m.Problem, m.Advice = last+" is no operator", "did you mean "+foreign[strings.ToLower(last)]+"?"
	case r == '"' || r == '\'':
		m.Problem, m.Advice = "a quotation mark is never closed", "want "+string(r)+" at the end of the text"
	case r == ',':
		m.Problem, m.Advice = "unexpected ,", `a list is in brackets: ["a", "b"]`
	case after == "" && strings.TrimSpace(text) == "":
		m.Problem, m.Advice = "the filter is empty", `want a condition, as in value.state == "ready"`
	case after == "":
		m.Problem, m.Advice = "the filter ends too early", "want an operand, or the other parenthesis, here"
	case word != "":
		m.Problem, m.Advice = "unexpected "+word, "want an operator before it, or quotes around text"
	default:
		m.Problem = "unexpected " + after[:size]
	}
}

// offset returns the place of a line, from 1, and a column, in code points from 0.
func offset(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	for ; column > 0 && at < len(text); column-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}
