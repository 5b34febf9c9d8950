package log

import (
	"fmt"

	"github.com/watchtide/watchtide/stream"
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
		w.next.RaiseOrigin(snapshot)
		return
	}
	w.next.RaiseOrigin(snapshot + 1)
	w.next.OriginPending = true
}

// RaiseHorizon declares that changes before a revision may be unknown, since the
// upstream may not know them. No position below it is resumed from now on, and readers
// get a bookmark that says so before anything else. The log must be primed.
func (w *Writer) RaiseHorizon(revision uint64) error {
	if !w.next.Primed() {
		return fmt.Errorf("%w: a horizon before the first snapshot", stream.ErrInvalid)
	}
	if revision > w.next.Origin {
		w.next.RaiseOrigin(revision)
		w.publish()
	}
	return nil
}
