package streamtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// SinkRecorder is a [stream.Sink] that records the calls of a source: the committed
// state, how many snapshots and commits there were, and each breach of the contract
// of Sink. For tests of a source without ingest and log.
//
// The source calls the Sink methods; any goroutine may call the others.
type SinkRecorder struct {
	stream.PlainSink
	calls atomic.Int32 // Sink methods under way; more than one is a breach

	mu      sync.Mutex
	changed chan struct{} // closed at each call, and replaced by a new one

	epoch     string
	revision  uint64 // of the last Commit
	committed State
	staged    State
	resets    int
	commits   []CommitRecord
	status    []stream.Status
	horizon   uint64
	made      time.Time // see SetTimestamp
	caughtUp  *CommitRecord
	deleted   map[string]uint64 // revision by key, in the snapshot
	earlier   *EarlierRecord

	inSnapshot bool // between Reset and its Commit
	begun      bool // Reset was called, or the source was given a position to resume from
	ended      bool
	fail       error
	breaches   []error
	resources  []witness
}

// CommitRecord is the state that one Commit made visible.
type CommitRecord struct {
	Revision uint64
	State    State     // after it
	Snapshot bool      // it ended a snapshot
	Made     time.Time // when the upstream made the first of its changes; zero: it was not told
}

// EarlierRecord is what the source knew of the time before its last snapshot.
type EarlierRecord struct {
	Deletes map[string]uint64 // the last revision of each key
	After   uint64            // see stream.SinkExtension, DeletesCompleteAfter
}

// witness records the bytes passed by a source.
type witness struct {
	resource stream.Resource
	copy     string
}

// NewSinkRecorder returns a recorder for one Watch call. resume is the argument
// of Watch, and state the state at that position.
func NewSinkRecorder(resume stream.Resume, state State) *SinkRecorder {
	return &SinkRecorder{
		changed:   make(chan struct{}),
		epoch:     resume.Epoch,
		revision:  resume.Revision,
		begun:     resume != stream.Resume{},
		committed: state.Clone(),
		staged:    state.Clone(),
	}
}

// Reset implements [stream.Sink].
func (r *SinkRecorder) Reset(epoch string) error {
	return r.call(func() {
		if epoch == "" {
			r.breach("Reset without the name of an epoch")
		}
		r.epoch, r.begun, r.inSnapshot = epoch, true, true
		r.staged, r.made = State{}, time.Time{}
		r.deleted, r.earlier = map[string]uint64{}, nil
		r.resets++
	})
}

// Upsert implements [stream.Sink].
func (r *SinkRecorder) Upsert(res stream.Resource) error {
	return r.call(func() {
		switch {
		case !r.begun:
			r.breach("Upsert of %q before Reset, and there was nothing to resume", res.Key)
		case res.Revision == 0:
			r.breach("Upsert of %q at revision 0", res.Key)
		case !r.inSnapshot && res.Revision <= r.revision:
			r.breach("Upsert of %q at revision %d after Commit of %d", res.Key, res.Revision, r.revision)
		}
		if _, ok := stream.CompactJSON(res.Value); !ok {
			r.breach("value of %q is not JSON text: %.40q", res.Key, res.Value)
		}
		r.staged[res.Key] = versionOf(res)
		r.resources = append(r.resources, witness{resource: res, copy: string(res.Value)})
	})
}

// Delete implements [stream.Sink].
func (r *SinkRecorder) Delete(key string, revision uint64) error {
	return r.call(func() {
		if !r.begun {
			r.breach("Delete of %q before Reset, and there was nothing to resume", key)
		}
		delete(r.staged, key)
		if r.inSnapshot {
			r.deleted[key] = max(r.deleted[key], revision)
		}
	})
}

// DeletesCompleteAfter implements [stream.SinkExtension].
func (r *SinkRecorder) DeletesCompleteAfter(revision uint64) {
	_ = r.call(func() {
		if !r.inSnapshot {
			r.breach("DeletesCompleteAfter(%d) outside of a snapshot", revision)
		}
		r.earlier = &EarlierRecord{Deletes: r.deleted, After: revision}
	})
}

// Earlier returns what the source knew of the time before its last snapshot; nil: nothing.
func (r *SinkRecorder) Earlier() *EarlierRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.earlier
}

