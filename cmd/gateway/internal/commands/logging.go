package commands

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// logger returns a logger to stderr: text for a person, JSON for a machine.
func (a *app) logger(least slog.Level) *slog.Logger {
	return slog.New(logHandler(a.stderr, a.logTerminal, least))
}

func logHandler(w io.Writer, terminal bool, least slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: least, ReplaceAttr: readable}
	if terminal {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}

var levels = []string{"debug", "info", "warn", "error"}

// levelFlag is a flag whose value is one of levels.
type levelFlag struct{ level *slog.Level }

func (f levelFlag) String() string { return strings.ToLower(f.level.String()) }
func (f levelFlag) Type() string   { return "level" }

func (f levelFlag) Set(text string) error {
	if !slices.Contains(levels, strings.ToLower(text)) {
		return errors.New("want debug, info, warn or error")
	}
	return f.level.UnmarshalText([]byte(text))
}

// readable writes a duration with its unit, which slog does not do in JSON.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}
