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

	// Owned by the log's writer.
	log int64 // what of the logs is this one's, or reserved for it
}

func newAccount(ceiling int64, shared *Memory) *account {
	if shared == nil {
		shared = NewMemory(0)
	}
	return &account{own: NewMemory(ceiling), shared: shared}
}

// pool is one of the counters of a Memory.
type pool func(*Memory) *atomic.Int64

func logsOf(m *Memory) *atomic.Int64   { return &m.logs }
func stagedOf(m *Memory) *atomic.Int64 { return &m.staged }

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
	a.setLog(a.log + n)
	if err := a.over(logsOf, (*Memory).forLogs, "what is served"); err != nil {
		a.setLog(a.log - n)
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
	a.setLog(n)
	if err := a.over(logsOf, (*Memory).forLogs, "a complete snapshot"); err != nil {
		a.setLog(old)
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

// setLog counts what the log holds, whatever was reserved for it.
func (a *account) setLog(n int64) {
	if a == nil {
		return
	}
	a.add(logsOf, n-a.log)
	a.log = n
}
