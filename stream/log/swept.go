package log

import (
	"math"
	"math/rand/v2"

	"github.com/watchtide/watchtide/stream"
)

// Where an upstream gives deletes no revision, their place among its revisions
// depends on when they were noticed. Each replica places such a delete at the end of
// the commit that brings it. So two replicas may place it differently, and one may
// have noticed it before the other. A position therefore also says how far its
// replica knew of such deletes when it issued the position: it is swept to revision
// W if every delete that happened while the newest revision of the upstream was
// below W has been delivered. Any other replica begins there when it repeats
// deletes, and must remember all of them from there on.
//
// That is sound if a delete that happens while the newest revision is h is never
// placed below h. A reader that lacks it has W at or below h. So the delete is after
// W, or the horizon is, because the delete was forgotten or a snapshot came without
// it.

// sweptTo is called after a commit or a snapshot.
func (w *Writer) sweptTo(revision uint64) {
	v := &w.next
	if !w.unnumbered {
		revision = stream.AllSwept
	}
	v.swept = max(v.swept, min(revision, v.revision))
}

// run is the time since a replica began its log, for an upstream whose deletes have no
// revision. What is newer than a position that it issued is what its log holds after
// it, whatever the replica missed meanwhile: the reader has seen nothing else. So
// while the upstream is idle, the name of the run spares a returning reader the
// snapshot: nothing else distinguishes deletes that two replicas notice at the same
// revision. Only a reader that began with a snapshot of this log gets the name, since
// any other may hold more than its position says. A reader that resumes at another
// replica first gets its position without the name.
type run struct {
	name    uint32 // drawn at random; 0: deletes have a revision
	horizon uint64 // no position below it is resumed by the name alone
}

func newRun() run { return run{name: 1 + rand.Uint32N(math.MaxUint32)} }

// withRun adds the name of the run to the position of a reader that has seen nothing
// but the log.
func (v *version) withRun(p stream.Position) stream.Position {
	if !p.Partial() {
		p.Run = v.run.name
	}
	return p
}

// issued reports whether a position is one of the run, and everything newer is
// known.
func (v *version) issued(p stream.Position) bool {
	return p.Run != 0 && p.Run == v.run.name && p.AsOf >= v.run.horizon
}

// position is the place of a reader, in an epoch as written in positions.
func (l *Log) position(epoch string, upserts, asOf, swept uint64) stream.Position {
	p := stream.Position{Watch: l.watch, Epoch: epoch, AsOf: swept}.At(asOf)
	p.Upserts = upserts
	return p
}

// canResume reports whether everything newer than a position is known. Inside a snapshot
// or a catch-up nothing may be delivered that the replica that issued the position
// already knew to be gone.
func (v *version) canResume(p stream.Position) bool {
	if v.issued(p) {
		return true
	}
	swept := p.Swept()
	return swept >= v.horizon && (!p.Partial() || swept <= v.swept)
}
