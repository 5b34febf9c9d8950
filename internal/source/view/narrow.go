package view

import (
	"github.com/watchtide/watchtide/stream"
)

// narrowed passes on the part of a watch that is in the view. What leaves the view is
// deleted, at the revision of the change because of which it left.
//
// Owned by Watch.
type narrowed struct {
	stream.Sink
	source    *Source
	fresh     bool            // a snapshot has begun: there were no members before staged
	conflated bool            // values may have been left out since the last commit, or a resource deleted that was not seen
	staged    map[string]bool // since the last commit: whether the key is in the view
	bytes     int64           // of staged
}

// narrow returns a sink for the events of the watch. If the view does not resume, it has
// no members yet.
func (s *Source) narrow(sink stream.Sink, resumes bool) *narrowed {
	n := &narrowed{Sink: sink, source: s, staged: map[string]bool{}, fresh: !resumes}
	s.hold(sink, 0)
	return n
}

// Reset implements [stream.Sink].
func (n *narrowed) Reset(epoch string) error {
	n.fresh = true
	n.restart()
	return n.Sink.Reset(epoch)
}

// Upsert implements [stream.Sink].
func (n *narrowed) Upsert(r stream.Resource) error {
	matches, err := n.source.definition.Matches(r)
	if err != nil {
		n.source.unmatchable.Add(1)
	}
	if !matches {
		return n.Delete(r.Key, r.Revision)
	}
	r, err = n.source.definition.Project(r)
	if err != nil {
		return err
	}
	n.stage(r.Key, true)
	return n.Sink.Upsert(r)
}

// Delete implements [stream.Sink].
func (n *narrowed) Delete(key string, revision uint64) error {
	if !n.has(key) {
		return nil
	}
	n.stage(key, false)
	return n.Sink.Delete(key, revision)
}

func (n *narrowed) stage(key string, in bool) {
	if _, again := n.staged[key]; !again {
		n.bytes += memberCost + int64(len(key))
	}
	n.staged[key] = in
	n.source.hold(n.Sink, n.bytes)
}

func (n *narrowed) has(key string) bool {
	if in, changed := n.staged[key]; changed {
		return in
	}
	return !n.fresh && n.source.members.has(key)
}

// Conflated implements [stream.SinkExtension].
func (n *narrowed) Conflated() { n.conflated = true }

// unseen records a delete of a resource that the watch did not have. What the resource was
// elsewhere is unknown. The view does not pass on the delete, since it would name a key that
// may never have been in the view.
func (n *narrowed) unseen(key string) {
	n.conflated = n.conflated || n.source.definition.Allows(key) && !n.has(key)
}

// Commit implements [stream.Sink]. If values were left out, or a resource was deleted that
// the watch did not have, a reader that comes from another replica may have a resource that
// was in the view only there. So no position from before the commit is resumed.
func (n *narrowed) Commit(revision uint64) error {
	if n.conflated && !n.fresh {
		if err := n.Sink.RaiseHorizon(revision); err != nil {
			return err
		}
	}
	n.conflated = false
	if err := n.Sink.Commit(revision); err != nil {
		return err
	}
	members := &n.source.members
	if n.fresh {
		*members = newMembers(len(n.staged))
	}
	for key, in := range n.staged {
		members.set(key, in)
	}
	n.fresh = false
	n.restart()
	n.source.hold(n.Sink, 0)
	return nil
}

// restart forgets what was staged.
func (n *narrowed) restart() {
	n.bytes = 0
	if len(n.staged) > stagedKept {
		n.staged = map[string]bool{} // a map does not shrink
		return
	}
	clear(n.staged)
}

// stagedKept is how many changes a map that is reused may have had.
const stagedKept = 1000

// Swept implements [stream.SinkExtension].
func (n *narrowed) Swept(revision uint64) { n.Sink.DeletesCompleteTo(revision) }

// RaiseHorizon implements [stream.SinkExtension].
func (n *narrowed) RaiseHorizon(revision uint64) error { return n.Sink.RaiseHorizon(revision) }
