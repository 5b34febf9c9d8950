package decode

import (
	"fmt"
	"strings"
)

// Expand replaces ${NAME} by the result of getenv; $${ stands for a literal ${. The
// message names an unset variable, or describes the error; it never shows a value.
func Expand(text string, getenv func(string) (string, bool)) (out, message string) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)
			return b.String(), ""
		}
		if literal, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(literal + "${")
			text = after
			continue
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed || !IsVariable(name) {
			return "", "want ${NAME} with a name of letters, digits and '_'; $${ stands for a literal ${"
		}
		value, set := getenv(name)
		if !set {
			return "", fmt.Sprintf("the environment variable %s is not set", name)
		}
		b.WriteString(before + value)
		text = rest
	}
}

// IsVariable reports whether a word can be the name of an environment variable.
func IsVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
