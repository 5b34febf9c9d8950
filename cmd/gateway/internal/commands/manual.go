package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manualCommand returns a hidden command that writes the pages of all commands beside it.
func manualCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use:    "manual FOLDER",
		Short:  "Write the manual pages",
		Long:   "Write the manual pages, one for each command, into a folder, which is made if it does not exist.",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE:   func(c *cobra.Command, args []string) error { return writeManual(c.Root(), version, args[0]) },
	}
}

// writeManual writes a page for a command, and one for each command below it, into a folder. The same
// version always makes the same bytes.
func writeManual(c *cobra.Command, version, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	file := filepath.Join(folder, pageName(c)+".1")
	if err := os.WriteFile(file, []byte(page(c, version)), 0o644); err != nil {
		return err
	}
	for _, child := range c.Commands() {
		if !child.IsAvailableCommand() {
			continue
		}
		if err := writeManual(child, version, folder); err != nil {
			return err
		}
	}
	return nil
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page returns the page of a command in the macros of man(7).
func page(c *cobra.Command, version string) string {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %s 1 \"\" %s\n", quoted(strings.ToUpper(pageName(c))), quoted("watchtide "+version))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", escapedRoff(pageName(c)), escapedRoff(lowerFirst(c.Short)))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.B %s\n", escapedRoff(c.UseLine()))
	manualSection(&out, "DESCRIPTION", text(c.Long, c.Short))
	manualSection(&out, "OPTIONS", flags(c.NonInheritedFlags()))
	manualSection(&out, "OPTIONS OF ALL COMMANDS", flags(c.InheritedFlags()))
	manualSection(&out, "EXAMPLES", verbatim(strings.Split(c.Example, "\n")))
	manualSection(&out, "SEE ALSO", related(c))
	return out.String()
}

func manualSection(out *strings.Builder, title, body string) {
	if body != "" {
		fmt.Fprintf(out, ".SH %s\n%s", quoted(title), body)
	}
}

// text returns paragraphs as they are in the help: those that are indented keep their lines.
func text(long, short string) string {
	if long == "" {
		long = short + "."
	}
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(long), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		filled := 0
		for filled < len(lines) && !strings.HasPrefix(lines[filled], " ") {
			filled++
		}
		out.WriteString(".PP\n")
		for _, line := range lines[:filled] {
			out.WriteString(escapedRoff(line) + "\n")
		}
		out.WriteString(verbatim(lines[filled:]))
	}
	return out.String()
}

// verbatim returns lines that are not filled.
func verbatim(lines []string) string {
	if strings.TrimSpace(strings.Join(lines, "")) == "" {
		return ""
	}
	var out strings.Builder
	out.WriteString(".PP\n.nf\n")
	for _, line := range lines {
		out.WriteString(escapedRoff(line) + "\n")
	}
	return out.String() + ".fi\n"
}

func flags(set *pflag.FlagSet) string {
	var out strings.Builder
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		names := "--" + f.Name
		if f.Shorthand != "" {
			names = "-" + f.Shorthand + ", " + names
		}
		fmt.Fprintf(&out, ".TP\n%s\n%s\n", strings.TrimSpace(`\fB`+escapedRoff(names)+`\fR `+escapedRoff(value)), escapedRoff(usage+defaultOf(f)))
	})
	return out.String()
}

// defaultOf returns what a flag is unless it is set, if that is worth a word.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return ""
	}
	return " (default " + f.DefValue + ")"
}

// related names the pages of the commands above and below.
func related(c *cobra.Command) string {
	var names []string
	if c.HasParent() {
		names = append(names, pageName(c.Parent()))
	}
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, pageName(child))
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf(".BR %s (1)", escapedRoff(name))
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, " ,\n") + "\n"
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "^", `\(ha`, "`", `\(ga`, "~", `\(ti`)

// escapedRoff returns a line that is shown as it is. It is ASCII: not every man reads anything else.
func escapedRoff(line string) string {
	var out strings.Builder
	for _, r := range escapes.Replace(line) {
		if r > '~' {
			fmt.Fprintf(&out, `\[u%04X]`, r)
			continue
		}
		out.WriteRune(r)
	}
	if strings.HasPrefix(line, ".") {
		return `\&` + out.String()
	}
	return out.String()
}

// quoted returns an argument of a macro.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(escapedRoff(text), `"`, `\(dq`) + `"`
}
