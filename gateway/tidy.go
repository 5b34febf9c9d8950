package gateway

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// tidy triggers a garbage collection once a rush of arrivals is over. Being accepted,
// answered and taken over leaves a stream with several times the memory that it needs
// from then on, and a gateway whose streams only wait makes no garbage that would
// trigger the next collection.
//
// All methods may be called from any goroutine.
type tidy struct {
	arrived atomic.Int64 // since the last collection
	waiting atomic.Bool  // a look is scheduled
}

const (
	// rush is how many arrivals are worth a collection.
	rush = 500
	// rushOver is how long few streams must have arrived, and rushOverFew how many
	// are few.
	rushOver    = time.Second
	rushOverFew = 50
)

// arrive counts one more stream.
func (t *tidy) arrive() {
	if n := t.arrived.Add(1); n >= rush && t.waiting.CompareAndSwap(false, true) {
		time.AfterFunc(rushOver, func() { t.look(n) })
	}
}

// look collects if few have arrived since the count was before.
func (t *tidy) look(before int64) {
	if n := t.arrived.Load(); n-before > rushOverFew {
		time.AfterFunc(rushOver, func() { t.look(n) })
		return
	}
	t.arrived.Store(0)
	t.waiting.Store(false)
	runtime.GC() // pools release their content in two steps
	debug.FreeOSMemory()
}
