package credential

import (
	"net/netip"
	"sync"
)

// Limits of sign-ins that wait for the provider at the same time.
const (
	maxTurns      = 64
	maxTurnsOfOne = 8 // address
)

// turns counts the sign-ins that wait for the provider.
type turns struct {
	mu sync.Mutex
	// Guarded by mu.
	all int
	of  map[netip.Addr]int // by network
}

func newTurns() *turns { return &turns{of: map[netip.Addr]int{}} }

// take reports whether one more sign-in of an address may wait. If so, leave ends that.
func (t *turns) take(a netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a = network(a)
	if t.all == maxTurns || t.of[a] == maxTurnsOfOne {
		return false
	}
	t.all++
	t.of[a]++
	return true
}

func (t *turns) leave(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a = network(a)
	t.all--
	if t.of[a]--; t.of[a] == 0 {
		delete(t.of, a)
	}
}
