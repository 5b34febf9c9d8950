package stream

import "unsafe"

// staging is what a connection holds on its way into the log, in bytes.
type staging struct {
	pending int64 // of the transaction or snapshot being collected
	source  int64 // held by the source itself, see Hold
	counted int64 // both, as counted by the account: in steps
	failed  error // set once it was too much
}

// stagingStep is how much is counted at a time: most transactions are smaller, and
// then cost nothing.
const stagingStep = 64 << 10

// stagedCost is how many bytes a change takes until it is in the log: itself, in a
// slice that is copied when it grows, its key and its value; and at the commit a
// place in two more slices, in the order of revisions and in a map of keys.
func stagedCost(c *Change) int64 {
	const copies = 5*int64(unsafe.Sizeof(Change{})) + 64
	return copies + int64(len(c.Key)+len(c.Value))
}

// Hold implements Holder.
func (s *stagingSink) Hold(bytes int64) {
	s.staging.source += bytes
	_ = s.count() // the connection is ended if it is too much
}

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
	if err := s.account.stage(wants - h.counted); err != nil {
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
	_ = s.account.stage(-s.staging.counted)
	s.staging.counted = 0
}

// Holder is implemented by the Sink that a watch gives to its source. A source that
// holds much data itself, before it hands it over or in addition, must report it: it
// counts towards the memory of the watch.
type Holder interface {
	// Hold reports that the source holds so many more bytes; fewer if negative. If
	// that is too much, the context of Watch ends. It may be called where the
	// methods of Sink may be, and counts until Watch returns.
	Hold(bytes int64)
}

// Hold tells the sink, if it is a Holder, that a source holds so many more bytes;
// fewer if negative.
func Hold(sink Sink, bytes int64) {
	if h, ok := sink.(Holder); ok {
		h.Hold(bytes)
	}
}
