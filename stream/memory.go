package stream

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Memory is a ceiling for what watches hold: their logs, and what is staged on its
// way into them. Two fifths are for what the logs serve, and two for what is staged,
// so that there is always room to load the upstream's current state beside what is
// served. The last fifth, and what the logs leave of theirs, is for what was
// superseded: until it is compacted, and while readers are still in an older
// version. When it is full, the oldest versions are taken away from their readers,
// which continue from where they are in the newest one.
//
// A ceiling that several watches share is fair: when something does not fit, the
// watch that holds the most is refused. One that is within its equal share is never
// refused.
//
// It counts the bytes that are held. The garbage collector needs room beside them;
// see debug.SetMemoryLimit.
//
// All methods may be called from any goroutine.
type Memory struct {
	ceiling int64 // static after construction; 0: none

	// Atomic.
	logs, staged, superseded atomic.Int64

	// Never modified, only replaced.
	accounts atomic.Pointer[[]*account]
}

// NewMemory returns a ceiling of so many bytes, which several watches may share.
// With 0 there is no ceiling, and it only counts.
func NewMemory(ceiling int64) *Memory { return &Memory{ceiling: ceiling} }

// Ceiling is the most bytes that may be held; 0: any number.
func (m *Memory) Ceiling() int64 { return m.ceiling }

// Logs is how many bytes the logs hold of what is not superseded.
func (m *Memory) Logs() int64 { return m.logs.Load() }

// Staged is how many bytes are held of transactions and snapshots that are not
// complete yet.
func (m *Memory) Staged() int64 { return m.staged.Load() }

// Superseded is how many bytes of superseded data are held, in the logs and by
// readers of older versions.
func (m *Memory) Superseded() int64 { return m.superseded.Load() }

// swollen reports whether older versions must be taken away from their readers.
func (m *Memory) swollen() bool {
	return m.ceiling > 0 && m.logs.Load()+m.superseded.Load() > m.ceiling/5*3
}

func (m *Memory) join(a *account) {
	m.replace(func(all []*account) []*account { return append(all, a) })
}

func (m *Memory) leave(a *account) {
	m.replace(func(all []*account) []*account {
		return slices.DeleteFunc(all, func(one *account) bool { return one == a })
	})
}

func (m *Memory) replace(change func([]*account) []*account) {
	for {
		old := m.accounts.Load()
		var all []*account
		if old != nil {
			all = slices.Clone(*old)
		}
		changed := change(all)
		if m.accounts.CompareAndSwap(old, &changed) {
			return
		}
	}
}

// all returns the accounts that share the ceiling.
func (m *Memory) all() []*account {
	if all := m.accounts.Load(); all != nil {
		return *all
	}
	return nil
}

// mostPinned returns the pins that hold the most; nil if none holds anything.
func (m *Memory) mostPinned() (most Pins) {
	held := int64(0)
	for _, a := range m.all() {
		if n := a.pins.Held(); n > held {
			most, held = a.pins, n
		}
	}
	return most
}

// pool is one of the counters of a Memory.
type pool struct {
	of     func(*Memory) *atomic.Int64
	fifths int64 // of the ceiling that are allowed
}

var (
	logsPool       = &pool{func(m *Memory) *atomic.Int64 { return &m.logs }, 2}
	stagedPool     = &pool{func(m *Memory) *atomic.Int64 { return &m.staged }, 2}
	supersededPool = &pool{of: func(m *Memory) *atomic.Int64 { return &m.superseded }} // see swollen
)

// allowed is how many bytes of a ceiling the pool may have.
func (p *pool) allowed(m *Memory) int64 { return m.ceiling / 5 * p.fifths }

// take counts n more bytes, if they are allowed. Of several concurrent calls, none
// is refused because of another that is refused.
func (p *pool) take(m *Memory, n int64) bool {
	counter := p.of(m)
	for {
		now := counter.Load()
		if m.ceiling > 0 && now+n > p.allowed(m) {
			return false
		}
		if counter.CompareAndSwap(now, now+n) {
			return true
		}
	}
}

// most returns the account that holds the most of a pool; nil if there is none.
func (m *Memory) most(p *pool) (most *account) {
	for _, a := range m.all() {
		if most == nil || p.of(a.own).Load() > p.of(most.own).Load() {
			most = a
		}
	}
	return most
}

// together is how much is held, with as much superseded data as compaction leaves.
func (m *Memory) together() int64 { return m.logs.Load()*7/5 + m.staged.Load() }

// MemoryError says why a watch does not fit. It is an ErrMemory.
type MemoryError struct {
	What    string // what there is too much of
	Needs   int64  // bytes, at least
	Allowed int64  // bytes
	Ceiling int64  // bytes
	Shared  bool   // the ceiling is that of all watches together
}

// Error says what is too much, and what would be enough.
func (e *MemoryError) Error() string {
	whose, remedy := "its memory ceiling", "narrow the watch"
	if e.Shared {
		whose, remedy = "the memory ceiling of all watches together", "narrow or remove watches"
	}
	would := float64(e.Needs) / 2 * 5 // see pool
	return fmt.Sprintf("too large: %s needs at least %s, and may have %s of %s, %s: %s, or raise it to more than %s",
		e.What, sizeText(e.Needs), sizeText(e.Allowed), whose, sizeText(e.Ceiling), remedy, sizeText(int64(would)))
}

// Is makes it an ErrMemory.
func (e *MemoryError) Is(target error) bool { return target == ErrMemory }

// sizeText formats n bytes, for instance as 1.5 GiB.
func sizeText(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n)/step, 0
	for size >= step && unit < len("KMGT")-1 {
		size /= step
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGT"[unit])
}
