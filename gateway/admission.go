package gateway

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// limits are how many streams may be open at the same time. 0 means any number.
type limits struct {
	total     int
	perClient int
	perWatch  int
}

// guest is an open stream as it was counted: two numbers that only admission can
// read, so that the last owner of the stream can let it leave.
type guest struct {
	client int32
	party  int32 // the watches of the stream
}

// admission decides whether another stream may be opened, counts the open streams,
// and makes them leave when the gateway drains. All transports share one.
//
// Its memory is proportional to the number of open streams, and to the number of
// different clients and choices of watches among them.
//
// All methods may be called from any goroutine.
type admission struct {
	// Static after construction.
	limits limits
	spread time.Duration // the period over which goodbyes are spread; ≤ 0: none

	draining chan struct{} // closed by drain
	idle     chan struct{} // closed when the gateway drains and no stream is open

	mu      sync.Mutex // guards the following fields
	open    int
	drained bool // drain was called
	clients internTable[client]
	parties internTable[string] // names of watches, separated by commas
	watches map[string]int
}

func newAdmission(l limits, spread time.Duration) *admission {
	return &admission{
		limits: l, spread: spread, watches: map[string]int{},
		draining: make(chan struct{}), idle: make(chan struct{}),
	}
}

// enter counts a stream in and returns a guest, which must be passed to leave.
// Otherwise it returns the reason to refuse the stream.
func (a *admission) enter(c client, watches []string) (guest, *refusal) {
	party := strings.Join(watches, ",") // no name contains one
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.refusal(c, watches); r != nil {
		return guest{}, r
	}
	a.open++
	for _, name := range watches {
		a.watches[name]++
	}
	return guest{client: a.clients.enter(c), party: a.parties.enter(party)}, nil
}

// refusal returns the limit that a stream would exceed, the widest one first: another
// replica may have room then.
func (a *admission) refusal(c client, watches []string) *refusal {
	if a.drained {
		return &refusal{reason: refusedDraining}
	}
	if reached(a.open, a.limits.total) {
		return &refusal{reason: refusedSubscribers, count: a.open, limit: a.limits.total}
	}
	for _, name := range watches {
		if n := a.watches[name]; reached(n, a.limits.perWatch) {
			return &refusal{reason: refusedWatch, count: n, limit: a.limits.perWatch, watch: name}
		}
	}
	if a.limits.perClient == 0 {
		return nil
	}
	if n := a.clients.streams(c); reached(n, a.limits.perClient) {
		return &refusal{reason: refusedClient, count: n, limit: a.limits.perClient, client: c}
	}
	return nil
}

func reached(n, limit int) bool { return limit > 0 && n >= limit }

// leave counts a stream out. It is called once for each guest.
func (a *admission) leave(t guest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients.leave(t.client)
	for name := range strings.SplitSeq(a.parties.leave(t.party), ",") {
		if a.watches[name]--; a.watches[name] == 0 {
			delete(a.watches, name)
		}
	}
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

// clientCount returns the number of different clients that have a stream.
func (a *admission) clientCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clients.keys()
}

// drain refuses new streams from now on and tells the open ones to leave. It returns
// at once; idle is closed when the last stream has left.
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

// isDraining reports whether drain was called.
func (a *admission) isDraining() bool {
	select {
	case <-a.draining:
		return true
	default:
		return false
	}
}

// goodbyeDelay returns how long one stream stays after the drain began. It is random,
// so that clients do not all move to the other replicas at once.
func (a *admission) goodbyeDelay() time.Duration {
	if a.spread <= 0 {
		return 0
	}
	return rand.N(a.spread)
}
