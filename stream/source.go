package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Source follows one collection of one upstream. It turns the upstream's protocol
// into the calls of a Sink; it neither retries nor caches, since ingest does both
// for all sources.
//
// Recipe for an implementation of Watch:
//
//  1. Connect. An error that is known at once (refused, not authorised,
//     unknown collection) is returned at once.
//  2. If the upstream can continue from resume (and resume.Epoch is still its
//     revision order), send what is newer with Upsert and Delete, each
//     upstream transaction ended by Commit; no Reset. Once everything is
//     committed that the upstream had when the connection was made, say
//     Status(InSync, ""). If that is nothing, an empty Commit comes before.
//  3. Else call Reset with the name of the revision order, then Upsert for each
//     resource of a complete snapshot, in any order, then Commit with the
//     revision at which the snapshot was taken. Nothing is served of a snapshot
//     that was not committed. Its Commit says that the watch is in sync.
//  4. Then every change, in the upstream's order, each transaction ended by
//     Commit. A Commit without changes is progress (a bookmark).
//  5. Return when ctx ends, when the upstream ends, or when a Sink method
//     returns an error; with that error. A nil error means that the upstream
//     ended the stream in an orderly way. Watch is then called again, after a
//     back-off, with the newest committed revision.
//
// Watch must not return before every goroutine that it started has ended.
// Watch may be called again after it returned, never twice at once.
type Source interface {
	Watch(ctx context.Context, resume Resume, sink Sink) error
}

// SourceFunc is a function as a Source.
type SourceFunc func(ctx context.Context, resume Resume, sink Sink) error

// Watch calls f.
func (f SourceFunc) Watch(ctx context.Context, resume Resume, sink Sink) error {
	return f(ctx, resume, sink)
}

// DeletesUnnumbered is also implemented by a Source whose upstream gives deletes no
// revision of their own; it then returns true. The revision of a position then
// leaves open which of the deletes right after it a reader has seen. So a position
// at exactly the revision of a snapshot, which does not show these deletes, is not
// resumed. Otherwise a reader could keep what was deleted just before the snapshot.
// The name of the epoch then begins with UnnumberedEpoch.
type DeletesUnnumbered interface {
	DeletesUnnumbered() bool
}

// Continuing is also implemented by a Source that compares what its upstream has with what it has sent. If it
// counts revisions itself, in an order that no other process has, it can go on with the order of a process
// before.
type Continuing interface {
	// Continue is called before the first Watch, with the place at which that process ended, and the
	// resources that the Sink has. The next Watch is given that place, and goes on from there. A Source that
	// counts revisions does so without a Reset. The values must be copied.
	Continue(from Resume, resources iter.Seq[Resource])
}

// Recognising is also implemented by a Source that makes sure, before it resumes, that its upstream still has what
// the Source has read of it: one that was restored from a backup may have the same name.
type Recognising interface {
	// Recognise is called before the first Watch if another process has followed the upstream, with the place that
	// it had reached, the resources that the Sink has, and the deletes that it remembers. A delete without a revision
	// of its own has that of its commit. The next Watch is given that place. The values must be copied.
	Recognise(at Resume, resources, deletes iter.Seq[Resource])
}

// Retaining is also implemented by a Source whose upstream keeps what the Source has not confirmed.
type Retaining interface {
	// RetainedBytes returns how many bytes the upstream keeps for the Source, as it was when it was last
	// looked at, and whether that is known. Sources that share a connection return the same. It may be
	// called from any goroutine.
	RetainedBytes() (bytes int64, ok bool)
}

// Estimating is also implemented by a Source that knows about how large a snapshot is before it is complete.
type Estimating interface {
	// EstimatedResources returns how many resources the snapshot under way has, about; 0: that is not
	// known, or there is none. It may be called from any goroutine.
	EstimatedResources() int64
}

// Resume is the place from which a Source may continue: everything up to Revision of
// the revision order Epoch is known, except for deletes without a revision that
// happened at Revision-DeletesBehind or later; see SinkExtension. The zero value means
// that nothing is known.
type Resume struct {
	Epoch         string
	Revision      uint64
	DeletesBehind uint64
}

