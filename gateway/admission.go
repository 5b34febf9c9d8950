package gateway

import (
	"math/rand/v2"
	"sync"
	"time"
)

// admission decides whether one more stream may be opened, counts those that
// are, and lets them go when the gateway drains. All transports share one.
//
// All methods may be called from any goroutine.
type admission struct {
	// Static after construction.
	limit  int           // 0: none
	spread time.Duration // over which goodbyes are spread; ≤ 0: none

	draining chan struct{} // closed by drain
	idle     chan struct{} // closed when draining and no stream is open any more

	mu      sync.Mutex // guards the following fields
	open    int
	drained bool // drain was called
}

func newAdmission(limit int, spread time.Duration) *admission {
	return &admission{
		limit: limit, spread: spread,
		draining: make(chan struct{}), idle: make(chan struct{}),
	}
}

// enter counts a stream in, and must be paired with leave; or it returns false:
// the stream must be refused as overload.
func (a *admission) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.drained || a.limit > 0 && a.open >= a.limit {
		return false
	}
	a.open++
	return true
}

// leave counts a stream out.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if a.drained && a.open == 0 {
		close(a.idle)
	}
}

// count returns how many streams are open.
func (a *admission) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// drain refuses new streams from now on and tells the open ones to leave. It
// returns at once; idle is closed when the last one has left.
func (a *admission) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.drained {
		return
	}
	a.drained = true
	close(a.draining)
	if a.open == 0 {
		close(a.idle)
	}
}

// isDraining says whether drain was called.
func (a *admission) isDraining() bool {
	select {
	case <-a.draining:
		return true
	default:
		return false
	}
}

// goodbyeDelay returns how long one stream stays after the drain began. It is
// random, so that clients do not all come back to the other replicas at once.
func (a *admission) goodbyeDelay() time.Duration {
	if a.spread <= 0 {
		return 0
	}
	return rand.N(a.spread)
}
