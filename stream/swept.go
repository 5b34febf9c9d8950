package stream

import (
	"math"
	"math/rand/v2"
)

// Where an upstream gives deletes no revision, their place among its revisions is
// a matter of when somebody noticed them. Each replica places such a delete at the
// end of the commit that brings it, so two replicas may place it differently, and
// one may have noticed it that another one has not. A position therefore says
// besides how far its replica knew of such deletes when it gave the position out:
// it is swept to revision W if every delete is delivered that happened while the
// newest revision of the upstream was below W. Any other replica begins there when
// it repeats deletes, and must remember all of them from there on.
//
// That is sound if a delete that happens at a newest revision h is never placed
// below h. A reader that lacks it has W at h or below it, so that the delete lies
// behind W, or a forgotten one or a snapshot without it does.

// allSwept is what a source says that never says anything: its upstream tells of
// deletes in the order of its revisions, so that a commit is complete.
const allSwept = math.MaxUint64

// Sweeper is implemented by the Sink that a watch gives to its source.
type Sweeper interface {
	// Swept says that, together with the next Commit, all deletes are passed on
	// that happened while the newest revision of the upstream was below this one.
	Swept(revision uint64)
}

// Swept tells the sink how far deletes are complete that have no revision, if it
// wants to know: with the next Commit, all those are passed on that happened while
// the newest revision of the upstream was below revision. It counts until the next
// call. A source of an upstream that tells of such deletes in the order of its
// revisions needs no call: each Commit is complete then.
//
// A source that looks for them now and then, by a list, calls it before its first
// Commit, and with a revision that was the newest before the list was begun. Such a
// delete is passed on with a Commit of a revision that was the newest after the list
// was complete, or of a later one.
func Swept(sink Sink, revision uint64) {
	if s, ok := sink.(Sweeper); ok {
		s.Swept(revision)
	}
}

// sweptTo follows a commit, or a snapshot.
func (l *Log) sweptTo(revision uint64) {
	v := &l.next
	if !l.unnumbered {
		revision = allSwept
	}
	v.swept = max(v.swept, min(revision, v.revision))
}

// run is the time since a replica began its log, for an upstream whose deletes have no
// revision. What is newer than a position that it gave out is what its log holds
// behind it, whatever the replica missed meanwhile: the reader has seen nothing else.
// So where the upstream is idle, the name of the run spares a reader that comes back
// the snapshot: deletes that two replicas notice at the same revision are told apart
// by nothing else. Only a reader that began with a snapshot of this log is given the
// name: another one may hold more than its position says. And a reader that resumes at
// another replica is given its position without the name before anything else.
type run struct {
	name    uint32 // drawn at random; 0: deletes have a revision
	horizon uint64 // no position below it is resumed on the name alone
}

func newRun() run { return run{name: 1 + rand.Uint32N(math.MaxUint32)} }

// bind returns the position of a reader that has seen nothing but the log, with the
// name of the run.
func (v *version) bind(p Position) Position {
	if !p.Partial() {
		p.Run = v.run.name
	}
	return p
}

// issued says whether a position is one of the run, and everything newer is known.
func (v *version) issued(p Position) bool {
	return p.Run != 0 && p.Run == v.run.name && p.AsOf >= v.run.horizon
}

// position is the place of a reader, in an epoch as it stands in positions.
func (l *Log) position(epoch string, upserts, asOf, swept uint64) Position {
	p := Position{Watch: l.watch, Epoch: epoch, AsOf: swept}.At(asOf)
	p.Upserts = upserts
	return p
}

// knows says whether all that is newer than a position is known. In the middle of a
// snapshot or a catch-up nothing may be delivered besides of which the replica that
// gave the position out has known already that it is gone.
func (v *version) knows(p Position) bool {
	if v.issued(p) {
		return true
	}
	swept := p.Swept()
	return swept >= v.horizon && (!p.Partial() || swept <= v.swept)
}
