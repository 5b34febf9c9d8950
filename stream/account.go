package stream

import "sync/atomic"

// account is what one watch holds, counted against its own ceiling and the one
// that it shares. A nil account counts nothing and allows everything.
//
// Its methods for logs belong to the log's writer, those for what is staged to
// the source's reader, and to ingest once that has ended.
type account struct {
	// Static after construction.
	own, shared *Memory

	pins *pins // of the log; static once the log is made

	// Owned by the log's writer.
	log  int64 // what of the logs is this one's, or reserved for it
	dead int64 // what of it is superseded
}

func newAccount(ceiling int64, shared *Memory) *account {
	if shared == nil {
		shared = NewMemory(0)
	}
	return &account{own: NewMemory(ceiling), shared: shared}
}

// join makes the pins of a log known to those who share the ceiling.
func (a *account) join(p *pins) {
	if a != nil {
		a.pins = p
		a.shared.join(a)
	}
}

// leave follows the end of a watch: it holds nothing any more.
func (a *account) leave() {
	if a == nil {
		return
	}
	a.pins.takeAll()
	a.setLog(0, 0)
	a.shared.leave(a)
}

// pool is one of the counters of a Memory.
type pool func(*Memory) *atomic.Int64

func logsOf(m *Memory) *atomic.Int64       { return &m.logs }
func stagedOf(m *Memory) *atomic.Int64     { return &m.staged }
func supersededOf(m *Memory) *atomic.Int64 { return &m.superseded }

func (a *account) add(p pool, n int64) {
	p(a.own).Add(n)
	p(a.shared).Add(n)
}

// over returns an error if one of the counters is beyond what is allowed.
func (a *account) over(p pool, allowed func(*Memory) int64, what string) *MemoryError {
	for _, m := range []*Memory{a.own, a.shared} {
		if now := p(m).Load(); m.ceiling > 0 && now > allowed(m) {
			return &MemoryError{What: what, Needs: now, Allowed: allowed(m), Ceiling: m.ceiling, Shared: m == a.shared}
		}
	}
	return nil
}

// stage counts n more bytes as staged, fewer if negative.
func (a *account) stage(n int64) error {
	if a == nil {
		return nil
	}
	a.add(stagedOf, n)
	if n <= 0 {
		return nil
	}
	if err := a.over(stagedOf, (*Memory).forStaged, "what is being loaded"); err != nil {
		a.add(stagedOf, -n)
		return err
	}
	return nil
}

// grow reserves n more bytes for the log.
func (a *account) grow(n int64) error {
	if a == nil || n == 0 {
		return nil
	}
	a.reserve(a.log + n)
	if err := a.over(logsOf, (*Memory).forLogs, "what is served"); err != nil {
		a.reserve(a.log - n)
		return err
	}
	return nil
}

// replace reserves the bytes of a log that is made of a snapshot, instead of
// those of the log that there is.
func (a *account) replace(n int64) error {
	if a == nil {
		return nil
	}
	old := a.log
	a.reserve(n)
	if err := a.over(logsOf, (*Memory).forLogs, "a complete snapshot"); err != nil {
		a.reserve(old)
		return err
	}
	return nil
}

// crowded says whether n bytes do not fit beside all that is held.
func (a *account) crowded(n int64) bool {
	if a == nil {
		return false
	}
	for _, m := range []*Memory{a.own, a.shared} {
		if m.ceiling > 0 && m.together()+n > m.ceiling {
			return true
		}
	}
	return false
}

// setLog counts what the log holds, whatever was reserved for it: what is served,
// and what is superseded and not yet compacted.
func (a *account) setLog(n, dead int64) {
	if a == nil {
		return
	}
	a.reserve(n)
	a.add(supersededOf, dead-a.dead)
	a.dead = dead
}

func (a *account) reserve(n int64) {
	a.add(logsOf, n-a.log)
	a.log = n
}

// supersede counts so many more bytes that only readers of older versions hold.
func (a *account) supersede(n int64) {
	if a != nil {
		a.add(supersededOf, n)
	}
}

// leastPinned is how much the readers of older versions may always hold of a log
// without a ceiling.
const leastPinned = 64 << 20

// relieve takes pins away, the oldest first, until what the logs hold fits, older
// versions included. Under the common ceiling it takes them where the most is
// held. Without any ceiling, older versions hold as much as the log itself.
func (a *account) relieve(p *pins, log int64) {
	if !a.limited() {
		for p.held.Load() > max(leastPinned, log) && p.takeOldest() {
		}
		return
	}
	for a.own.swollen() && p.takeOldest() {
	}
	for a.shared.swollen() {
		if most := a.shared.mostPinned(); most == nil || !most.takeOldest() {
			return
		}
	}
}

func (a *account) limited() bool { return a != nil && a.own.ceiling+a.shared.ceiling > 0 }

// eraBytes is how much of a log that holds so many bytes is added and dropped in
// one era: little beside what older versions may hold.
func (a *account) eraBytes(log int64) int64 {
	const share = 64
	most := max(leastPinned, log)
	if a != nil && a.own.ceiling > 0 {
		most = min(most, a.own.ceiling)
	}
	if a != nil && a.shared.ceiling > 0 {
		most = min(most, a.shared.ceiling)
	}
	return most / share
}
