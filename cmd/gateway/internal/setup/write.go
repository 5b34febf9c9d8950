package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Text returns a configuration for the sources. file is its name, for the comments.
func Text(file string, sources []Source) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# The configuration of Watchtide: "watchtide config check %[1]s" checks it, and
# "watchtide serve --config %[1]s" serves it. A change takes effect when it is saved.

http:
  # Only this machine can connect. For others: ":8080", with the section auth, or "auth: none".
  listen: "127.0.0.1:8080"
  # Pages of other origins that may read, such as "https://app.example.com".
  allowed_origins: []

sources:
`, file)
	for _, s := range sources {
		s.write(&out)
	}
	out.WriteString("\n# Clients follow watches, by these names.\nwatches:\n")
	for _, s := range sources {
		for _, w := range s.Watches {
			w.write(&out, s.Type)
		}
	}
	return out.String()
}

func (s Source) write(out *strings.Builder) {
	comment(out, "  ", s.Where)
	if s.Problem != nil {
		comment(out, "  ", "It did not say what it has when this was written: "+firstLine(s.Problem))
	}
	if len(s.Fields) == 0 {
		for _, note := range s.Notes {
			comment(out, "  ", note)
		}
		fmt.Fprintf(out, "  %s: { type: %[1]s }\n", s.Type)
		return
	}
	fmt.Fprintf(out, "  %s:\n    type: %[1]s\n", s.Type)
	for _, field := range s.Fields {
		fmt.Fprintf(out, "    %s\n", field)
	}
	for _, note := range s.Notes {
		comment(out, "    ", note)
	}
}

func (w Watch) write(out *strings.Builder, source string) {
	if w.Note != "" {
		comment(out, "  ", w.Note)
	}
	fields := "source: " + source
	if w.Fields != "" {
		fields += ", " + w.Fields
	}
	fmt.Fprintf(out, "  %s: { %s }\n", w.key(), fields)
}

// plain are names that YAML takes for texts without quotation marks.
var plain = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)

// key returns the name as a key of YAML.
func (w Watch) key() string {
	otherwise := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if !plain.MatchString(w.Name) || slices.Contains(otherwise, strings.ToLower(w.Name)) {
		return quoted(w.Name)
	}
	return w.Name
}

// comment writes a text that may come from elsewhere as one line of a comment.
func comment(out *strings.Builder, indent, text string) {
	fmt.Fprintf(out, "%s# %s\n", indent, printable(text))
}

// printable replaces what neither a line of YAML nor a terminal can have.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// quoted returns a text as YAML. Nothing in it is taken for a variable.
func quoted(text string) string {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text has no error
	return strings.ReplaceAll(strings.TrimSuffix(line.String(), "\n"), "${", "$${")
}

func quotedList(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, quoted(text))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// mapping returns keys with file names, without those that are empty.
func mapping(pairs ...string) string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, pairs[i]+": "+quoted(absolute(pairs[i+1])))
		}
	}
	return "{ " + strings.Join(all, ", ") + " }"
}
