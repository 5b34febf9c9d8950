// Package memory counts what watches hold against ceilings: one of each watch, and one
// that they share.
package memory

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ErrExceeded means that a watch does not fit into its memory ceiling, or into that of
// all watches. See Error.
var ErrExceeded = errors.New("the watch does not fit into its memory")

// Ceiling is a ceiling for what watches hold: their logs, and what is staged on its
// way into them. Two fifths are for what the logs serve, and two for what is staged,
// so that there is always room to load the upstream's current state beside what is
// served. The last fifth, and what the logs leave of theirs, is for what was
// superseded: until it is compacted, and while readers are still in an older
// version. When it is full, the oldest versions are taken away from their readers,
// which continue from where they are in the newest one. A hundredth, out of that
// fifth, may be kept beside the logs, where it is useful but not necessary.
//
// A ceiling that several watches share is fair: when something does not fit, the
// watch that holds the most is refused. One that is within its equal share is never
// refused.
//
// It counts the bytes that are held. The garbage collector needs room beside them;
// see debug.SetMemoryLimit.
//
// All methods may be called from any goroutine.
type Ceiling struct {
	accounts *accounts // that share it; nil: it is that of one account

	// Atomic.
	ceiling                        atomic.Int64 // 0: none
	logs, staged, superseded, kept atomic.Int64
}

// NewCeiling returns a ceiling of so many bytes, which several watches may share.
// With 0 there is no ceiling, and it only counts.
func NewCeiling(ceiling int64) *Ceiling {
	m := &Ceiling{accounts: &accounts{}}
	m.ceiling.Store(ceiling)
	return m
}

// Bytes is the most bytes that may be held; 0: any number.
func (m *Ceiling) Bytes() int64 { return m.ceiling.Load() }

// SetBytes changes the maximum number of bytes; 0: any number. If more are held, the watch that
// holds the most has to give some up as soon as more memory is needed.
func (m *Ceiling) SetBytes(ceiling int64) { m.ceiling.Store(ceiling) }

// Logs is how many bytes the logs hold of what is not superseded.
func (m *Ceiling) Logs() int64 { return m.logs.Load() }

// Staged is how many bytes are held of transactions and snapshots that are not
// complete yet.
func (m *Ceiling) Staged() int64 { return m.staged.Load() }

// Superseded is how many bytes of superseded data are held, in the logs and by
// readers of older versions.
func (m *Ceiling) Superseded() int64 { return m.superseded.Load() }

// Kept is how many bytes are held beside the logs; see Account.Keep.
func (m *Ceiling) Kept() int64 { return m.kept.Load() }

// Held is how many bytes are held in all.
func (m *Ceiling) Held() int64 { return m.Logs() + m.Staged() + m.Superseded() + m.Kept() }

// MostLogs is the most bytes that the logs may hold of what is not superseded; 0: any number.
func (m *Ceiling) MostLogs() int64 { return logsPool.allowed(m) }

// Swollen reports whether older versions must be taken away from their readers.
func (m *Ceiling) Swollen() bool {
	return m.Bytes() > 0 && m.logs.Load()+m.superseded.Load()+m.kept.Load() > m.Bytes()/5*3
}

// accounts are those that share a ceiling. Its methods may be called from any goroutine.
type accounts struct {
	mu    sync.Mutex // guards the following fields, and where in all each account is
	all   []*Account
	fixed int // of them are fixed
}

func (m *Ceiling) join(a *Account) {
	m.accounts.mu.Lock()
	defer m.accounts.mu.Unlock()
	if a.place != 0 {
		return
	}
	m.accounts.all = append(m.accounts.all, a)
	a.place = len(m.accounts.all)
	if a.fixed {
		m.accounts.fixed++
	}
}

