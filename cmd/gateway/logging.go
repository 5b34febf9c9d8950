package main

import (
	"io"
	"log/slog"
)

// logger returns a logger to stderr: text for a person, JSON for a machine.
func (a *app) logger(least slog.Level) *slog.Logger {
	return slog.New(logHandler(a.stderr, a.logTerminal, least))
}

func logHandler(w io.Writer, terminal bool, least slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: least}
	if terminal {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}
