package load

import "time"

// defaultStamp precedes the time at which an event was published.
var defaultStamp = []byte(`"at":`)

// stamp reads the timestamps in one stream.
type stamp struct {
	match   uint8 // of the text before a time
	reading bool  // it has matched: digits follow
	nanos   int64
}

// scan records the age of every event whose timestamp ends in b. at precedes
// each.
func (s *stamp) scan(b []byte, now int64, at *marker, h *Histogram) {
	for len(b) > 0 {
		if s.reading {
			b = s.digits(b, now, h)
			continue
		}
		end, after := at.next(b, s.match)
		if s.match = after; end < 0 {
			return
		}
		b, s.reading, s.nanos = b[end:], true, 0
	}
}

// digits continues reading the number, and returns what follows it.
func (s *stamp) digits(b []byte, now int64, h *Histogram) []byte {
	for i, c := range b {
		if c < '0' || c > '9' {
			s.reading = false
			h.Record(time.Duration(now - s.nanos))
			return b[i:]
		}
		s.nanos = s.nanos*10 + int64(c-'0')
	}
	return nil
}
