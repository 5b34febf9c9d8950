package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// LogOptions say what is logged, and in which format. The zero value logs from level info on, in
// the format Auto.
type LogOptions struct {
	Level  slog.Level // the least that is logged
	Format string     // one of formats; empty: Auto
}

// The formats of the log.
const (
	Auto = "auto" // Text on a terminal, else JSON
	Text = "text" // key=value pairs, as in logfmt
	JSON = "json"
)

var (
	levels  = []string{"debug", "info", "warn", "error"}
	formats = []string{Auto, Text, JSON}
)

// Flags adds the flags of the log to a command and those below it.
func (o *LogOptions) Flags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.Var(choice{"level", levels, func() string { return strings.ToLower(o.Level.String()) }, func(text string) error { return o.Level.UnmarshalText([]byte(text)) }},
		"log-level", "least `LEVEL` that is logged: debug, info, warn or error")
	o.Format = Auto
	flags.Var(choice{"format", formats, func() string { return o.Format }, func(text string) error { o.Format = text; return nil }},
		"log-format", "`FORMAT` of the log: text, json, or auto, which is text on a terminal and json otherwise")
	_ = root.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// choice is a flag whose value is one of a few words.
type choice struct {
	kind  string
	words []string
	get   func() string
	set   func(string) error
}

func (c choice) String() string {
	if c.get == nil {
		return "" // the zero value, which pflag makes to recognize defaults
	}
	return c.get()
}

func (c choice) Type() string { return c.kind }

func (c choice) Set(text string) error {
	text = strings.ToLower(text)
	if !slices.Contains(c.words, text) {
		last := len(c.words) - 1
		return fmt.Errorf("want %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	return c.set(text)
}

// IsText reports whether the log is text, and so may have lines that are for people alone.
func (o LogOptions) IsText(terminal bool) bool {
	return o.Format == Text || o.Format != JSON && terminal
}

// Logger returns a logger that writes to w.
func (o LogOptions) Logger(w io.Writer, terminal bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: readable}
	if o.IsText(terminal) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// readable writes a duration with its unit, which slog does not do in JSON.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}
