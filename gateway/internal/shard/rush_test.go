package shard

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAfterARush checks that the function is called once few streams arrive, once for
// each rush, and not for a few streams.
func TestAfterARush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		r := rush{over: func() { calls.Add(1) }}
		for range rushSize - 1 {
			r.arrive()
		}
		time.Sleep(10 * rushOver)
		if calls.Load() != 0 {
			t.Error("it was called for a few")
		}
		for want := range int64(2) {
			for range 10 {
				for range 2 * rushOverFew {
					r.arrive()
				}
				time.Sleep(rushOver / 2)
			}
			if calls.Load() != want {
				t.Error("it was called in the middle of the rush")
			}
			time.Sleep(3 * rushOver)
			if n := calls.Load(); n != want+1 {
				t.Errorf("after %d rushes it was called %d times", want+1, n)
			}
		}
		if r.arrived.Load() != 0 || r.waiting.Load() {
			t.Error("the next rush would not be noticed")
		}
	})
}

// TestNoAfterRush checks that nothing is scheduled without a function to call.
func TestNoAfterRush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rush
		for range 2 * rushSize {
			r.arrive()
		}
		time.Sleep(10 * rushOver)
		if r.arrived.Load() != 0 || r.waiting.Load() {
			t.Error("it counts")
		}
	})
}
