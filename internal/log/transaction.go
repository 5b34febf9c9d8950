package log

import (
	"fmt"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// CommitResult describes the effect of a commit.
type CommitResult struct {
	Upserts, Deletes int
	// Duplicates were already known and dropped.
	Duplicates int
	// Reset reports whether subscribers are reset to a new revision order.
	Reset bool
}

// known reports whether a change of a transaction is already in the log. What was
// committed comes again where a snapshot and the changes after it overlap, and where a
// connection continues from an earlier one. What contradicts the log is ErrOrder: to drop it
// would be to serve a state that the upstream does not have.
func (w *Writer) known(c *Change) (bool, error) {
	head := w.next.Revision
	if c.Revision > head {
		return false, nil
	}
	_, s, e := w.lookup(storage.NewKey(c.Key))
	if c.Deleted {
		// It has no revision of its own, or it comes a second time. A key that is
		// not live was deleted before; one that is newer was created since.
		return e == nil || e.Is(storage.IsDelete) || c.Revision != 0 && c.Revision < e.Revision, nil
	}
	switch shown := w.shown(s, e); {
	case c.Revision < shown && w.overlaps:
		return true, nil
	case c.Revision == shown && w.framing.Repeats(s, e, &c.Resource):
		return true, nil
	case c.Revision == shown:
		return false, fmt.Errorf("%w: key %.80q changed a second time at %d", stream.ErrOrder, c.Key, c.Revision)
	}
	return false, fmt.Errorf("%w: key %.80q changed at %d, after everything up to %d was committed",
		stream.ErrOrder, c.Key, c.Revision, head)
}

// shown is the revision of an entry as readers see it; 0: there is none.
func (w *Writer) shown(s *storage.Segment, e *storage.Entry) uint64 {
	if e == nil {
		return 0
	}
	return w.framing.ShownRevision(s, e)
}

// Overlap declares that the next transactions may repeat older changes of keys, up to the
// first one that brings something new: the source has connected again. After a snapshot
// they may as well.
func (w *Writer) Overlap() { w.overlaps = true }
