package log

import (
	"fmt"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log/internal/segment"
	"github.com/watchtide/watchtide/stream/log/internal/transaction"
)

// Change is one resource of a transaction, or of a snapshot.
type Change = transaction.Change

// CommitResult describes the effect of a commit.
type CommitResult struct {
	Upserts, Deletes int
	// Duplicates were already known and dropped.
	Duplicates int
	// Reset reports whether subscribers are reset to a new revision order.
	Reset bool
}

// known reports whether a change of a transaction is already in the log.
func (w *Writer) known(c *Change) (bool, error) {
	head := w.next.Revision
	if c.Revision > head {
		return false, nil
	}
	_, s, e := w.lookup(segment.NewKey(c.Key))
	if c.Deleted {
		// It has no revision of its own, or it comes a second time. A key that is
		// not live was deleted before; one that is newer was created since.
		return e == nil || e.Is(segment.IsDelete) || c.Revision != 0 && c.Revision < e.Revision, nil
	}
	if e != nil && c.Revision <= w.framing.ShownRevision(s, e) {
		return true, nil
	}
	return false, fmt.Errorf("%w: key %.80q changed at %d, after everything up to %d was committed",
		stream.ErrOrder, c.Key, c.Revision, head)
}
