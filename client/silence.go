package client

import (
	"sync/atomic"
	"time"
)

// silence calls a function when nothing has arrived for too long.
//
// begin and end belong to the reader of the body; the limit may be set by another
// goroutine and counts from the next begin.
type silence struct {
	timer *time.Timer
	limit atomic.Int64
}

func newSilence(limit time.Duration, tooLong func()) *silence {
	s := &silence{timer: time.AfterFunc(limit, tooLong)}
	s.timer.Stop()
	s.setLimit(limit)
	return s
}

func (s *silence) setLimit(d time.Duration) { s.limit.Store(int64(d)) }
func (s *silence) getLimit() time.Duration  { return time.Duration(s.limit.Load()) }
func (s *silence) begin()                   { s.timer.Reset(s.getLimit()) }
func (s *silence) end()                     { s.timer.Stop() }
