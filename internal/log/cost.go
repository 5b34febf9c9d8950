package log

import "github.com/watchtide/watchtide/internal/storage"

// cost is an upper estimate of the bytes that the upserts of a transaction add to
// the log. Deletes are bounded by the history.
func (w *Writer) cost(changes []Change) int64 {
	return w.costAfter(storage.PackingAfter(w.next.Segments, w.used), changes)
}

// snapshotCost is how many bytes a log built from a snapshot takes.
func (w *Writer) snapshotCost(snapshot []Change) int64 {
	return w.costAfter(storage.Packing{}, snapshot)
}

func (w *Writer) costAfter(p storage.Packing, changes []Change) int64 {
	if w.account == nil {
		return 0
	}
	around := w.framing.Overhead()
	for i := range changes {
		if c := &changes[i]; !c.Deleted {
			p.Add(around + len(c.Key) + len(c.Value))
		}
	}
	return p.Bytes
}
