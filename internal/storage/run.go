package storage

import (
	"math"
	"math/rand/v2"

	"github.com/watchtide/watchtide/stream"
)

// Run is the time since a replica began its log, for an upstream whose deletes have no
// revision. What is newer than a position that it issued is what its log holds after
// it, whatever the replica missed meanwhile: the reader has seen nothing else. So
// while the upstream is idle, the name of the run spares a returning reader the
// snapshot: nothing else distinguishes deletes that two replicas notice at the same
// revision. Only a reader that began with a snapshot of this log gets the name, since
// any other may hold more than its position says. A reader that resumes at another
// replica first gets its position without the name.
type Run struct {
	Name    uint32 // drawn at random; 0: deletes have a revision
	Horizon uint64 // no position below it is resumed by the name alone
}

// NewRun returns a run with a name of its own.
func NewRun() Run { return Run{Name: 1 + rand.Uint32N(math.MaxUint32)} }

// WithRun adds the name of the run to the position of a reader that has seen nothing
// but the log.
func (v *Version) WithRun(p stream.Position) stream.Position {
	if !p.Partial() {
		p.Run = v.Run.Name
	}
	return p
}

// Issued reports whether a position is one of the run, and everything newer is
// known.
func (v *Version) Issued(p stream.Position) bool {
	return p.Run != 0 && p.Run == v.Run.Name && p.AsOf >= v.Run.Horizon
}
