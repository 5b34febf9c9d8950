package storage

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

// Run is the time since a replica began its log, for an upstream whose deletes have no
// revision, and for a log that another process goes on with. What is newer than a position that it issued is what its log holds after
// it, whatever the replica missed meanwhile: the reader has seen nothing else. So
// while the upstream is idle, the name of the run spares a returning reader the
// snapshot: nothing else distinguishes deletes that two replicas notice at the same
// revision. Only a reader that began with a snapshot of this log gets the name, since
// any other may hold more than its position says. A reader that resumes at another
// replica first gets its position without the name.
type Run struct {
	Name    uint32 // drawn at random; 0: deletes have a revision
	Horizon uint64 // no position below it is resumed by the name alone
	Former  []FormerRun
}

// FormerRun is the run of an earlier process, whose log this one goes on with. It ended at a
// revision, so the name proves nothing about a position after it.
type FormerRun struct {
	Name uint32 `json:"name"`
	End  uint64 `json:"end"`
}

// mostFormer bounds the former runs that are known.
const mostFormer = 16

// After returns a run with a name of its own that goes on where others have ended.
func (r Run) After(former []FormerRun) Run {
	r.Former = former[max(0, len(former)-mostFormer):]
	return r
}

// Ended returns the runs that a log has had if it ends at a revision.
func (r Run) Ended(revision uint64) []FormerRun {
	if r.Name == 0 {
		return nil
	}
	return append(slices.Clone(r.Former), FormerRun{Name: r.Name, End: revision})
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
	return p.Run != 0 && p.AsOf >= v.Run.Horizon && (p.Run == v.Run.Name || v.Run.followed(p))
}

// followed reports whether a former run issued a position.
func (r Run) followed(p stream.Position) bool {
	return slices.ContainsFunc(r.Former, func(f FormerRun) bool { return f.Name == p.Run && p.AsOf <= f.End })
}
