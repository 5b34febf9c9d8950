package files

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// summary describes the problems, with the names of the files: the first few of
// them, since it is sent to each subscriber.
func summary(problems map[string]error) string {
	const most = 3
	names := slices.Sorted(maps.Keys(problems))
	var out []string
	for _, name := range names[:min(len(names), most)] {
		out = append(out, describe(name, problems[name]))
	}
	if more := len(names) - most; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// describe returns for instance `pages/home.yaml:3:5: unknown escape`.
func describe(name string, err error) string {
	const longest = 300
	name = strings.ToValidUTF8(name, "\ufffd")
	separator := ": "
	if placed := (*placedError)(nil); errors.As(err, &placed) {
		separator = ":"
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\n", " "), "\ufffd")
	if len(text) > longest {
		end := longest
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return name + separator + text
}
