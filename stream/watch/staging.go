package watch

import (
	"sync"
	"unsafe"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
)

// staging is what a connection has collected for the log, in bytes.
type staging struct {
	pending int64 // of the transaction or snapshot being collected
	counted int64 // the same, as counted by the account: in steps
	failed  error // set once it was too much
}

// holding is what a source itself holds, see stream.SinkExtension. Its methods may be called
// from any goroutine.
type holding struct {
	mu      sync.Mutex // guards what follows
	bytes   int64
	counted int64 // the same, as counted by the account: in steps
}

// add counts more bytes; fewer if negative.
func (h *holding) add(bytes int64, a *memory.Account) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += bytes
	wants, changes := steps(h.bytes, h.counted)
	if !changes {
		return nil
	}
	if err := a.Stage(wants - h.counted); err != nil {
		return err
	}
	h.counted = wants
	return nil
}

// release returns what was counted.
func (h *holding) release(a *memory.Account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = a.Stage(-h.counted)
	h.bytes, h.counted = 0, 0
}

// stagingStep is the granularity of counting: most transactions are smaller, and cost
// nothing.
const stagingStep = 64 << 10

// steps returns how many bytes are to be counted for what is held, and whether that
// differs from what is counted. A step is kept: most connections need it again, but no
// more.
func steps(holds, counted int64) (wants int64, changes bool) {
	if holds <= counted && counted-holds < 2*stagingStep {
		return counted, false
	}
	return (holds + stagingStep - 1) / stagingStep * stagingStep, true
}

// stagedCost is how many bytes a change takes until it is in the log: itself, in a
// slice that is copied when it grows, its key and its value; and at the commit a
// place in two more slices, in the order of revisions and in a map of keys.
func stagedCost(c *log.Change) int64 {
	const copies = 5*int64(unsafe.Sizeof(log.Change{})) + 64
	return copies + int64(len(c.Key)+len(c.Value))
}

// Charge implements stream.SinkExtension.
func (s *stagingSink) Charge(bytes int64) {
	if err := s.held.add(bytes, s.account); err != nil {
		s.cancel(err)
	}
}

// MaxBytes implements stream.SinkExtension.
func (s *stagingSink) MaxBytes() int64 { return s.account.MostStaged() }

// count tells the account what is held. An error is final for the connection: what
// was collected is released at once, so that a source that continues for a while
// does no harm.
func (s *stagingSink) count() error {
	h := &s.staging
	if h.failed != nil {
		s.pending = message{}
		return h.failed
	}
	wants, changes := steps(h.pending, h.counted)
	if !changes {
		return nil
	}
	if err := s.account.Stage(wants - h.counted); err != nil {
		h.failed = err
		s.pending = message{}
		s.cancel(err)
		return err
	}
	h.counted = wants
	return nil
}

// release returns what was counted, after the source has ended.
func (s *stagingSink) release() {
	_ = s.account.Stage(-s.staging.counted)
	s.staging.counted = 0
	s.held.release(s.account)
}

// Mark implements stream.SinkExtension.
func (s *stagingSink) Mark() { s.marked = len(s.pending.changes) }

// Rewind implements stream.SinkExtension.
func (s *stagingSink) Rewind() error {
	changes := s.pending.changes
	if s.marked >= len(changes) {
		return nil // what was collected may also have been released, if it was too much
	}
	dropped := changes[s.marked:]
	for i := range dropped {
		s.staging.pending -= stagedCost(&dropped[i])
	}
	s.received.Add(-int64(len(dropped)))
	clear(dropped)
	s.pending.changes = changes[:s.marked]
	_ = s.count() // it holds less, which is always allowed
	return nil
}
