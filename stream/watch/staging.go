package watch

import (
	"unsafe"

	"github.com/watchtide/watchtide/stream/log"
)

// staging is what a connection holds on its way into the log, in bytes.
type staging struct {
	pending int64 // of the transaction or snapshot being collected
	source  int64 // held by the source itself, see Hold
	counted int64 // both, as counted by the account: in steps
	failed  error // set once it was too much
}

// stagingStep is the granularity of counting: most transactions are smaller, and cost
// nothing.
const stagingStep = 64 << 10

// stagedCost is how many bytes a change takes until it is in the log: itself, in a
// slice that is copied when it grows, its key and its value; and at the commit a
// place in two more slices, in the order of revisions and in a map of keys.
func stagedCost(c *log.Change) int64 {
	const copies = 5*int64(unsafe.Sizeof(log.Change{})) + 64
	return copies + int64(len(c.Key)+len(c.Value))
}

// Hold implements Holder.
func (s *stagingSink) Hold(bytes int64) {
	s.staging.source += bytes
	_ = s.count() // the connection is ended if it is too much
}

// MostHeld implements Bounder.
func (s *stagingSink) MostHeld() int64 { return s.account.MostStaged() }

// count tells the account what is held. An error is final for the connection: what
// was collected is released at once, so that a source that continues for a while
// does no harm.
func (s *stagingSink) count() error {
	h := &s.staging
	if h.failed != nil {
		s.pending = message{}
		return h.failed
	}
	holds := h.pending + h.source
	if holds <= h.counted && h.counted-holds < 2*stagingStep {
		return nil // a step is kept: most connections need it again, but no more
	}
	wants := (holds + stagingStep - 1) / stagingStep * stagingStep
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
}

// Mark implements Rewinder.
func (s *stagingSink) Mark() { s.marked = len(s.pending.changes) }

// Rewind implements Rewinder.
func (s *stagingSink) Rewind() {
	changes := s.pending.changes
	if s.marked >= len(changes) {
		return // what was collected may also have been released, if it was too much
	}
	dropped := changes[s.marked:]
	for i := range dropped {
		s.staging.pending -= stagedCost(&dropped[i])
	}
	s.received.Add(-int64(len(dropped)))
	clear(dropped)
	s.pending.changes = changes[:s.marked]
	_ = s.count() // it holds less, which is always allowed
}
