package gateway

import (
	"math/rand/v2"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

const (
	// repairAfter is the least time between two repairs of what a source has. It doubles up to mostRepairAfter if the next
	// one comes soon: what causes the difference is still there. A random part, up to a half, is added to it.
	repairAfter, mostRepairAfter = 5 * time.Minute, time.Hour
)

// repairs is about what a source has while its stream goes on, if that has another digest than the upstream's. Guarded by
// the mu of its member.
type repairs struct {
	differing bool          // it was found to have another digest, and neither repaired since nor given up
	next      time.Time     // the earliest time of the next repair
	wait      time.Duration // between the last one and the next
}

// begin reports whether a repair may begin now, and then counts it.
func (r *repairs) begin(now time.Time) bool {
	if now.Before(r.next) {
		return false
	}
	if now.Sub(r.next) > mostRepairAfter {
		r.wait = 0
	}
	r.wait = min(max(2*r.wait, repairAfter), mostRepairAfter)
	r.next, r.differing = now.Add(r.wait+rand.N(r.wait/2)), true
	return true
}

// unknownPosition is a position of a watch that no gateway knows. A stream that resumes there is sent the digest of a state that is
// kept, as one behind a position that has been forgotten.
func unknownPosition(watch string) stream.Position {
	return stream.Position{Watch: watch, Epoch: "none"}
}

// compare compares what the sink has with the digest that an event has, if everything up to the event has been committed. If they
// differ, a verification finds out where, and the events that follow wait for that. It is not begun more often than repairs allow.
func (r *reader) compare(e *client.Event) error {
	sink, holds := r.Sink.(stream.Holding)
	if e.Digest == "" || !holds || !r.Committed() || e.Conflated != "" || e.Type == client.Bookmark && e.Horizon != "" {
		return nil
	}
	if revision, err := decodeRevision(e.Revision); err != nil || revision != r.Position().Upserts {
		return nil // it is about another state
	}
	equal, err := sink.Compare(e.Digest)
	if err != nil || equal || !r.source.repairs.begin(time.Now()) {
		return err
	}
	if err := r.hold(*e); err != nil {
		return err
	}
	return r.verify(&r.waiting.events[0], r.Position(), true)
}
