package log

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// paceWindow is the time over which the rate of a reader is measured.
	paceWindow = 30 * time.Second
	// PaceEvery is how often the readers of a watch are checked, while any of them
	// has a minimum rate and pins a version.
	PaceEvery = 5 * time.Second
)

// pace compares what a reader takes with a minimum rate, without a timer for each
// reader. Each flush pays for the time that it takes at the minimum rate. The reader
// has that time, and what is left of the window, to take it and ask for the next
// one. Being faster than the rate pays for no more than the window.
type pace struct {
	rate int64        // bytes a second; 0: no minimum; static after construction
	paid atomic.Int64 // nanoseconds since the pins were made; written by the pump
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

// Moved notes that the reader is sent n bytes of another subscription over the same
// connection. They count towards MinRate: all subscriptions of a connection share
// its rate.
func (s *Subscription) Moved(n int) {
	if s.pin != nil && s.options.MinRate > 0 && !s.held && n > 0 {
		s.pin.pace.credit(s.log.pins.now(), n)
	}
}

// takeSlow takes pins away from readers below their minimum rate, if there is
// something newer. It reports whether to check again.
func (p *pins) takeSlow(newest *version) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var slow []*pin
	for _, e := range p.eras {
		for one := range e.pins {
			again = again || one.pace.rate > 0
			if one.pace.slow(now) && one.version().seq < newest.seq {
				slow = append(slow, one)
			}
		}
	}
	for _, one := range slow {
		p.end(one)
	}
	p.checking = again
	return again
}

// now is the time since the pins were made.
func (p *pins) now() time.Duration { return time.Since(p.began) }

// SlowReaders is signalled once a reader has a minimum rate. Call TakeSlow every
// PaceEvery then, until it returns false.
func (w *Writer) SlowReaders() <-chan struct{} { return w.pins.paced }

// TakeSlow takes versions away from readers below their minimum rate. It reports
// whether to call it again.
func (w *Writer) TakeSlow() (again bool) { return w.pins.takeSlow(w.head.Load()) }
