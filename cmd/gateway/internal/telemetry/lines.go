package telemetry

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// mostWaiting is the maximum number of bytes that wait to be written.
const mostWaiting = 1 << 20

// LogLines writes lines to an output that may hang, such as a pipe that nobody reads. A line for
// which there is no room is lost, so that no caller waits. Once the output takes lines again, one
// of them says how many were lost.
type LogLines struct {
	out  io.Writer
	note func(w io.Writer, lost int) // writes the line that says how many were lost

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	lost    int
	closed  bool
	done    chan struct{} // closed when the goroutine ends
}

// NewLogLines returns a writer of lines. Close it.
func NewLogLines(out io.Writer, note func(w io.Writer, lost int)) *LogLines {
	l := &LogLines{out: out, note: note, done: make(chan struct{})}
	l.changed = sync.NewCond(&l.mu)
	go l.run()
	return l
}

// Write takes one line, or several. It never waits, and never fails.
func (l *LogLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.waiting)+len(line) > mostWaiting {
		l.lost++
		return len(line), nil
	}
	l.waiting = append(l.waiting, line...)
	l.changed.Signal()
	return len(line), nil
}

// Close waits until everything is written, for as long as patience at most. Later lines are lost.
func (l *LogLines) Close(patience time.Duration) error {
	l.mu.Lock()
	l.closed = true
	l.changed.Signal()
	l.mu.Unlock()
	select {
	case <-l.done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("the log does not take its last lines within %v", patience)
	}
}

func (l *LogLines) run() {
	defer close(l.done)
	var spare []byte
	for {
		l.mu.Lock()
		for len(l.waiting) == 0 && !l.closed {
			l.changed.Wait()
		}
		batch, lost := l.waiting, l.lost
		l.waiting, l.lost = spare[:0], 0
		l.mu.Unlock()
		if len(batch) == 0 && lost == 0 {
			return
		}
		_, _ = l.out.Write(batch) // what it does not take is lost
		if lost > 0 {
			l.note(l.out, lost)
		}
		spare = batch
	}
}
