package commands

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

const (
	// frameTime is the shortest time between two frames.
	frameTime = 100 * time.Millisecond
	// idleTime is the longest, so that times advance and a new size is noticed.
	idleTime = time.Second

	enterScreen = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	endOfLine   = "\x1b[K\r\n"
	clearBelow  = "\x1b[J"
)

// screen draws the followed watches on a terminal, in its own goroutine, so
// that a slow terminal does not hold up the stream.
type screen struct {
	// Static after construction.
	out       io.Writer
	size      func() (width, height int, err error)
	following *following
	dirty     chan struct{} // to run: there is something new; one slot
	stop      chan struct{} // closed by close
	done      chan struct{} // closed when run has ended

	// Owned by run; by close once run has ended.
	sections map[string]*section
	err      error
}

func newScreen(out io.Writer, size func() (width, height int, err error), f *following) *screen {
	s := &screen{
		out: out, size: size, following: f,
		dirty: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		sections: map[string]*section{},
	}
	for _, name := range f.names {
		s.sections[name] = &section{name: name, sortKey: f.sortKey, table: terminal.NewTable()}
	}
	go s.run()
	return s
}

func (s *screen) Event(client.Event) error { s.touch(); return nil }

func (s *screen) Lost(error, time.Duration) { s.touch() }

func (s *screen) touch() {
	select {
	case s.dirty <- struct{}{}:
	default: // a frame is due anyway, and will show this too
	}
}

// run draws at most every frameTime, at least every idleTime.
func (s *screen) run() {
	defer close(s.done)
	s.write([]byte(enterScreen))
	idle := time.NewTicker(idleTime)
	defer idle.Stop()
	for {
		s.frame()
		if s.pause(frameTime) {
			break
		}
		select {
		case <-s.dirty:
		case <-idle.C:
		case <-s.stop:
		}
	}
	s.write([]byte(leaveScreen))
}

// pause waits; true: the screen was closed.
func (s *screen) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-s.stop:
		return true
	}
}

// frame draws over the previous frame.
func (s *screen) frame() {
	width, height := s.dimensions()
	var out bytes.Buffer
	out.WriteString(home)
	lines := s.lines(width, height)
	for i, line := range lines {
		out.WriteString(line)
		if i < len(lines)-1 {
			out.WriteString(endOfLine)
		} else {
			out.WriteString("\x1b[K") // a line break would scroll
		}
	}
	out.WriteString(clearBelow)
	s.write(out.Bytes())
}

func (s *screen) dimensions() (width, height int) {
	width, height, err := s.size()
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}

// lines returns as many lines as there are, an equal part for each watch.
func (s *screen) lines(width, height int) []string {
	var out []string
	names := s.following.names
	for i, name := range names {
		part := (height - len(out)) / (len(names) - i)
		out = append(out, s.sections[name].lines(s.following.watches[name], width, part)...)
	}
	return out[:min(len(out), height)]
}

func (s *screen) write(b []byte) {
	if s.err == nil {
		_, s.err = s.out.Write(b)
	}
}

// close leaves the last state on the terminal.
func (s *screen) Close() error {
	close(s.stop)
	<-s.done
	width, height := s.dimensions()
	for _, line := range s.lines(width, height-1) {
		s.write([]byte(line + "\n"))
	}
	if s.err != nil {
		return fmt.Errorf("terminal: %w", s.err)
	}
	return nil
}
