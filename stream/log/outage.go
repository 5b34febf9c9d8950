package log

import (
	"fmt"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log/internal/segment"
)

// A snapshot that ends an outage shows what differs, but not what was created and
// deleted in between. A reader that comes from another replica may hold such a
// resource: its position lies inside the outage, or before it if the reader was cut
// off inside a flush and holds more than its position says. So no position from
// before the end of an outage is resumed. Readers that stayed connected have only
// what this log has.
//
// Gateways that serve the watch to others must not resume such positions either. A
// version carries its origin, the revision from which on every change was received.
// When it rises, each reader gets a bookmark before anything else of the version.

// openOutage is called after a snapshot. Where deletes have no revision of their
// own, a reader at exactly the snapshot's revision may have been there before the
// last deletes, of which the snapshot says nothing. And there a snapshot is only as
// new as the newest resource in it: newer ones that were deleted before it was taken
// are missing, and another replica may have given out their revisions. So the outage
// ends with the first upsert after it.
func (w *Writer) openOutage(snapshot uint64) {
	if !w.unnumbered {
		w.raiseOrigin(snapshot)
		return
	}
	w.raiseOrigin(snapshot + 1)
	w.next.OriginPending = true
}

// clearEndInOutage is called after a commit, which may bring changes from an outage that
// ended at origin. If the newest change lies in the outage, no id may follow it directly:
// only the whole commit, at its own revision, is a state that the upstream had. The same
// holds at each gateway that follows.
func clearEndInOutage(last *segment.Entry, revision, origin uint64) {
	if last != nil && last.Revision < min(revision, origin) {
		last.Flags &^= segment.EndsCommit
	}
}

// closeOutage is called after a commit.
func (w *Writer) closeOutage(before uint64, last *segment.Entry) {
	v := &w.next
	if !v.OriginPending || last == nil || v.Revision <= before {
		return
	}
	first := v.NewerThan(before)
	for first.Segment < len(v.Segments) {
		e := &v.Entries(first.Segment)[first.Entry]
		if !e.Is(segment.IsDelete) && e.Revision > before {
			v.OriginPending = false
			w.raiseOrigin(e.Revision)
			return
		}
		first = v.Next(first)
	}
}

// raiseOrigin notes that changes before a revision may be unknown.
func (w *Writer) raiseOrigin(origin uint64) {
	v := &w.next
	v.Origin = max(v.Origin, origin)
	if origin > v.Horizon {
		v.Horizon, v.HorizonAge = origin, v.Committed
	}
}

// RaiseHorizon declares that changes before a revision may be unknown, since the
// upstream may not know them. No position below it is resumed from now on, and readers
// get a bookmark that says so before anything else. The log must be primed.
func (w *Writer) RaiseHorizon(revision uint64) error {
	if !w.next.Primed() {
		return fmt.Errorf("%w: a horizon before the first snapshot", stream.ErrInvalid)
	}
	if revision > w.next.Origin {
		w.raiseOrigin(revision)
		w.publish()
	}
	return nil
}
