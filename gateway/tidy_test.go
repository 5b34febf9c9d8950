package gateway

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func forcedCollections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}

// TestTidyAfterARush checks that there is a collection once few streams arrive, and
// none for a few streams.
func TestTidyAfterARush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s tidy
		before := forcedCollections()
		for range rush - 1 {
			s.arrive()
		}
		time.Sleep(10 * rushOver)
		if forcedCollections() != before {
			t.Error("it was collected for a few")
		}
		for range 10 {
			for range 2 * rushOverFew {
				s.arrive()
			}
			time.Sleep(rushOver / 2)
		}
		if forcedCollections() != before {
			t.Error("it was collected in the middle of the rush")
		}
		time.Sleep(3 * rushOver)
		if forcedCollections() == before {
			t.Error("it was not collected after the rush")
		}
		if s.arrived.Load() != 0 || s.waiting.Load() {
			t.Error("the next rush would not be noticed")
		}
	})
}
