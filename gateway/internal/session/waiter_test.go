package session_test

import (
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// Waiting for the next event allocates nothing.
func TestWaitingAllocatesNothing(t *testing.T) {
	watches := gatewaytest.NewWatches(t, "a")
	w, _ := watches.Registry.Watch("a")
	follows := []session.Follow{gatewaytest.NewDeps(watches).Follow(w, session.Choice{Name: "a"}, &session.Request{})}
	defer follows[0].Sub.Close()
	waiter := session.NewWaiter(make(chan struct{}), nil, false, follows)
	defer waiter.Close()
	if n := testing.AllocsPerRun(100, func() { waiter.Wait() }); n != 0 {
		t.Errorf("%v allocations for each wait", n)
	}
}
