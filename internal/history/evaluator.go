package history

import (
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// evaluator says what of an entry is shown.
//
// Owned by one goroutine.
type evaluator struct {
	// Static after construction.
	s       log.Snapshot
	d       *view.Definition // nil: everything
	whole   bool             // d is nil
	matcher *view.Matcher

	asked int // what the filter has cost

	seq  uint64 // of the last entry that was evaluated, which is often asked about next
	last shown
}

// shown is what a view has of a resource, as of one entry.
type shown struct {
	stream.Resource
	deleted   bool // nothing
	projected bool
}

// of evaluates an entry.
func (v *evaluator) of(e log.Entry) shown {
	if e.Seq() == v.seq {
		return v.last
	}
	v.seq, v.last = e.Seq(), v.evaluate(e)
	return v.last
}

func (v *evaluator) evaluate(e log.Entry) shown {
	r := e.Resource()
	gone := shown{Resource: stream.Resource{Key: r.Key, Revision: r.Revision}, deleted: true}
	switch {
	case e.Deleted():
		return gone
	case v.whole:
		return shown{Resource: r}
	}
	matches, _ := v.matcher.Matches(r)
	v.asked += v.matcher.Asked()
	if !matches {
		return gone
	}
	if v.d.Keeps(r) {
		return shown{Resource: r}
	}
	projected, err := v.d.Project(r)
	if err != nil {
		return gone
	}
	return shown{Resource: projected, projected: true}
}