// Sink receives what a Source reads. Its methods are called from one goroutine at a
// time, until Watch returns. An error from any of them is final for this Watch call:
// Watch must return it.
type Sink interface {
	// Reset begins a snapshot in the revision order epoch: a short name that is the
	// same for the same upstream, collection and filter on every replica, and a
	// different one after a restore or a replacement. It has letters, digits, '.',
	// '_' and '~'; a name with other bytes or of more than 24 is hashed. What was
	// sent since the last Commit is discarded.
	Reset(epoch string) error
	// Upsert adds a resource, as created or changed. r.Value must not be modified
	// afterwards.
	Upsert(r Resource) error
	// Delete removes a resource. A revision that is 0 or not newer than the last
	// Commit means that the upstream gives deletes no revision of their own (see
	// DeletesUnnumbered). Subscribers are shown it as it is, unless it is 0. The
	// delete is placed at the end of its transaction. In a snapshot it takes the
	// resource back; see also DeletesCompleteAfter.
	Delete(key string, revision uint64) error
	// Commit ends a transaction, or a snapshot: everything up to revision has
	// been sent. It returns once the changes are visible to subscribers.
	Commit(revision uint64) error
	// Status reports how fresh the committed state is: InSync once it has caught up
	// (see Source), and what the upstream reports of itself: Resyncing or Stale,
	// until InSync is reported, with a reason that is shown to operators and not to
	// subscribers. It does not end a transaction. Before the first Commit of a Watch
	// call, and inside a snapshot, InSync only takes back what was reported of the
	// upstream.
	Status(state State, reason string) error
	// SinkExtension has what only some upstreams need.
	SinkExtension
}

// Holding is also implemented by a Sink that keeps what it was sent, so that a Source need not read from its upstream
// what is there already.
type Holding interface {
	// Held calls yield with the resources of the last Commit, of this Watch call or an earlier one, as changed by what
	// was sent since, in no order; within a snapshot, with those of the last Commit. The values must not be modified. Like
	// the methods of a Sink it is for the goroutine that calls them, and none of them may be called meanwhile.
	Held(yield func(Resource) bool)
	// Compare compares a digest that the upstream has with that of the resources of the last Commit, and reports whether
	// they are equal; docs/protocol.md says what a digest is. Everything that the upstream had then must have been
	// committed, and nothing else. If they differ, the next snapshot is taken over although it contradicts what was
	// committed: it then begins another epoch. It does not read the resources.
	Compare(digest string) (equal bool, err error)
}

// Reasons for which a Source gave up, for errors.Is. Any other error counts as
// "error". They are labels of watchtide_upstream_reconnects_total.
var (
	// ErrStalled: the upstream's connection is up, but nothing has come for too
	// long.
	ErrStalled = errors.New("upstream stalled")
	// ErrInvalid: the upstream sent something that the protocol does not allow.
	ErrInvalid = errors.New("upstream sent something invalid")
	// ErrOrder: the upstream broke its promise of rising revisions. The next
	// Watch call begins from nothing.
	ErrOrder = errors.New("upstream went back in revision")
	// ErrBehind: the upstream's snapshot is older than what was already served.
	ErrBehind = errors.New("upstream is behind")
	// ErrUnresumable: the upstream cannot resume; the next Watch call begins
	// from nothing.
	ErrUnresumable = errors.New("upstream cannot resume")
)

// InvalidError says what was wrong, and what was expected.
type InvalidError struct {
	What string // what was read, for instance "position"
	Got  string // its value; shortened in the message
	Want string // what was expected
}

// Error returns, for instance, `position "x": want watch@epoch-revision`.
func (e *InvalidError) Error() string {
	got := e.Got
	if len(got) > 80 {
		got = got[:80] + "…"
	}
	return fmt.Sprintf("%s %q: want %s", e.What, got, e.Want)
}