func (m *Ceiling) leave(a *Account) {
	m.accounts.mu.Lock()
	defer m.accounts.mu.Unlock()
	if a.place == 0 {
		return
	}
	all := m.accounts.all
	last := all[len(all)-1]
	all[a.place-1], all[len(all)-1] = last, nil
	last.place, a.place = a.place, 0
	m.accounts.all = all[:len(all)-1]
	if a.fixed {
		m.accounts.fixed--
	}
}

// number is how many watches share the ceiling.
func (m *Ceiling) number() int64 {
	m.accounts.mu.Lock()
	defer m.accounts.mu.Unlock()
	return int64(len(m.accounts.all) - m.accounts.fixed)
}

// mostPinned returns the pins that hold the most; nil if none holds anything.
func (m *Ceiling) mostPinned() (most Pins) {
	held := int64(0)
	m.accounts.mu.Lock()
	defer m.accounts.mu.Unlock()
	for _, a := range m.accounts.all {
		if n := a.pins.Held(); n > held {
			most, held = a.pins, n
		}
	}
	return most
}

// pool is one of the counters of a Ceiling.
type pool struct {
	of    func(*Ceiling) *atomic.Int64
	share int64 // of the ceiling that is allowed, in parts
	parts int64
}

var (
	logsPool       = &pool{func(m *Ceiling) *atomic.Int64 { return &m.logs }, 2, 5}
	stagedPool     = &pool{func(m *Ceiling) *atomic.Int64 { return &m.staged }, 2, 5}
	keptPool       = &pool{func(m *Ceiling) *atomic.Int64 { return &m.kept }, 1, 100}
	supersededPool = &pool{of: func(m *Ceiling) *atomic.Int64 { return &m.superseded }} // see Swollen
)

// allowed is how many bytes of a ceiling the pool may have.
func (p *pool) allowed(m *Ceiling) int64 { return m.Bytes() / p.parts * p.share }

// take counts n more bytes, if they are allowed. Of several concurrent calls, none
// is refused because of another that is refused.
func (p *pool) take(m *Ceiling, n int64) bool { return p.takeUpTo(m, n, p.allowed(m)) }

// takeUpTo is take, where so many bytes are allowed.
func (p *pool) takeUpTo(m *Ceiling, n, allowed int64) bool {
	counter := p.of(m)
	for {
		now := counter.Load()
		if m.Bytes() > 0 && now+n > allowed {
			return false
		}
		if counter.CompareAndSwap(now, now+n) {
			return true
		}
	}
}

// most returns the watch that holds the most of a pool; nil if there is none.
func (m *Ceiling) most(p *pool) (most *Account) {
	m.accounts.mu.Lock()
	defer m.accounts.mu.Unlock()
	for _, a := range m.accounts.all {
		if !a.fixed && (most == nil || p.of(&a.own).Load() > p.of(&most.own).Load()) {
			most = a
		}
	}
	return most
}

// together is how much is held, with as much superseded data as compaction leaves.
func (m *Ceiling) together() int64 { return m.logs.Load()*7/5 + m.staged.Load() }

// Error says why a watch does not fit. It is an ErrExceeded.
type Error struct {
	What    string // what there is too much of
	Needs   int64  // bytes, at least
	Allowed int64  // bytes
	Ceiling int64  // bytes
	Shared  bool   // the ceiling is that of all watches together
}

// Error says what is too much, and what would be enough.
func (e *Error) Error() string {
	whose, remedy := "its memory ceiling", "narrow the watch"
	if e.Shared {
		whose, remedy = "the memory ceiling of all watches together", "narrow or remove watches"
	}
	would := float64(e.Needs) / 2 * 5 // see pool
	return fmt.Sprintf("too large: %s needs at least %s, and may have %s of %s, %s: %s, or raise it to more than %s",
		e.What, sizeText(e.Needs), sizeText(e.Allowed), whose, sizeText(e.Ceiling), remedy, sizeText(int64(would)))
}

// Is makes it an ErrExceeded.
func (e *Error) Is(target error) bool { return target == ErrExceeded }

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