// Commit implements [stream.Sink].
func (r *SinkRecorder) Commit(revision uint64) error {
	return r.call(func() {
		if !r.begun {
			r.breach("Commit of %d before Reset, and there was nothing to resume", revision)
		}
		if !r.inSnapshot && revision < r.revision {
			r.breach("Commit of %d after Commit of %d", revision, r.revision)
		}
		for key, v := range r.staged {
			if v.Revision > revision {
				r.breach("Commit of %d, and %q is of revision %d", revision, key, v.Revision)
			}
		}
		r.committed = r.staged.Clone()
		r.revision = revision
		r.commits = append(r.commits, CommitRecord{Revision: revision, State: r.committed, Snapshot: r.inSnapshot, Made: r.made})
		r.made = time.Time{}
		if r.inSnapshot && r.caughtUp == nil {
			r.caughtUp = &r.commits[len(r.commits)-1]
		}
		r.inSnapshot = false
	})
}

// SetTimestamp implements [stream.SinkExtension].
func (r *SinkRecorder) SetTimestamp(at time.Time) {
	_ = r.call(func() {
		if r.inSnapshot {
			r.breach("SetTimestamp in a snapshot")
		}
		if r.made.IsZero() || at.Before(r.made) {
			r.made = at
		}
	})
}

// Status implements [stream.Sink].
func (r *SinkRecorder) Status(state stream.State, reason string) error {
	return r.call(func() {
		r.status = append(r.status, stream.Status{State: state, Reason: reason})
		if n := len(r.commits); state == stream.InSync && n > 0 && !r.inSnapshot && r.caughtUp == nil {
			r.caughtUp = &r.commits[n-1]
		}
	})
}

// RaiseHorizon implements [stream.SinkExtension].
func (r *SinkRecorder) RaiseHorizon(revision uint64) error {
	return r.call(func() {
		if !r.begun {
			r.breach("RaiseHorizon of %d before Reset, and there was nothing to resume", revision)
		}
		r.horizon = max(r.horizon, revision)
	})
}

// Horizon returns the newest horizon that the source reported; 0: none.
func (r *SinkRecorder) Horizon() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.horizon
}

// Fail makes every Sink method from now on return err.
func (r *SinkRecorder) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// End records that Watch has returned: a call from now on is a breach.
func (r *SinkRecorder) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.wake()
}

// Changed returns a channel that is closed at the next call or at End.
func (r *SinkRecorder) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// State returns the committed state.
func (r *SinkRecorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.committed.Clone()
}

// Resume returns the position of the last Commit.
func (r *SinkRecorder) Resume() stream.Resume {
	r.mu.Lock()
	defer r.mu.Unlock()
	return stream.Resume{Epoch: r.epoch, Revision: r.revision}
}

// Resets returns how often Reset was called.
func (r *SinkRecorder) Resets() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resets
}

// Commits returns the record of every Commit so far.
func (r *SinkRecorder) Commits() []CommitRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]CommitRecord(nil), r.commits...)
}

// CaughtUp returns the committed state when the source first reported that it had
// caught up: with a snapshot, or with InSync if it continues without one. It returns
// false if it did not.
func (r *SinkRecorder) CaughtUp() (CommitRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.caughtUp == nil {
		return CommitRecord{}, false
	}
	return *r.caughtUp, true
}

// Statuses returns the statuses of the upstream that the source reported.
func (r *SinkRecorder) Statuses() []stream.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]stream.Status(nil), r.status...)
}

// Err returns every breach of the contract so far, including values modified after
// they were handed over; nil if there was none.
func (r *SinkRecorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := append([]error(nil), r.breaches...)
	for _, w := range r.resources {
		if string(w.resource.Value) != w.copy {
			errs = append(errs, fmt.Errorf("value of %q was changed after Upsert: %.40q became %.40q",
				w.resource.Key, w.copy, w.resource.Value))
		}
	}
	return errors.Join(errs...)
}

// call runs one Sink method.
func (r *SinkRecorder) call(do func()) error {
	defer r.calls.Add(-1)
	alone := r.calls.Add(1) == 1
	r.mu.Lock()
	defer r.mu.Unlock()
	if !alone {
		r.breach("two Sink methods called at once")
	}
	if r.ended {
		r.breach("call of a Sink method after Watch returned")
	}
	if r.fail != nil {
		return r.fail
	}
	do()
	r.wake()
	return nil
}

func (r *SinkRecorder) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *SinkRecorder) breach(format string, args ...any) {
	r.breaches = append(r.breaches, fmt.Errorf(format, args...))
}
