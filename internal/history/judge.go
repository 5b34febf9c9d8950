package history

import (
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// judge says what of an entry is shown.
//
// Owned by one goroutine.
type judge struct {
	// Static after construction.
	s       log.Snapshot
	d       *view.Definition // nil: everything
	whole   bool             // d is nil
	matcher *view.Matcher

	asked int // what the filter has cost

	seq  uint64 // of the last entry that was judged, which is often asked about next
	last verdict
}

// verdict is what a view has of a resource, as of one entry.
type verdict struct {
	stream.Resource
	deleted   bool // nothing
	projected bool
}

// of judges an entry.
func (j *judge) of(e log.Entry) verdict {
	if e.Seq() == j.seq {
		return j.last
	}
	j.seq, j.last = e.Seq(), j.evaluate(e)
	return j.last
}

func (j *judge) evaluate(e log.Entry) verdict {
	r := e.Resource()
	gone := verdict{Resource: stream.Resource{Key: r.Key, Revision: r.Revision}, deleted: true}
	switch {
	case e.Deleted():
		return gone
	case j.whole:
		return verdict{Resource: r}
	}
	matches, _ := j.matcher.Matches(r)
	j.asked += j.matcher.Asked()
	if !matches {
		return gone
	}
	if j.d.Keeps(r) {
		return verdict{Resource: r}
	}
	projected, err := j.d.Project(r)
	if err != nil {
		return gone
	}
	return verdict{Resource: projected, projected: true}
}
