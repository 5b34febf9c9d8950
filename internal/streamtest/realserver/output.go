package realserver

import (
	"bytes"
	"strings"
	"sync"
)

// tailSize is how many bytes of a server's output are kept for the message of a
// test that fails.
const tailSize = 32 << 10

// output is the last output of a server, and its line "ready …". Safe for
// concurrent use: a server has two streams, and tests ask meanwhile.
type output struct {
	// Static after construction.
	ready chan []string // buffered; gets the words behind "ready"

	mu    sync.Mutex // guards what follows
	last  []byte
	line  []byte // the beginning of a line of stdout
	found bool
}

func newOutput() *output { return &output{ready: make(chan []string, 1)} }

// Write keeps the output of stderr.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(p)
	return len(p), nil
}

func (o *output) keep(p []byte) {
	o.last = append(o.last, p...)
	if extra := len(o.last) - tailSize; extra > tailSize { // seldom, since it copies
		o.last = append([]byte(nil), o.last[extra:]...)
	}
}

// String returns the tail.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return tail(o.last)
}

func tail(b []byte) string {
	if len(b) > tailSize {
		b = append([]byte("…"), b[len(b)-tailSize:]...)
	}
	if len(b) == 0 {
		return "(it printed nothing)"
	}
	return string(b)
}

// stdout is the side on which the line is expected.
type stdout struct{ *output }

// Write keeps p, and looks for the line until it is found.
func (s stdout) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(p)
	if s.found {
		return len(p), nil
	}
	s.line = append(s.line, p...)
	for !s.found {
		line, rest, whole := bytes.Cut(s.line, []byte("\n"))
		if !whole {
			break
		}
		s.line = rest
		s.scan(string(line))
	}
	return len(p), nil
}

func (s stdout) scan(line string) {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "ready" {
		return
	}
	s.found, s.line = true, nil
	s.ready <- words[1:]
}
