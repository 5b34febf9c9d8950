package memory

// Account is what one watch holds, counted against its own ceiling and the ceiling
// it shares. A nil account counts nothing and allows everything.
//
// Its methods for logs belong to the log's writer. Those for staged data may be called
// from any goroutine.
type Account struct {
	own    Ceiling  // of the watch alone; its methods may be called from any goroutine
	shared *Ceiling // static after construction
	fixed  bool     // static; it never gives up what it holds, see NewFixedAccount
	place  int      // among the accounts that share it, counted from 1; 0: it is not there

	pins     Pins          // of the log; static once the log exists
	squeezed chan struct{} // tells the watch to give up memory, which others need; nil: nobody listens

	// Owned by the log's writer.
	log  int64 // bytes that the log holds or has reserved
	dead int64 // bytes of superseded entries, not part of log
	kept int64 // bytes beside the log
}

// Pins are the older versions of a log that its readers hold. Its methods may be called
// from any goroutine.
type Pins interface {
	// Held is how many bytes only these versions hold.
	Held() int64
	// TakeOldest takes the oldest version that holds memory away from its readers. It
	// returns false if there is none.
	TakeOldest() bool
	// TakeSurplus takes versions away, oldest first, until they hold no more than most bytes, but for one version, which
	// is left to its readers. So the readers of each come to its end, one version after the other.
	TakeSurplus(most int64)
	// TakeAll takes all versions away from their readers.
	TakeAll()
}

// NewAccount returns an account of at most ceiling bytes (0: any), which also counts in
// shared, which may be nil.
func NewAccount(ceiling int64, shared *Ceiling) *Account {
	if shared == nil {
		shared = NewCeiling(0)
	}
	a := &Account{shared: shared, squeezed: make(chan struct{}, 1)}
	a.own.SetBytes(ceiling)
	return a
}

// NewUnsqueezedAccount returns an account without a ceiling of its own, whose memory counts in
// shared. The owner of shared limits it: the account never makes others give up memory.
func NewUnsqueezedAccount(shared *Ceiling) *Account {
	return &Account{shared: shared}
}

// NewFixedAccount returns an account without a ceiling of its own for a log that watches of
// the same ceiling copy, and that has nowhere to load its data from again. It is no watch: it
// has half an equal share, and beyond that it leaves room to the copies. It is refused more, but
// never gives up what it has.
func NewFixedAccount(shared *Ceiling) *Account {
	return &Account{shared: shared, fixed: true}
}

// Own returns the ceiling of the watch alone.
func (a *Account) Own() *Ceiling { return &a.own }

// Shared returns the ceiling that the watch shares with others.
func (a *Account) Shared() *Ceiling { return a.shared }

// Join makes the pins of a log known to the shared ceiling.
func (a *Account) Join(p Pins) {
	if a != nil {
		a.pins = p
		a.shared.join(a)
	}
}

// Rejoin ends what Leave began: the log is used again.
func (a *Account) Rejoin() {
	if a != nil {
		a.shared.join(a)
	}
}

// Leave is called at the end of a watch, which then holds nothing.
func (a *Account) Leave() {
	if a == nil {
		return
	}
	a.TakeVersions()
	a.SetLog(0, 0)
	a.Keep(-a.kept)
	a.shared.leave(a)
}

// TakeVersions takes all older versions of the log away from their readers.
func (a *Account) TakeVersions() { a.pins.TakeAll() }

// reserve takes n more bytes of a pool, against both ceilings.
func (a *Account) reserve(p *pool, n int64, what string) error {
	if !p.take(&a.own, n) {
		return a.refusal(p, &a.own, n, what)
	}
	if !p.takeUpTo(a.shared, n, a.mostShared(p)) && !a.borrow(p, n) {
		err := a.refusal(p, a.shared, n, what)
		p.of(&a.own).Add(-n)
		return err
	}
	return nil
}

// mostShared is how much of the shared ceiling may be taken by an account that is refused the
// rest.
func (a *Account) mostShared(p *pool) int64 {
	allowed := p.allowed(a.shared)
	if a.fixed {
		allowed -= slack(allowed)
	}
	return allowed
}

// borrow takes n bytes beyond the shared ceiling for a watch that has already taken
// them from its own. The watch that holds the most is refused, unless it is within its
// equal share: then others are just giving memory up. Any other may exceed the limit
// a little, and if need be up to its equal share. Past that little, the watch that
// holds the most gives up memory.
func (a *Account) borrow(p *pool, n int64) bool {
	most, allowed := a.shared.most(p), p.allowed(a.shared)
	held := p.of(&a.own).Load()
	within := held <= a.equalShare(allowed)
	if a.fixed && !within {
		return false
	}
	largest := most == nil || p.of(&most.own).Load() <= held
	if largest && !within {
		return p.take(a.shared, n) // the one that held more may have given it up since
	}
	total := p.of(a.shared).Add(n)
	switch {
	case total <= allowed+slack(allowed):
		return true
	case !within:
		p.of(a.shared).Add(-n)
		return false
	case !largest:
		most.squeeze()
	}
	return true
}

// equalShare is how much of what is allowed the account is never refused.
func (a *Account) equalShare(allowed int64) int64 {
	share := allowed / max(1, a.shared.number())
	if a.fixed {
		share /= 2
	}
	return share
}

// slack is how far the shared ceiling may be exceeded.
func slack(allowed int64) int64 { return allowed / 20 }

