package log

import "github.com/watchtide/watchtide/stream"

// Where an upstream gives deletes no revision, two replicas may place one differently, or
// notice it at different times: see README.md, "A position says how far deletes without a
// revision are known".

// deletesCompleteTo is called after a commit or a snapshot.
func (w *Writer) deletesCompleteTo(revision uint64) {
	v := w.next
	if !w.unnumbered {
		revision = stream.AllDeletes
	}
	v.DeletesCompleteTo = max(v.DeletesCompleteTo, min(revision, v.Revision))
}

// position is the place of a reader, in an epoch as written in positions.
func (l *Log) position(epoch string, upserts, asOf, deletesTo uint64) stream.Position {
	p := stream.Position{Watch: l.watch, Epoch: epoch, AsOf: deletesTo}.At(asOf)
	p.Upserts = upserts
	return p
}
