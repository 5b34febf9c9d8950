package netconn

import (
	"sync"
	"time"
)

// RateWindow is the time over which Config.MinRate is measured.
const RateWindow = 30 * time.Second

// Pace ends a response to a client that reads more slowly than a minimum rate: a
// client that takes a byte now and then never reaches the time-out of a write.
//
// All methods may be called from any goroutine, and on a nil *Pace.
type Pace struct {
	// Static after construction.
	least int // bytes in each window
	end   func()

	mu      sync.Mutex // guards the following fields
	timer   *time.Timer
	moved   int // bytes since the window began
	stopped bool
	slow    bool // end was called
}

// NewPace begins a window. Progress is observed in steps, so a response may seem
// slower by one step than it is. It returns nil if the rate is not positive.
func NewPace(rate int64, step int, end func()) *Pace {
	if rate <= 0 {
		return nil
	}
	p := &Pace{least: max(1, int(rate*int64(RateWindow/time.Second))-step), end: end}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(RateWindow, p.look)
	return p
}

// Move records that the client took n bytes.
func (p *Pace) Move(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved += n
}

// look ends the response, or begins another window.
func (p *Pace) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
	case p.moved < p.least:
		p.slow = true
		p.end()
	default:
		p.moved = 0
		p.timer.Reset(RateWindow)
	}
}

// Stop returns once the function has returned or will not be called.
func (p *Pace) Stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.stopped = true
}

// TooSlow reports whether the response was ended.
func (p *Pace) TooSlow() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slow
}
