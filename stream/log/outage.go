package log

import (
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

// A snapshot that ends an outage shows what differs, but not what was created and
// deleted in between. A reader that comes from another replica may hold such a
// resource: its position lies inside the outage, or before it if the reader was cut
// off inside a flush and holds more than its position says. So no position from
// before the end of an outage is resumed. Readers that stayed connected have nothing
// that this log does not know.
//
// Gateways that serve the watch to others must not resume such positions either. A
// version carries its origin, the revision from which on every change was received.
// Each reader is told when it rises, before anything else of the version.

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
	w.next.open = true
}

// clearEndInOutage follows a commit at a revision that brings what an outage, which ended
// at origin, has left behind. Right behind its newest change no id can stand if that
// lies in the outage: only all of it, at the commit's own revision, is a state that
// the upstream had. So it is here, and so at each gateway that follows.
func clearEndInOutage(last *entry, revision, origin uint64) {
	if last != nil && last.revision < min(revision, origin) {
		last.flags &^= endsCommit
	}
}

// closeOutage is called after a commit.
func (w *Writer) closeOutage(before uint64, last *entry) {
	v := &w.next
	if !v.open || last == nil || v.revision <= before {
		return
	}
	first := v.newerThan(before)
	for first.segment < len(v.segments) {
		e := &v.entries(first.segment)[first.entry]
		if !e.is(isDelete) && e.revision > before {
			v.open = false
			w.raiseOrigin(e.revision)
			return
		}
		first = v.normalize(place{first.segment, first.entry + 1})
	}
}

// raiseOrigin notes that changes before a revision may be unknown.
func (w *Writer) raiseOrigin(origin uint64) {
	v := &w.next
	v.origin = max(v.origin, origin)
	if origin > v.horizon {
		v.horizon, v.horizonAge = origin, v.committed
	}
}

// RaiseHorizon declares that changes before a revision may be unknown, since the
// upstream may not know them. No position below it is resumed from now on, and
// readers are told before they get anything else. The log must be primed.
func (w *Writer) RaiseHorizon(revision uint64) error {
	if !w.next.primed() {
		return fmt.Errorf("%w: a horizon before the first snapshot", stream.ErrInvalid)
	}
	if revision > w.next.origin {
		w.raiseOrigin(revision)
		w.publish()
	}
	return nil
}
