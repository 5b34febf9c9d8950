package commands

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
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

// linesPerMinute is how many lines a sparing logger writes. Clients cause them: each name
// that a template matches is a watch that starts, fails and ends.
const linesPerMinute = 30

// sparingly returns a logger that leaves out what is more than linesPerMinute, and says how
// much that was with the next line.
func sparingly(logger *slog.Logger) *slog.Logger {
	return slog.New(sparing{logger.Handler(), &sparingCount{}})
}

// sparing is a slog.Handler. Those derived from it share its count.
type sparing struct {
	slog.Handler
	count *sparingCount
}

// sparingCount counts lines. All its methods may be called from any goroutine.
type sparingCount struct {
	mu      sync.Mutex // guards the following fields
	began   time.Time  // of the present minute
	written int        // in it
	left    int        // out, since the last line that was written
}

// take reports whether a line may be written, and how many were left out before it.
func (c *sparingCount) take(now time.Time) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.began) >= time.Minute {
		c.began, c.written = now, 0
	}
	if c.written >= linesPerMinute {
		c.left++
		return 0, false
	}
	c.written++
	leftOut, c.left = c.left, 0
	return leftOut, true
}

// Handle implements slog.Handler.
func (h sparing) Handle(ctx context.Context, r slog.Record) error {
	leftOut, ok := h.count.take(time.Now())
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("lines_left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h sparing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sparing{h.Handler.WithAttrs(attrs), h.count}
}

// WithGroup implements slog.Handler.
func (h sparing) WithGroup(name string) slog.Handler {
	return sparing{h.Handler.WithGroup(name), h.count}
}
