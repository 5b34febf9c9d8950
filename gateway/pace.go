package gateway

import (
	"sync"
	"time"
)

// rateWindow is the time over which Config.MinRate is measured.
const rateWindow = 30 * time.Second

// pace ends a response to a client that takes less than a least rate: one that
// moves a byte now and then never reaches the time-out of a write.
//
// All methods may be called from any goroutine, and on nil.
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

// newPace begins a window. A response is seen to move in steps: by as much it may
// seem slower than it is. A rate that is not positive is none.
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

// move tells that the client took so many bytes.
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

// stop returns when end will not be called any more, or has returned.
func (p *pace) stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.stopped = true
}

// tooSlow says whether the response was ended.
func (p *pace) tooSlow() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slow
}
