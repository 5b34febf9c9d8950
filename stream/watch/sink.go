package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// message is what a source's reader hands to ingest.
type message struct {
	kind      messageKind
	reset     bool // the changes are a whole snapshot; of freshness: one is under way
	epoch     string
	changes   []log.Change
	revision  uint64
	horizon   uint64    // of a snapshot, the revision of RaiseHorizon; 0: none
	earlier   bool      // of a snapshot, its deletes are of the time before
	after     uint64    // see DeletesCompleteAfter
	deletesTo uint64    // see DeletesCompleteTo
	conflated bool      // see Conflated
	made      time.Time // see SetTimestamp
	state     stream.State
	reason    string
	digest    string // see Compare
}

type messageKind uint8

const (
	receiving     messageKind = iota // the first change of a connection has arrived
	transaction                      // Commit
	freshness                        // Status
	horizonRaised                    // RaiseHorizon
	comparison                       // Compare
)

// stagingSink collects a transaction or a snapshot and hands it to ingest as a
// whole, so that one that is half read is never visible. It belongs to the source's reader;
// only received and held are shared. What it holds is counted, and the connection is ended if
// that is too much.
type stagingSink struct {
	// Static after construction.
	ctx      context.Context
	messages chan message // to ingest
	replies  chan error   // from ingest, one for each message

	account *memory.Account
	cancel  context.CancelCauseFunc // ends the connection
	state   func() log.Snapshot     // that was committed last

	// Owned by the source's reader, and by ingest once the reader has ended.
	pending   message
	marked    int // of the pending changes, how many Rewind keeps
	begun     bool
	deletesTo uint64 // see DeletesCompleteTo
	staging   staging

	held holding // used by the source, from any goroutine

	// Resources of the snapshot under way; written by the reader, read by ingest.
	received atomic.Int64
}

func newStagingSink(ctx context.Context, cancel context.CancelCauseFunc, a *memory.Account, state func() log.Snapshot) *stagingSink {
	return &stagingSink{
		ctx: ctx, messages: make(chan message), replies: make(chan error, 1), account: a, cancel: cancel, state: state,
		deletesTo: stream.AllDeletes,
	}
}

// Reset implements Sink.
func (s *stagingSink) Reset(epoch string) error {
	s.clear()
	s.pending.reset, s.pending.epoch = true, stream.CanonicalEpoch(epoch)
	return s.begin()
}

// Upsert implements Sink.
func (s *stagingSink) Upsert(r stream.Resource) error {
	return s.add(log.Change{Resource: r})
}

// Delete implements Sink.
func (s *stagingSink) Delete(key string, revision uint64) error {
	return s.add(log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
}

func (s *stagingSink) add(c log.Change) error {
	if changes := s.pending.changes; len(changes) == cap(changes) {
		// append alone would copy a large snapshot many times.
		s.pending.changes = slices.Grow(changes, len(changes)+1)
	}
	s.pending.changes = append(s.pending.changes, c)
	s.received.Add(1)
	s.staging.pending += stagedCost(&c)
	if err := s.count(); err != nil {
		return err
	}
	return s.begin()
}

// Held implements stream.Holding.
func (s *stagingSink) Held(yield func(stream.Resource) bool) {
	changed := map[string]*log.Change{}
	if !s.pending.reset {
		for i := range s.pending.changes {
			changed[s.pending.changes[i].Key] = &s.pending.changes[i]
		}
	}
	for r := range s.state().Resources() {
		if changed[r.Key] == nil && !yield(r) {
			return
		}
	}
	for _, c := range changed {
		if !c.Deleted && !yield(c.Resource) {
			return
		}
	}
}

// Compare implements stream.Holding.
func (s *stagingSink) Compare(digest string) (equal bool, err error) {
	err = s.send(message{kind: comparison, digest: digest})
	if errors.Is(err, errDiffers) {
		return false, nil
	}
	return err == nil, err
}

// Commit implements Sink.
func (s *stagingSink) Commit(revision uint64) error {
	m := s.pending
	m.kind, m.revision, m.deletesTo = transaction, revision, s.deletesTo
	err := s.send(m)
	s.clear()
	return err
}

// DeletesCompleteTo implements stream.SinkExtension.
func (s *stagingSink) DeletesCompleteTo(revision uint64) { s.deletesTo = revision }

// DeletesCompleteAfter implements stream.SinkExtension.
func (s *stagingSink) DeletesCompleteAfter(revision uint64) {
	s.pending.earlier, s.pending.after = s.pending.reset, revision
}

// Conflated implements stream.SinkExtension.
func (s *stagingSink) Conflated() { s.pending.conflated = true }

// SetTimestamp implements stream.SinkExtension.
func (s *stagingSink) SetTimestamp(at time.Time) {
	if made := s.pending.made; made.IsZero() || at.Before(made) {
		s.pending.made = at
	}
}

// ageOf returns the age of a change that the upstream made at a time; 0: it is not known. If the
// clocks differ by more than that, it is a nanosecond.
func ageOf(made time.Time) time.Duration {
	if made.IsZero() {
		return 0
	}
	return max(time.Since(made), 1)
}

// Status implements Sink.
func (s *stagingSink) Status(state stream.State, reason string) error {
	return s.send(message{kind: freshness, reset: s.pending.reset, state: state, reason: reason})
}

// RaiseHorizon implements stream.SinkExtension. It takes effect at once, before what is
// staged, except in a snapshot, which is of another order or makes one whole again.
func (s *stagingSink) RaiseHorizon(revision uint64) error {
	if s.pending.reset {
		s.pending.horizon = max(s.pending.horizon, revision)
		return nil
	}
	return s.send(message{kind: horizonRaised, revision: revision})
}

// begin tells ingest, once for each connection, that the upstream has sent
// something.
func (s *stagingSink) begin() error {
	if s.begun {
		return s.ctx.Err()
	}
	s.begun = true
	return s.send(message{kind: receiving})
}

// clear discards what was collected. Ingest has copied the changes to the log, so
// the slice is reused, unless it is large.
func (s *stagingSink) clear() {
	const keep = 1024
	changes := s.pending.changes
	clear(changes)
	if cap(changes) > keep {
		changes = nil
	}
	s.pending, s.marked = message{changes: changes[:0]}, 0
	s.received.Store(0)
	s.staging.pending = 0
	_ = s.count() // it holds less, which is always allowed
}

// send hands a message to ingest and returns its reply. Once ingest has taken the
// message, only the reply ends the wait: until then ingest reads the changes. It
// always replies, without waiting for the reader.
func (s *stagingSink) send(m message) error {
	if s.staging.failed != nil {
		return s.staging.failed // what was collected is gone: a commit would be a gap
	}
	s.begun = s.begun || m.kind != freshness
	select {
	case s.messages <- m:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	err := <-s.replies
	if errors.Is(err, memory.ErrExceeded) {
		s.staging.failed = err
	}
	return err
}

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
