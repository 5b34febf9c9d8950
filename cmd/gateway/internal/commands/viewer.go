package commands

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/changes"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// viewer shows the followed watches.
type viewer interface {
	// Event is called after an event was applied.
	Event(client.Event) error
	Lost(reason error, wait time.Duration)
	// Close shows the remaining output.
	Close() error
}

// viewer returns what shows the watches, and the position that it continues from: a live
// table on a terminal, and NDJSON otherwise, unless the options say something else.
func (a *app) viewer(ctx context.Context, o watchOptions, f *following) (viewer, string, error) {
	lines := &pipe{out: bufio.NewWriterSize(a.stdout, 64<<10), format: o.format, terminal: a.size != nil, logger: a.logger()}
	switch {
	case o.hook.Given():
		return a.runner(ctx, o, f.names)
	case o.quiet:
		return silent{}, "", nil
	case o.changesOnly:
		return newOnlyChanges(f.names, lines), "", nil
	case f.shown:
		return newScreen(a.stdout, a.size, f), "", nil
	}
	return lines, "", nil
}

// runner returns what runs a command for each change.
func (a *app) runner(ctx context.Context, o watchOptions, names []string) (viewer, string, error) {
	if o.quiet {
		a.logging.Level = max(a.logging.Level, slog.LevelError)
	}
	r, err := o.hook.Start(ctx, o.server, changes.NewSubject(names, o.view), a.stdout, a.stderr, a.logger())
	if err != nil {
		return nil, "", err
	}
	return r, r.Position(), nil
}

// pipe writes events as lines. Owned by the goroutine that follows.
type pipe struct {
	out      *bufio.Writer
	format   terminal.Format
	terminal bool // at the other end
	logger   *slog.Logger
}

// event writes the data of the event. Output is flushed where the server
// flushed, or when there is something to show immediately.
func (p *pipe) Event(e client.Event) error {
	text, err := p.text(e.Data)
	if err != nil {
		return err
	}
	if p.terminal {
		text = escaped(text)
	}
	if _, err := p.out.Write(text); err != nil {
		return err
	}
	if e.ID == "" && isChange(e) {
		return nil
	}
	return p.out.Flush()
}

// text returns an event in the form of the output. An event that lacks what a template names has
// no text.
func (p *pipe) text(event []byte) ([]byte, error) {
	text, err := p.format.Bytes(event)
	switch {
	case err != nil:
		return nil, err
	case p.format.Name == terminal.YAML:
		return append([]byte("---\n"), text...), nil
	case p.format.Name == terminal.JSONPath && len(bytes.TrimSpace(text)) == 0:
		return nil, nil
	}
	return text, nil
}

func (p *pipe) Lost(reason error, wait time.Duration) {
	p.logger.Warn("disconnected", "reason", reason, "retry_in", wait)
}

func (p *pipe) Close() error { return p.out.Flush() }

// onlyChanges passes changes on, and nothing else. It is a changes.Handler. Owned by the
// goroutine that follows.
type onlyChanges struct {
	*pipe
	tracker *changes.Tracker
}

func newOnlyChanges(names []string, p *pipe) *onlyChanges {
	c := &onlyChanges{pipe: p}
	c.tracker = changes.NewTracker(changes.NewKnown(names, false), c)
	return c
}

func (c *onlyChanges) Event(e client.Event) error {
	if err := c.tracker.Event(e); err != nil || e.ID == "" {
		return err
	}
	return c.out.Flush()
}

// Change implements changes.Handler.
func (c *onlyChanges) Change(e client.Event) error { return c.pipe.Event(e) }

// Record implements changes.Handler. After a restart everything is new, so nothing is stored.
func (c *onlyChanges) Record(changes.Record) error { return nil }

// silent shows nothing.
type silent struct{}

func (silent) Event(client.Event) error  { return nil }
func (silent) Lost(error, time.Duration) {}
func (silent) Close() error              { return nil }
