package shard

import (
	"sync/atomic"
	"time"
)

// rush calls over once a rush of arrivals has ended: Config.AfterRush.
//
// All methods may be called from any goroutine.
type rush struct {
	over    func()       // nil: nothing is counted
	arrived atomic.Int64 // since the last rush
	waiting atomic.Bool  // a check is scheduled
}

const (
	// rushSize is how many arrivals are a rush.
	rushSize = 500
	// rushOver is the length of the quiet period that ends a rush, and rushOverFew
	// how many arrivals are quiet.
	rushOver    = time.Second
	rushOverFew = 50
)

// arrive counts one more stream.
func (r *rush) arrive() {
	if r.over == nil {
		return
	}
	if n := r.arrived.Add(1); n >= rushSize && r.waiting.CompareAndSwap(false, true) {
		time.AfterFunc(rushOver, func() { r.look(n) })
	}
}

// look ends the rush if few streams have arrived since the count was before.
func (r *rush) look(before int64) {
	if n := r.arrived.Load(); n-before > rushOverFew {
		time.AfterFunc(rushOver, func() { r.look(n) })
		return
	}
	r.arrived.Store(0)
	r.waiting.Store(false)
	r.over()
}
