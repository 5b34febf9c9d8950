package epoll

import (
	"runtime/pprof"
	"sync"
	"testing"
	"time"
)

func newPoller(t *testing.T) Poller {
	t.Helper()
	p, err := SystemSockets(nil).NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWaitKeepsNoThread: a goroutine that waits leaves its thread, and so its processor, to
// others at once.
func TestWaitKeepsNoThread(t *testing.T) {
	const pollers = 64
	threads := pprof.Lookup("threadcreate")
	before := threads.Count()
	var waits sync.WaitGroup
	var all []Poller
	for range pollers {
		p, begins := newPoller(t), make(chan struct{})
		waits.Go(func() {
			defer p.Shut()
			close(begins)
			if got, err := p.Wait(nil, -1); len(got) > 0 || err != nil {
				t.Errorf("got %v, %v, want nothing", got, err)
			}
		})
		<-begins
		all = append(all, p)
	}
	more := threads.Count() - before
	for _, p := range all {
		p.Ring()
	}
	waits.Wait()
	if more > pollers/4 {
		t.Errorf("%d goroutines that wait have %d threads", pollers, more)
	}
}

// TestWaitEnds: a wait ends at its timeout, at once if that is zero, and if the poller was
// rung before.
func TestWaitEnds(t *testing.T) {
	p := newPoller(t)
	defer p.Shut()
	for _, timeout := range []time.Duration{time.Millisecond, 0, 1, time.Millisecond} {
		began := time.Now()
		if got, err := p.Wait(nil, timeout); len(got) > 0 || err != nil || time.Since(began) < timeout {
			t.Errorf("after %v: got %v, %v, want nothing after %v", time.Since(began), got, err, timeout)
		}
	}
	p.Ring()
	p.Ring()
	if got, err := p.Wait(nil, -1); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v, want nothing", got, err)
	}
}
