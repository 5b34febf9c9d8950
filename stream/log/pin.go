package log

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/stream/memory"
)

// pin keeps one version of a log, and with it memory that newer versions do not
// need. A reader has one between two flushes of a long walk, and a listing has one
// between two pages. It is taken away if the memory is needed, or if the reader is
// too slow. The reader finds that out at its next flush, or never if it is blocked.
type pin struct {
	held atomic.Pointer[version] // nil once it was released or taken away
	era  *era                    // guarded by the mutex of pins; nil once held is
	pace pace
}

// version returns the pinned version; nil if it was taken away.
func (p *pin) version() *version {
	if p == nil {
		return nil
	}
	return p.held.Load()
}

// pins counts the memory that readers of older versions of a log hold and its newest
// version does not. Memory that several of them hold is counted once.
//
// Its mutex is taken once for each walk that is longer than a flush, and by the
// writer when it retires memory. No reader waits for another reader's walk.
type pins struct {
	// Static after construction.
	account *memory.Account
	began   time.Time
	paced   chan struct{} // a reader has a minimum rate, which must be checked

	held atomic.Int64 // bytes, written with the mutex held

	mu       sync.Mutex // guards the following fields
	newest   uint64     // number of the newest version that retired memory
	eras     []*era     // oldest first: those with pins, then the one under way
	counted  int64      // bytes that were added and retired in the era under way
	spans    map[span]int64
	checking bool // paced was signalled, and takeSlow will be called
}

// era is a number of consecutive versions whose pins are not distinguished.
type era struct {
	from uint64 // number of its first version; static after construction
	to   uint64 // number of the first version after it; 0 while it is under way
	pins map[*pin]struct{}
}

// span is the range of eras with pins whose versions hold some memory.
type span struct{ first, last *era }

// retired is memory that no newer version of the log holds.
type retired struct {
	born  uint64 // number of the first version that holds it
	bytes int64
}

func newPins(a *memory.Account) *pins {
	return &pins{account: a, began: time.Now(), paced: make(chan struct{}, 1), eras: []*era{newEra(0)}, spans: map[span]int64{}}
}

// ended reports whether the era had ended before a version.
func (e *era) ended(number uint64) bool { return e.to != 0 && e.to <= number }

func newEra(from uint64) *era { return &era{from: from, pins: map[*pin]struct{}{}} }

// add pins a version for a reader that must take rate bytes a second, if that is not
// 0. It returns nil if memory of the version was already retired.
func (p *pins) add(v *version, rate int64) *pin {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.number < p.newest {
		return nil
	}
	i := slices.IndexFunc(p.eras, func(e *era) bool { return !e.ended(v.number) })
	one := &pin{era: p.eras[i], pace: pace{rate: rate}}
	one.held.Store(v)
	one.pace.credit(p.now(), 0)
	one.era.pins[one] = struct{}{}
	if rate > 0 && !p.checking {
		p.checking = true
		select {
		case p.paced <- struct{}{}:
		default: // nobody looks after this log
		}
	}
	return one
}

// release ends a pin. One that was taken away has already ended, and so has nil.
func (p *pins) release(one *pin) {
	if one == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(one)
}

func (p *pins) end(one *pin) {
	one.held.Store(nil)
	if e := one.era; e != nil {
		one.era = nil
		delete(e.pins, one)
		p.releaseEra(e)
	}
}

// advance is called before a version is published that adds some bytes to the log and
// retires others. An era ends after eraBytes of both together.
func (p *pins) advance(number uint64, all []retired, added, eraBytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted += added
	for _, r := range all {
		p.counted += r.bytes
		p.retire(r)
	}
	if len(all) > 0 {
		p.newest = number
	}
	if p.counted < eraBytes {
		return
	}
	p.counted = 0
	if last := p.eras[len(p.eras)-1]; len(last.pins) > 0 {
		last.to = number
		p.eras = append(p.eras, newEra(number))
	}
}

// retire counts memory that a pinned version holds.
func (p *pins) retire(r retired) {
	var s span
	for _, e := range p.eras {
		if len(e.pins) == 0 || e.ended(r.born) {
			continue
		}
		if s.first == nil {
			s.first = e
		}
		s.last = e
	}
	if s.first != nil {
		p.spans[s] += r.bytes
		p.count(r.bytes)
	}
}

// releaseEra is called at the end of a pin: memory that only the pins of its era held is
// released.
func (p *pins) releaseEra(e *era) {
	if len(e.pins) > 0 {
		return
	}
	before, after := p.neighbors(e)
	for s, bytes := range p.spans {
		first, last := s.first, s.last
		if first == e {
			first = after
		}
		if last == e {
			last = before
		}
		if first == s.first && last == s.last {
			continue
		}
		delete(p.spans, s)
		if first == nil || last == nil || first.from > last.from {
			p.count(-bytes)
			continue
		}
		p.spans[span{first, last}] += bytes
	}
	p.forget(e)
}

// neighbors returns the nearest eras with pins on both sides; nil where there is none.
func (p *pins) neighbors(of *era) (before, after *era) {
	for _, e := range p.eras {
		switch {
		case len(e.pins) == 0:
		case e.from < of.from:
			before = e
		case e.from > of.from && after == nil:
			after = e
		}
	}
	return before, after
}

// forget removes an era without pins, unless it is the one under way.
func (p *pins) forget(e *era) {
	for i := range p.eras[:len(p.eras)-1] {
		if p.eras[i] == e {
			p.eras = append(p.eras[:i], p.eras[i+1:]...)
			return
		}
	}
}

func (p *pins) count(bytes int64) {
	p.held.Add(bytes)
	p.account.Supersede(bytes)
}

// Held implements memory.Pins.
func (p *pins) Held() int64 { return p.held.Load() }

// TakeOldest takes away the pins of the oldest era that holds memory; false if none
// does.
func (p *pins) TakeOldest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var oldest *era
	for s := range p.spans {
		if oldest == nil || s.first.from < oldest.from {
			oldest = s.first
		}
	}
	if oldest != nil {
		p.take(oldest)
	}
	return oldest != nil
}

// TakeAll takes all pins away.
func (p *pins) TakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range slices.Clone(p.eras) {
		p.take(e)
	}
}

func (p *pins) take(e *era) {
	for one := range e.pins {
		one.held.Store(nil)
		one.era = nil
	}
	clear(e.pins)
	p.releaseEra(e)
}
