package load

import "bytes"

// lastID keeps the last id line of one stream.
type lastID struct {
	id []byte
	// tail is the incomplete last line of the last read.
	tail []byte
}

// scan looks only at the last lines: earlier ones are obsolete.
func (l *lastID) scan(b []byte) {
	end := bytes.LastIndexByte(b, '\n')
	if end < 0 {
		l.tail = append(l.tail, b...)
		return
	}
	first := bytes.IndexByte(b, '\n')
	l.take(append(l.tail, b[:first]...))
	l.tail = append(l.tail[:0], b[end+1:]...)
	for lines := b[first : end+1]; ; {
		from := bytes.LastIndex(lines, []byte("\nid: "))
		if from < 0 {
			return
		}
		if line, _, _ := bytes.Cut(lines[from+1:], []byte("\n")); l.take(line) {
			return
		}
		lines = lines[:from+1]
	}
}

// take stores a complete line if it is an id. One that ends in a carriage return
// was cut by the framing of a chunk, and is not an id.
func (l *lastID) take(line []byte) bool {
	id, ok := bytes.CutPrefix(line, []byte("id: "))
	if !ok || bytes.HasSuffix(id, []byte("\r")) {
		return false
	}
	l.id = append(l.id[:0], id...)
	return true
}