func (a *Account) refusal(p *pool, m *Ceiling, n int64, what string) *Error {
	return &Error{What: what, Needs: p.of(m).Load() + n, Allowed: p.allowed(m), Ceiling: m.Bytes(), Shared: m == a.shared}
}

// squeeze tells the watch to check whether it must give up memory.
func (a *Account) squeeze() {
	select {
	case a.squeezed <- struct{}{}:
	default:
	}
}

// Squeezing is signalled when the watch should check LogExceeds and StagedExceeds.
func (a *Account) Squeezing() <-chan struct{} { return a.squeezed }

// StagedExceeds returns why the watch must give up what it is loading; nil: it need
// not.
func (a *Account) StagedExceeds() *Error { return a.exceeds(stagedPool, "what is being loaded") }

// LogExceeds returns why the watch must give up its log; nil: it need not.
func (a *Account) LogExceeds() *Error { return a.exceeds(logsPool, "what is served") }

// LogTooLarge returns why the log, which has grown and was counted regardless of what was reserved
// for it, does not fit; nil: it does. It is refused what any log is refused, see borrow, and
// what watches for which spare is true would have to give up.
func (a *Account) LogTooLarge(spare func(*Account) bool) *Error {
	const what = "what is served"
	held := logsPool.of(&a.own).Load()
	if allowed := logsPool.allowed(&a.own); allowed > 0 && held > allowed {
		return a.refusal(logsPool, &a.own, 0, what)
	}
	allowed := logsPool.allowed(a.shared)
	if a.shared.Bytes() == 0 || logsPool.of(a.shared).Load() <= allowed+slack(allowed) {
		return nil
	}
	most := a.shared.most(logsPool)
	if most == nil || most == a || held > a.equalShare(allowed) || spare(most) {
		return a.refusal(logsPool, a.shared, 0, what)
	}
	most.squeeze()
	return nil
}

// exceeds returns why the watch must give up what it holds of a pool: the shared
// ceiling is exceeded, and it holds the most. If another watch holds more by now,
// exceeds squeezes that one.
func (a *Account) exceeds(p *pool, what string) *Error {
	allowed := p.allowed(a.shared)
	if p.of(a.shared).Load() <= allowed+slack(allowed) || a.shared.Bytes() == 0 {
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
func (a *Account) give(p *pool, n int64) {
	p.of(&a.own).Add(-n)
	p.of(a.shared).Add(-n)
}

// Stage counts n more bytes as staged, fewer if negative.
func (a *Account) Stage(n int64) error {
	switch {
	case a == nil:
		return nil
	case n <= 0:
		a.give(stagedPool, -n)
		return nil
	}
	return a.reserve(stagedPool, n, "what is being loaded")
}

// MostStaged is the most bytes that may be staged; 0: any number.
func (a *Account) MostStaged() int64 {
	if a == nil {
		return 0
	}
	own, shared := stagedPool.allowed(&a.own), stagedPool.allowed(a.shared)
	if own == 0 || shared == 0 {
		return max(own, shared)
	}
	return min(own, shared)
}

// Grow reserves n more bytes for the log.
func (a *Account) Grow(n int64) error { return a.reserveLog(n, "what is served") }

// Replace reserves the bytes of a log built from a snapshot, in place of those of
// the current log.
func (a *Account) Replace(n int64) error {
	if a == nil {
		return nil
	}
	return a.reserveLog(n-a.log, "a complete snapshot")
}

func (a *Account) reserveLog(n int64, what string) error {
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

// Keep counts n more bytes that are kept beside the log, fewer if negative. It returns false if
// they do not fit, and counts nothing then: nobody gives up memory for them. It belongs to the
// log's writer.
func (a *Account) Keep(n int64) bool {
	switch {
	case a == nil:
		return true
	case n <= 0:
		a.give(keptPool, -n)
	case !a.Reserve(n):
		return false
	}
	a.kept += n
	return true
}

// Reserve is Keep for others than the log's writer: it may be called from any goroutine. The
// bytes must be returned, also after Leave.
func (a *Account) Reserve(n int64) bool {
	switch {
	case a == nil:
		return true
	case !keptPool.take(&a.own, n):
		return false
	case !keptPool.take(a.shared, n):
		keptPool.of(&a.own).Add(-n)
		return false
	}
	return true
}

// Return frees n bytes that Reserve counted. It may be called from any goroutine.
func (a *Account) Return(n int64) {
	if a != nil {
		a.give(keptPool, n)
	}
}

// Crowded reports whether n bytes do not fit beside everything that is held.
func (a *Account) Crowded(n int64) bool {
	if a == nil {
		return false
	}
	if a.own.Bytes() > 0 && a.own.together()+n > a.own.Bytes() {
		return true
	}
	// Others may be short of room, but not because of a watch within its share.
	return a.shared.Bytes() > 0 && a.shared.together()+n > a.shared.Bytes() &&
		a.own.together()+n > a.shared.Bytes()/max(1, a.shared.number())
}

// SetLog counts what the log holds, regardless of what was reserved for it: what is
// served, and what is superseded but not yet compacted.
func (a *Account) SetLog(n, dead int64) {
	if a == nil {
		return
	}
	a.give(logsPool, a.log-n)
	a.give(supersededPool, a.dead-dead)
	a.log, a.dead = n, dead
}
