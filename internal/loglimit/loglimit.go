package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// New returns a logger that leaves out what is more than so many lines in a minute, and says
// with the next line how much that was. Lines below the level of the logger do not count.
// Loggers that are derived from it share the limit.
func New(logger *slog.Logger, perMinute int) *slog.Logger {
	return slog.New(handler{logger.Handler(), &count{limit: perMinute}})
}

// handler is a slog.Handler. Those derived from it share its count.
//
// All methods may be called from any goroutine.
type handler struct {
	slog.Handler
	count *count
}

// count counts lines. All its methods may be called from any goroutine.
type count struct {
	limit int // of a minute; static

	mu      sync.Mutex // guards the following fields
	began   time.Time  // of the present minute
	written int        // in it
	left    int        // out, since the last line that was written
}

// take reports whether a line may be written, and how many were left out before it.
func (c *count) take(now time.Time) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.began) >= time.Minute {
		c.began, c.written = now, 0
	}
	if c.written >= c.limit {
		c.left++
		return 0, false
	}
	c.written++
	leftOut, c.left = c.left, 0
	return leftOut, true
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
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
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.count}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.count}
}
