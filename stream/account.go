package stream

// account is what one watch holds, counted against its own ceiling and the one
// that it shares. A nil account counts nothing and allows everything.
//
// Its methods for logs belong to the log's writer, those for what is staged to
// the source's reader, and to ingest once that has ended.
type account struct {
	// Static after construction.
	own, shared *Memory

	pins     *pins         // of the log; static once the log is made
	squeezed chan struct{} // the watch is to give up what it has: others have no room

	// Owned by the log's writer.
	log  int64 // what of the logs is this one's, or reserved for it
	dead int64 // what of it is superseded
}

func newAccount(ceiling int64, shared *Memory) *account {
	if shared == nil {
		shared = NewMemory(0)
	}
	return &account{own: NewMemory(ceiling), shared: shared, squeezed: make(chan struct{}, 1)}
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

// reserve takes n more bytes of a pool, against both ceilings.
func (a *account) reserve(p *pool, n int64, what string) error {
	if !p.take(a.own, n) {
		return a.refusal(p, a.own, n, what)
	}
	if !p.take(a.shared, n) && !a.borrow(p, n) {
		err := a.refusal(p, a.shared, n, what)
		p.of(a.own).Add(-n)
		return err
	}
	return nil
}

// borrow takes n bytes that the common ceiling does not have, on behalf of a watch
// that has taken them of its own. That is not for the one that has the most: it is
// refused. Another one may go a little over what is allowed, and as far as its
// equal share if it must. Beyond that little, the one that has the most gives up
// what it has.
func (a *account) borrow(p *pool, n int64) bool {
	most := a.shared.most(p)
	if most == nil || p.of(most.own).Load() <= p.of(a.own).Load() {
		return false
	}
	total, allowed := p.of(a.shared).Add(n), p.allowed(a.shared)
	if total <= allowed+slack(allowed) {
		return true
	}
	if p.of(a.own).Load() > allowed/int64(len(a.shared.all())) {
		p.of(a.shared).Add(-n)
		return false
	}
	most.squeeze()
	return true
}

// slack is by how much the common ceiling may be exceeded.
func slack(allowed int64) int64 { return allowed / 20 }

func (a *account) refusal(p *pool, m *Memory, n int64, what string) *MemoryError {
	return &MemoryError{What: what, Needs: p.of(m).Load() + n, Allowed: p.allowed(m), Ceiling: m.ceiling, Shared: m == a.shared}
}

// squeeze tells the watch to look whether it must give up what it has.
func (a *account) squeeze() {
	select {
	case a.squeezed <- struct{}{}:
	default:
	}
}

// exceeds returns why the watch must give up what it has of a pool: the common
// ceiling is exceeded, and it has the most. If another one has more by now, that is
// told.
func (a *account) exceeds(p *pool, what string) *MemoryError {
	allowed := p.allowed(a.shared)
	if p.of(a.shared).Load() <= allowed+slack(allowed) || a.shared.ceiling == 0 {
		return nil
	}
	if most := a.shared.most(p); most != a {
		if most != nil {
			most.squeeze()
		}
		return nil
	}
	return a.refusal(p, a.shared, 0, what)
}

// give returns n bytes to a pool.
func (a *account) give(p *pool, n int64) {
	p.of(a.own).Add(-n)
	p.of(a.shared).Add(-n)
}

// stage counts n more bytes as staged, fewer if negative.
func (a *account) stage(n int64) error {
	switch {
	case a == nil:
		return nil
	case n <= 0:
		a.give(stagedPool, -n)
		return nil
	}
	return a.reserve(stagedPool, n, "what is being loaded")
}

// grow reserves n more bytes for the log.
func (a *account) grow(n int64) error { return a.reserveLog(n, "what is served") }

// replace reserves the bytes of a log that is made of a snapshot, instead of
// those of the log that there is.
func (a *account) replace(n int64) error {
	if a == nil {
		return nil
	}
	return a.reserveLog(n-a.log, "a complete snapshot")
}

func (a *account) reserveLog(n int64, what string) error {
	switch {
	case a == nil:
		return nil
	case n <= 0:
		a.give(logsPool, -n)
	default:
		if err := a.reserve(logsPool, n, what); err != nil {
			return err
		}
	}
	a.log += n
	return nil
}

// crowded says whether n bytes do not fit beside all that is held.
func (a *account) crowded(n int64) bool {
	if a == nil {
		return false
	}
	if a.own.ceiling > 0 && a.own.together()+n > a.own.ceiling {
		return true
	}
	// Others may have no room, but not for the sake of a watch within its share.
	return a.shared.ceiling > 0 && a.shared.together()+n > a.shared.ceiling &&
		a.own.together()+n > a.shared.ceiling/int64(max(1, len(a.shared.all())))
}

// setLog counts what the log holds, whatever was reserved for it: what is served,
// and what is superseded and not yet compacted.
func (a *account) setLog(n, dead int64) {
	if a == nil {
		return
	}
	a.give(logsPool, a.log-n)
	a.give(supersededPool, a.dead-dead)
	a.log, a.dead = n, dead
}
