package nats

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

const (
	// maxLine is how many bytes a line of the protocol may have: subjects, and what the
	// server says of itself.
	maxLine = 64 << 10
	// maxMessage is how many bytes a message may have. No server takes larger ones.
	maxMessage = 64<<20 + maxLine
	// maxPending is how many bytes of messages may wait to be read. The server sends
	// less, by far, before it waits for a confirmation.
	maxPending = 2 * maxMessage
)

// framing follows the protocol of the server, to refuse what is too large before
// memory is allocated for it: the library allocates what a line announces. It reads
// lines as the library does.
//
// Owned by the reader of the connection.
type framing struct {
	// Static after construction.
	own  string            // prefix of the subjects of answers
	hold func(bytes int64) // see stream.SinkExtension

	line   []byte
	inside bool  // a message: what follows is its content and the end of the line
	left   int   // bytes of the content
	answer int64 // bytes held for the message, if it is an answer
}

// pass follows the next bytes from the server.
func (f *framing) pass(p []byte) error {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, len(p))
			f.left -= n
			p = p[n:]
			continue
		}
		end := bytes.IndexByte(p, '\n') + 1
		line := p[:end]
		if end == 0 {
			line = p
		}
		if len(f.line)+len(line) > maxLine {
			return fmt.Errorf("%w: a line of more than %d bytes, which begins with %.40q", stream.ErrInvalid, maxLine, f.line)
		}
		f.line = append(f.line, line...)
		p = p[len(line):]
		if end > 0 {
			if err := f.read(string(f.line)); err != nil {
				return err
			}
			f.line = f.line[:0]
		}
	}
	return nil
}

// read reads a whole line: what ends a message, what announces one, or any other.
func (f *framing) read(line string) error {
	if f.inside {
		f.inside = false
		f.hold(-f.answer)
		f.answer = 0
		return nil
	}
	withReply := 5
	switch line[0] | 0x20 {
	case 'm':
	case 'h':
		withReply++ // it also has the length of the header
	default:
		return nil
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == '\n' })
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil || size < 0 || size > maxMessage || len(words) < withReply-1 {
		return fmt.Errorf("%w: the announcement %.200q: want a message of at most %d bytes", stream.ErrInvalid, line, maxMessage)
	}
	f.inside, f.left = true, size
	held := int64(size + len(words[1])) // as Msg.Size
	if len(words) == withReply {
		held += int64(len(words[3]))
	}
	f.hold(held)
	if strings.HasPrefix(words[1], f.own) {
		f.answer = held
	}
	return nil
}
