package streamtest

import (
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// groupRevision is the revision of all groups of counts: which one a group has depends on when a replica began to
// count.
const groupRevision = 1

// TruthOfCounts returns the truth of counts of an upstream. count returns the value of each group of some
// resources, in code that has nothing to do with the counts of a gateway.
func TruthOfCounts(all *Truth, g *view.Grouping, count func(map[string]stream.Resource) map[string]string, served ...string) *Truth {
	now := all.Now()
	out := &Truth{traceless: now.traceless}
	for _, e := range now.epochs {
		made := newEpoch(g.Epoch(e.name), []Transaction{{Revision: e.txns[0].Revision, After: State{}}})
		made.again = e.again
		for _, other := range served {
			if e.servedAs(other) && other != stream.CanonicalEpoch(e.name) {
				made.others = append(made.others, stream.CanonicalEpoch(g.Epoch(other)))
			}
		}
		for i, txn := range e.txns {
			groups := map[string]stream.Resource{}
			for key, value := range count(txn.resources) {
				groups[key] = stream.Resource{Key: key, Revision: groupRevision, Value: []byte(value)}
			}
			next := Transaction{Revision: txn.Revision, Vanished: txn.Vanished}
			if i == 0 {
				made = made.beginsWith(next, groups)
				out.epochs = append(out.epochs, made)
				continue
			}
			next.Changes = made.last().toward(groups, txn.Revision)
			out.add(next)
		}
	}
	return out
}

// withoutRevisions sets the versions of the upserts of a flush of counts.
func (f *Flush) withoutRevisions() {
	f.versions = make([]Version, len(f.Events))
	for i, e := range f.Events {
		if e.Type == stream.Upsert {
			f.versions[i] = Version{Revision: groupRevision, Value: ValueText(e.Resource.Value)}
		}
	}
}
