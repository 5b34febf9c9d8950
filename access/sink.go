package access

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostWaiting is the maximum number of entries that wait to be written: a reload may end,
	// or switch, tens of thousands of streams at once. Each takes about 400 bytes, and its
	// texts.
	mostWaiting = 32_768
	// mostKept is the capacity that is kept while no entry waits.
	mostKept = 256
	// batchBytes is about how many bytes are written at once.
	batchBytes = 64 << 10
)

// sink has the entries that wait for one output. A goroutine writes them. It runs only while
// there are any.
type sink struct {
	// Static after construction.
	out     io.Writer
	dropped *atomic.Uint64

	mu sync.Mutex // guards the following fields
	// waiting are the entries that are not written yet, and lost is the number of entries for
	// which there was no room.
	waiting []AuditEntry
	lost    uint64
	running bool          // there is a goroutine
	done    chan struct{} // closed when everything is written; nil: it is not retired

	// Owned by the goroutine.
	spare []AuditEntry
	cut   bool   // the last line has no end
	tells uint64 // lost entries that no line has reported
}

// add adds an entry. It returns false if the sink is retired.
func (s *sink) add(e AuditEntry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done != nil:
		return false
	case len(s.waiting) == mostWaiting:
		s.lost++
		s.dropped.Add(1)
		return true
	}
	s.waiting = append(s.waiting, e)
	if !s.running {
		s.running = true
		go s.run()
	}
	return true
}

// retire closes the output once everything is written, and then the channel. It must be called
// once.
func (s *sink) retire() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = make(chan struct{})
	if !s.running {
		s.close()
	}
	return s.done
}

// close closes the output if it can be. The mutex must be held.
func (s *sink) close() {
	if c, ok := s.out.(io.Closer); ok {
		_ = c.Close() // what it could not write is lost
	}
	close(s.done)
}

// run writes until nothing waits.
func (s *sink) run() {
	for {
		s.mu.Lock()
		batch := s.waiting
		s.tells += s.lost
		s.waiting, s.lost = s.spare, 0
		s.spare = nil
		if len(batch) == 0 {
			s.running = false
			s.spare = batch
			if s.done != nil {
				s.close()
			}
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for rest := batch; len(rest) > 0; {
			rest = rest[s.write(rest):]
		}
		if clear(batch); cap(batch) <= mostKept {
			s.spare = batch[:0]
		}
	}
}

// write writes the first entries, and returns how many it took.
func (s *sink) write(batch []AuditEntry) (taken int) {
	var text bytes.Buffer
	lines := json.NewEncoder(visible{&text})
	if s.cut {
		text.WriteByte('\n')
	}
	tells := s.tells
	if tells > 0 {
		_ = lines.Encode(AuditEntry{Time: time.Now(), Action: Lost, Count: tells}) // a buffer never fails
	}
	told := text.Len()
	ends := make([]int, 0, len(batch))
	for taken < len(batch) && text.Len() < batchBytes {
		_ = lines.Encode(batch[taken])
		taken++
		ends = append(ends, text.Len())
	}
	n, err := s.out.Write(text.Bytes())
	if n > 0 {
		s.cut = text.Bytes()[n-1] != '\n'
	}
	if n >= told-1 { // a line without its end is whole: the next write begins with the end
		s.tells -= tells
	}
	if err == nil {
		return taken
	}
	for _, end := range ends {
		if end-1 > n {
			s.tells++
			s.dropped.Add(1)
		}
	}
	return taken
}
