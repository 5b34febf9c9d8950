package log

import (
	"github.com/watchtide/watchtide/stream"
)

// Where an upstream gives deletes no revision, their place among its revisions
// depends on when they were noticed. Each replica places such a delete at the end of
// the commit that brings it. So two replicas may place it differently, and one may
// have noticed it before the other. A position therefore also says how far its
// replica knew of such deletes when it issued the position: it is swept to revision
// W if every delete that happened while the newest revision of the upstream was
// below W has been delivered. Any other replica begins there when it repeats
// deletes, and must remember all of them from there on.
//
// That is sound if a delete that happens while the newest revision is h is never
// placed below h. A reader that lacks it has W at or below h. So the delete is after
// W, or the horizon is, because the delete was forgotten or a snapshot came without
// it.

// sweptTo is called after a commit or a snapshot.
func (w *Writer) sweptTo(revision uint64) {
	v := &w.next
	if !w.unnumbered {
		revision = stream.AllSwept
	}
	v.Swept = max(v.Swept, min(revision, v.Revision))
}

// position is the place of a reader, in an epoch as written in positions.
func (l *Log) position(epoch string, upserts, asOf, swept uint64) stream.Position {
	p := stream.Position{Watch: l.watch, Epoch: epoch, AsOf: swept}.At(asOf)
	p.Upserts = upserts
	return p
}
