package log

import "github.com/watchtide/watchtide/internal/storage"

// addFirst adds the resources that the reader wants first of a snapshot, as many as fit.
// An id follows them, that of nothing: a reader that comes back with it is sent all of the snapshot, and
// what was deleted since. They come again at their places.
//
// One that cannot be found at once, since the log has gone on, only comes at its place.
func (s *Subscription) addFirst(b *Batch) {
	v := s.walk.v
	for len(s.first) > 0 && !b.full() {
		_, e, known := v.GetQuickly(s.log.framing, storage.NewKey(s.first[0]))
		s.first = s.first[1:]
		if known && e != nil && !e.Is(storage.IsDelete) {
			at := v.After(e.Seq - 1)
			b.addEntry(v.Segments[at.Segment], at.Entry)
		}
	}
	if len(s.first) == 0 {
		s.first = nil
	}
	if b.changes() > 0 {
		s.early, b.boundary, b.final = true, true, true
	}
}
