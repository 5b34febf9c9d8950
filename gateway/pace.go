package gateway

import (
	"sync"
	"time"
)

// rateWindow is the time over which Config.MinRate is measured.
const rateWindow = 30 * time.Second

// pace ends a response to a client that reads more slowly than a minimum rate: a
// client that takes a byte now and then never reaches the time-out of a write.
//
// All methods may be called from any goroutine, and on a nil *pace.
type pace struct {
	// Static after construction.
	least int // bytes in each window
	end   func()

	mu      sync.Mutex // guards the following fields
	timer   *time.Timer
	moved   int // bytes since the window began
	stopped bool
	slow    bool // end was called
}

// newPace begins a window. Progress is seen in steps, so a response may seem slower
// than it is by one step. It returns nil if the rate is not positive.
func newPace(rate int64, step int, end func()) *pace {
	if rate <= 0 {
		return nil
	}
	p := &pace{least: max(1, int(rate*int64(rateWindow/time.Second))-step), end: end}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(rateWindow, p.look)
	return p
}

// move records that the client took n bytes.
func (p *pace) move(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved += n
}

// look ends the response, or begins another window.
func (p *pace) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
	case p.moved < p.least:
		p.slow = true
		p.end()
	default:
		p.moved = 0
		p.timer.Reset(rateWindow)
	}
}

// stop returns once end has returned or will not be called.
func (p *pace) stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.stopped = true
}

// tooSlow reports whether the response was ended.
func (p *pace) tooSlow() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slow
}
