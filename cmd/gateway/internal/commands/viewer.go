package commands

import (
	"bufio"
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/client"
)

// viewer shows the followed watches.
type viewer interface {
	// event is called after an event was applied.
	event(client.Event) error
	lost(reason error, wait time.Duration)
	// close shows the remaining output.
	close() error
}

// viewer returns a live table on a terminal, and NDJSON otherwise.
func (a *app) viewer(f *following) viewer {
	if a.size != nil {
		return newScreen(a.stdout, a.size, f)
	}
	return &pipe{out: bufio.NewWriterSize(a.stdout, 64<<10), logger: a.logger()}
}

// pipe writes events as lines. Owned by the goroutine of Follow.
type pipe struct {
	out    *bufio.Writer
	logger *slog.Logger
}

// event writes the data of the event. Output is flushed where the server
// flushed, or when there is something to show immediately.
func (p *pipe) event(e client.Event) error {
	if _, err := p.out.Write(e.Data); err != nil {
		return err
	}
	if err := p.out.WriteByte('\n'); err != nil {
		return err
	}
	if e.ID == "" && isChange(e) {
		return nil
	}
	return p.out.Flush()
}

func (p *pipe) lost(reason error, wait time.Duration) {
	p.logger.Warn("disconnected", "reason", reason, "retry_in", wait)
}

func (p *pipe) close() error { return p.out.Flush() }
