package pin

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
)

// Pin keeps one version of a log, and with it memory that newer versions do not
// need. A reader has one between two flushes of a long walk, and a listing has one
// between two pages. It is taken away if the memory is needed, or if the reader is
// too slow. The reader finds that out at its next flush, or never if it is blocked.
type Pin struct {
	held atomic.Pointer[storage.Version] // nil once it was released or taken away
	era  *era                            // guarded by the mutex of the set; nil once held is
	kept bool                            // for a reader that may come; static after construction
	pace pace

	// Of a reader that Begin has added.
	newest        time.Duration // when the version was the newest, since the set was made; static after construction
	before, after *Pin          // the readers that have begun before and after it; guarded by the mutex of the set

	began time.Duration // since the set was made; static after construction
	taken atomic.Int64  // bytes that the reader was sent
}

// Version returns the pinned version; nil if it was taken away.
func (p *Pin) Version() *storage.Version {
	if p == nil {
		return nil
	}
	return p.held.Load()
}

// Set counts the memory that readers of older versions of a log hold and its newest
// version does not. Memory that several of them hold is counted once.
//
// Its mutex is taken once for each walk that is longer than a flush, and by the
// writer when it retires memory. No reader waits for another reader's walk.
type Set struct {
	// Static after construction.
	account *memory.Account
	head    *atomic.Pointer[storage.Version] // the newest version
	began   time.Time

	held atomic.Int64 // bytes, written with the mutex held

	mu       sync.Mutex     // guards the following fields
	newest   uint64         // number of the newest version that retired memory
	eras     []*era         // oldest first: those with pins, then the one under way, unless no era has pins
	counted  int64          // bytes that were added and retired in the era under way
	spans    map[span]int64 // nil until there is one
	checking bool           // a reader has a minimum rate, and takeSlow will be called
	begun    *Pin           // of the readers that Begin has added, the last one that is left; nil: none
}

// era is a number of consecutive versions whose pins are not distinguished.
type era struct {
	from uint64            // number of its first version; static after construction
	to   uint64            // number of the first version after it; 0 while it is under way
	pins map[*Pin]struct{} // nil: none

	readers int           // pins of readers
	since   time.Duration // when the first of these was added, since the set was made
	read    time.Duration // when one of these was found to read it fast enough
}

const (
	// spared is how long the pins of an era are left to its readers, if one of them reads so fast that it has all of its
	// version by then.
	spared = time.Minute
	// sparedIdle is the part of it in which a reader need not read.
	sparedIdle = 5 * time.Second
	// readEvery is how often such a reader is looked for.
	readEvery = time.Second
)

// BeginsWithin is for how long after a version was the newest readers begin in it because others have.
const BeginsWithin = time.Second

// span is the range of eras with pins whose versions hold some memory.
type span struct{ first, last *era }

// Retired is memory that no newer version of the log holds.
type Retired struct {
	Born  uint64 // number of the first version that holds it
	Bytes int64
}

// NewSet returns an empty set for the versions of a log, the newest of which is at head. The
// account counts the memory of its pins. A set without pins is small, since there may be very
// many.
func NewSet(a *memory.Account, head *atomic.Pointer[storage.Version]) *Set {
	return &Set{account: a, head: head, began: time.Now()}
}

// ended reports whether the era had ended before a version.
func (e *era) ended(number uint64) bool { return e.to != 0 && e.to <= number }

// Add pins a version for a reader that must take rate bytes a second, if that is not
// 0. It returns nil if memory of the version was already retired.
func (s *Set) Add(v *storage.Version, rate int64) *Pin {
	return s.addNew(v, &Pin{pace: pace{rate: rate}})
}

// Keep pins a version for readers that may come. It returns nil if memory of the version was already
// retired.
func (s *Set) Keep(v *storage.Version) *Pin { return s.addNew(v, &Pin{kept: true}) }

