package main

import (
	"io"
	"log/slog"
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

// readable writes a duration with its unit, which slog does not do in JSON.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}
