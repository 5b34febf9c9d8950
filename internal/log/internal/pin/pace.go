package pin

import (
	"math"
	"sync/atomic"
	"time"
)

// paceWindow is the time over which the rate of a reader is measured.
const paceWindow = 30 * time.Second

// pace compares what a reader takes with a minimum rate, without a timer for each
// reader. Each flush pays for the time that it takes at the minimum rate. The reader
// has that time, and what is left of the window, to take it and ask for the next
// one. Being faster than the rate pays for no more than the window.
type pace struct {
	rate int64        // bytes a second; 0: no minimum; static after construction
	paid atomic.Int64 // nanoseconds since the set was made; written by the pump
}

// credit notes that the reader is sent n more bytes. If n is 0, its walk has found
// nothing yet, and the reader is not to blame.
func (p *pace) credit(now time.Duration, n int) {
	window := int64(now + paceWindow)
	if n == 0 {
		p.paid.Store(max(p.paid.Load(), window))
		return
	}
	p.paid.Store(min(p.paid.Load(), window) + p.timeFor(n))
}

// timeFor is how long n bytes take at the minimum rate.
func (p *pace) timeFor(n int) int64 {
	return int64(float64(n) / float64(max(1, p.rate)) * float64(time.Second))
}

// pause stops the clock until the next credit.
func (p *pace) pause() { p.paid.Store(math.MaxInt64) }

// slow reports whether the reader takes less than the minimum rate.
func (p *pace) slow(now time.Duration) bool {
	return p.rate > 0 && p.paid.Load() < int64(now)
}

// paceEvery is how often readers are checked, while any of them has a minimum rate.
const paceEvery = 5 * time.Second

// check has takeSlow called in a while, with the mutex held.
func (s *Set) check() {
	s.checking = true
	time.AfterFunc(paceEvery, s.takeSlow)
}

// takeSlow takes pins away from readers below their minimum rate, if there is something
// newer. It is called again as long as any reader has such a rate.
func (s *Set) takeSlow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, now := s.head.Load(), s.now()
	again := false
	var slow []*Pin
	for _, e := range s.eras {
		for one := range e.pins {
			again = again || one.pace.rate > 0
			if one.pace.slow(now) && one.Version().Seq < newest.Seq {
				slow = append(slow, one)
			}
		}
	}
	for _, one := range slow {
		s.end(one)
	}
	s.checking = false
	if again {
		s.check()
	}
}

// now is the time since the set was made.
func (s *Set) now() time.Duration { return time.Since(s.began) }

// Credit notes that the reader of a pin is sent n more bytes; see pace.
func (s *Set) Credit(one *Pin, n int) {
	if one == nil {
		return
	}
	one.taken.Add(int64(n))
	if one.pace.rate > 0 {
		one.pace.credit(s.now(), n)
	}
}

// Pause stops the clock of a pin'held reader until its next credit.
func (s *Set) Pause(one *Pin) {
	if one != nil {
		one.pace.pause()
	}
}