// Begin pins a version for a reader that begins now: the one in which another reader has begun, if that was the newest
// a moment ago, is still pinned, and suits; else v, which is the newest. So readers that begin at about the
// same time read the same version, however fast the log changes. The pin is nil if memory of v was already retired.
func (s *Set) Begin(v *storage.Version, rate int64, suits func(older *storage.Version) bool) (*Pin, *storage.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &Pin{pace: pace{rate: rate}, newest: s.now()}
	if last := s.begun; last != nil && s.now()-last.newest <= BeginsWithin && suits(last.Version()) {
		v, one.newest = last.Version(), last.newest
		s.add(last.era, v, one)
	} else if one = s.addNewLocked(v, one); one == nil {
		return nil, v
	}
	if one.before = s.begun; one.before != nil {
		one.before.after = one
	}
	s.begun = one
	return one, v
}

// forgetBegun is called when a pin has ended or is taken away.
func (s *Set) forgetBegun(one *Pin) {
	if s.begun == one {
		s.begun = one.before
	}
	if one.before != nil {
		one.before.after = one.after
	}
	if one.after != nil {
		one.after.before = one.before
	}
	one.before, one.after = nil, nil
}

func (s *Set) addNew(v *storage.Version, one *Pin) *Pin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addNewLocked(v, one)
}

// addNewLocked is addNew with s.mu held.
func (s *Set) addNewLocked(v *storage.Version, one *Pin) *Pin {
	if v.Number < s.newest {
		return nil
	}
	if len(s.eras) == 0 {
		s.eras = append(s.eras, &era{from: s.newest})
	}
	i := slices.IndexFunc(s.eras, func(e *era) bool { return !e.ended(v.Number) })
	return s.add(s.eras[i], v, one)
}

// Again pins the version of a pin for another reader, with the same minimum rate. It returns
// nil if the version was taken away.
func (s *Set) Again(one *Pin) *Pin {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one == nil || one.era == nil {
		return nil
	}
	return s.add(one.era, one.Version(), &Pin{kept: one.kept, pace: pace{rate: one.pace.rate}})
}

// Join pins the newest version that another reader has pinned, for a reader that has lost its own, so that readers
// that are too slow for all that changes come to have few versions. It returns nil unless that is of the
// generation and has everything up to a seq.
func (s *Set) Join(generation, seq uint64, rate int64) (*Pin, *storage.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.eras) {
		if e.readers == 0 {
			continue
		}
		var newest *storage.Version
		for one := range e.pins {
			if v := one.Version(); newest == nil || v.Number > newest.Number {
				newest = v
			}
		}
		if newest.Generation != generation || newest.Seq < seq {
			return nil, nil
		}
		return s.add(e, newest, &Pin{pace: pace{rate: rate}}), newest
	}
	return nil, nil
}

// add adds a pin of a version of an era. s.mu is held.
func (s *Set) add(e *era, v *storage.Version, one *Pin) *Pin {
	now := s.now()
	one.era, one.began = e, now
	one.held.Store(v)
	one.pace.credit(now, 0)
	if e.pins == nil {
		e.pins = map[*Pin]struct{}{}
	}
	e.pins[one] = struct{}{}
	if !one.kept {
		if e.readers++; e.readers == 1 {
			e.since, e.read = now, now
		}
	}
	if one.pace.rate > 0 && !s.checking {
		s.check()
	}
	return one
}

// Release ends a pin. One that was taken away has already ended, and so has nil.
func (s *Set) Release(one *Pin) {
	if one == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(one)
}

func (s *Set) end(one *Pin) {
	one.held.Store(nil)
	if e := one.era; e != nil {
		one.era = nil
		s.forgetBegun(one)
		delete(e.pins, one)
		if !one.kept {
			e.readers--
		}
		s.releaseEra(e)
	}
}

// Advance is called before a version is published that adds some bytes to the log and
// retires others. An era ends after eraBytes of both together.
func (s *Set) Advance(number uint64, all []Retired, added, eraBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted += added
	for _, r := range all {
		s.counted += r.Bytes
		s.retire(r)
	}
	if len(all) > 0 {
		s.newest = number
	}
	if s.counted < eraBytes {
		return
	}
	s.counted = 0
	if n := len(s.eras); n > 0 && len(s.eras[n-1].pins) > 0 {
		s.eras[n-1].to = number
		s.eras = append(s.eras, &era{from: number})
	}
}

// retire counts memory that a pinned version holds.
func (s *Set) retire(r Retired) {
	var held span
	for _, e := range s.eras {
		if len(e.pins) == 0 || e.ended(r.Born) {
			continue
		}
		if held.first == nil {
			held.first = e
		}
		held.last = e
	}
	if held.first != nil {
		if s.spans == nil {
			s.spans = map[span]int64{}
		}
		s.spans[held] += r.Bytes
		s.count(r.Bytes)
	}
}

