package direct

import (
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/conversation"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
)

// Waiting for the next event allocates nothing.
func TestWaitingAllocatesNothing(t *testing.T) {
	watches := gatewaytest.NewWatches(t, "a")
	w, _ := watches.Registry.Watch("a")
	follows := []conversation.Follow{gatewaytest.NewDeps(watches).Follow(w, conversation.Choice{Name: "a"})}
	defer follows[0].Sub.Close()
	waiter := newWaiter(make(chan struct{}), nil, false, follows)
	defer waiter.close()
	if n := testing.AllocsPerRun(100, func() { waiter.wait(nil, time.Now()) }); n != 0 {
		t.Errorf("%v allocations for each wait", n)
	}
}
