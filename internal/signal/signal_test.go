package signal

import (
	"sync"
	"testing"
)

// TestSignal: whoever waits is told, before the signal is sent and after it, and one of
// those who send it is the first.
func TestSignal(t *testing.T) {
	for range 1000 {
		var s Signal
		if s.WasSent() {
			t.Fatal("it was sent by nobody")
		}
		var all sync.WaitGroup
		first := make(chan bool, 2)
		for range 2 {
			all.Go(func() { first <- s.Send() })
			all.Go(func() { <-s.Sent() })
		}
		all.Wait()
		if one, other := <-first, <-first; one == other {
			t.Fatal("not exactly one was the first")
		}
		if <-s.Sent(); !s.WasSent() {
			t.Fatal("it was not sent")
		}
	}
}