// releaseEra is called at the end of a pin: memory that only the pins of its era held is
// released.
func (s *Set) releaseEra(e *era) {
	if len(e.pins) > 0 {
		return
	}
	e.pins = nil
	before, after := s.neighbors(e)
	for held, bytes := range s.spans {
		first, last := held.first, held.last
		if first == e {
			first = after
		}
		if last == e {
			last = before
		}
		if first == held.first && last == held.last {
			continue
		}
		delete(s.spans, held)
		if first == nil || last == nil || first.from > last.from {
			s.count(-bytes)
			continue
		}
		s.spans[span{first, last}] += bytes
	}
	s.forget(e)
}

// neighbors returns the nearest eras with pins on both sides; nil where there is none.
func (s *Set) neighbors(of *era) (before, after *era) {
	for _, e := range s.eras {
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

// forget removes an era without pins, unless it is the one under way and follows others.
func (s *Set) forget(e *era) {
	if len(s.eras) == 1 && s.eras[0] == e {
		s.eras, s.spans = nil, nil
	}
	for i := range max(0, len(s.eras)-1) {
		if s.eras[i] == e {
			s.eras = append(s.eras[:i], s.eras[i+1:]...)
			return
		}
	}
}

func (s *Set) count(bytes int64) {
	s.held.Add(bytes)
	s.account.Supersede(bytes)
}

// Held implements memory.Pins.
func (s *Set) Held() int64 { return s.held.Load() }

// TakeOldest takes away the pins of the oldest era that holds memory; false if none
// does.
func (s *Set) TakeOldest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest *era
	for held := range s.spans {
		if oldest == nil || held.first.from < oldest.from {
			oldest = held.first
		}
	}
	if oldest != nil {
		s.take(oldest)
	}
	return oldest != nil
}

// TakeSurplus takes pins away, those of the oldest era first, until the others hold no more than most
// bytes, beside one era with readers: the oldest that is spared, or else the newest. So these
// readers come to the end of their version, however fast the log changes, and then those of the
// next one; and readers that need less time are as well off as without them.
func (s *Set) TakeSurplus(most int64) {
	if s.Held() <= most {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var left *era
	for _, e := range s.eras {
		if e.readers == 0 {
			continue
		}
		if left = e; e.spare(s.now()) {
			break
		}
	}
	for {
		var oldest *era
		beside := int64(0)
		for held, bytes := range s.spans {
			if left != nil && held.first.from <= left.from && left.from <= held.last.from {
				continue // it stays anyway
			}
			if beside += bytes; oldest == nil || held.first.from < oldest.from {
				oldest = held.first
			}
		}
		if beside <= most {
			return
		}
		s.take(oldest)
	}
}

// spare reports whether readers are given the time to read all of a version.
func (e *era) spare(now time.Duration) bool {
	if now-e.since >= spared {
		return false
	}
	if now-e.read < readEvery {
		return true
	}
	for one := range e.pins {
		if !one.kept && one.reads(now) {
			e.read = now
			return true
		}
	}
	return false
}

// reads reports whether the reader takes its version fast enough to be spared. One without a minimum rate, such as what
// makes a view, does.
func (p *Pin) reads(now time.Duration) bool {
	passed := now - p.began - sparedIdle
	return p.pace.rate == 0 || passed <= 0 || float64(p.taken.Load()) >= float64(p.Version().Bytes)*float64(passed)/float64(spared-sparedIdle)
}

// TakeAll takes all pins away.
func (s *Set) TakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Clone(s.eras) {
		s.take(e)
	}
}

func (s *Set) take(e *era) {
	for one := range e.pins {
		one.held.Store(nil)
		one.era = nil
		s.forgetBegun(one)
	}
	clear(e.pins)
	e.readers = 0
	s.releaseEra(e)
}

// Versions returns the pinned versions, each as often as it is pinned.
func (s *Set) Versions() (all []*storage.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.eras {
		for one := range e.pins {
			all = append(all, one.Version())
		}
	}
	return all
}

// Eras returns how many eras are distinguished.
func (s *Set) Eras() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, len(s.eras))
}
