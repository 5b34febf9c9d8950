package client

import (
	"errors"
	"io"
	"time"
)

// maxRead bounds one read. The r3labs reader looks through everything that it
// has buffered for five kinds of line breaks before each event; with a large
// buffer full of small events that would take time in its square.
const maxRead = 16 << 10

// cutEvent is the event type that a cut event gets.
const cutEvent = "cut"

// errSilent ends a connection on which nothing came, not even a heartbeat.
var errSilent = errors.New("no heartbeat: the connection is dead")

// watchedBody is the body of a response, on its way to the r3labs reader. It
// measures silence, and renames an event that is cut off by the end of the
// body: the reader takes it for a whole one, with half an id at the worst.
//
// Owned by the goroutine that reads; Close may be called by another.
type watchedBody struct {
	io.ReadCloser
	silence *silence
	tail    tail
	end     error  // how the body ended; nil: it has not
	rest    []byte // still to be handed over before end
}

// Read reads from the body.
func (b *watchedBody) Read(p []byte) (int, error) {
	if b.end != nil {
		return b.readRest(p)
	}
	// Only the time spent in here counts: a slow consumer is not a dead server.
	b.silence.begin()
	n, err := b.ReadCloser.Read(p[:min(len(p), maxRead)])
	b.silence.end()
	b.tail.add(p[:n])
	if err == nil {
		return n, nil
	}
	b.end, b.rest = err, b.tail.rename()
	if n > 0 {
		return n, nil
	}
	return b.readRest(p)
}

func (b *watchedBody) readRest(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, b.end
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// tail remembers whether what was read ends with a whole event: with an empty
// line, or with nothing at all.
type tail struct {
	began    bool // inside an event
	lineOpen bool // inside a line
}

func (t *tail) add(p []byte) {
	if len(p) == 0 {
		return
	}
	last := p[len(p)-1]
	// One byte may be the second of an empty line.
	emptyLine := last == '\n' && (len(p) > 1 && p[len(p)-2] == '\n' || len(p) == 1 && !t.lineOpen)
	t.began = !emptyLine
	t.lineOpen = last != '\n'
}

// rename returns what makes the cut event one of a type that nobody knows. Its
// last event field counts.
func (t *tail) rename() []byte {
	switch {
	case !t.began:
		return nil
	case t.lineOpen:
		return []byte("\nevent: " + cutEvent + "\nid:\n\n")
	default:
		return []byte("event: " + cutEvent + "\nid:\n\n")
	}
}

// silence calls a function when nothing came for too long.
//
// begin and end belong to the reader of the body; limit may be set by another
// goroutine and counts from the next begin.
type silence struct {
	timer *time.Timer
	limit atomicDuration
}

func newSilence(limit time.Duration, tooLong func()) *silence {
	s := &silence{timer: time.AfterFunc(limit, tooLong)}
	s.timer.Stop()
	s.limit.Store(limit)
	return s
}

func (s *silence) begin() { s.timer.Reset(s.limit.Load()) }
func (s *silence) end()   { s.timer.Stop() }
