package log

import (
	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// former is the window that the reader of a subscription has, until it goes on with another one.
type former struct {
	log         *Log
	pin         *pin.Pin // of the state that has all that the reader may have
	cursor      uint64   // the reader has all up to this seq
	origin      uint64
	fromThisLog bool
}

// difference is what a reader is sent that goes from one window of a view to another one: the deletes of
// what only the first one has, and then the upserts of what only the second one has, or has newer. The
// reader has neither window before it has all of it.
//
// Owned by the pump of the reader.
type difference struct {
	gone []stream.Event
	come []uint64 // seqs
}

func (d *difference) sent() bool { return len(d.gone)+len(d.come) == 0 }

// CanMove reports whether the reader has one state of its window, or nothing of it, and so can go on with
// another one. If not, it can once it was sent the rest of what it is being sent.
func (s *Subscription) CanMove() bool { return !s.walking() && s.former == nil }

// keep makes the subscription go on for the reader of another window of the same view, from what it has
// of that. It returns false if that is not known.
func (s *Subscription) keep(f *Subscription) bool {
	v := f.log.newest()
	switch {
	case !f.begun || !f.synced || f.partial || !f.CanMove() || !s.log.newest().Primed():
		return false
	case !v.Primed() || !v.Window.Is || v.Generation != f.generation || f.cursor < v.Forgotten:
		return false
	}
	s.former = &former{log: f.log, pin: f.log.pins.Add(v, 0), cursor: f.cursor, origin: f.origin, fromThisLog: f.fromThisLog}
	s.synced = true
	return true
}

// forgetFormer gives up the former window.
func (s *Subscription) forgetFormer() {
	if s.former != nil {
		s.former.log.pins.Release(s.former.pin)
		s.former = nil
	}
}

// goOn begins with the difference from the former window. It returns false if v is older than what the
// reader has.
func (s *Subscription) goOn(b *Batch, v *storage.Version) bool {
	f := s.former
	had := f.pin.Version()
	if had != nil && v.OfGeneration == had.OfGeneration && v.Of < had.Of {
		if v = s.log.awaited(v); v.Of < had.Of {
			return false
		}
	}
	if had == nil || !v.Window.Is || v.OfGeneration != had.OfGeneration || v.Complete() != f.origin {
		s.forgetFormer()
		s.synced = false
		return s.start(b, v)
	}
	d := f.to(s.log, had, v)
	s.forgetFormer()
	s.join(v)
	s.fromThisLog, s.outcome = f.fromThisLog, OutcomeExact
	end := storage.Place{Segment: len(v.Segments)}
	s.startWalk(b, walk{v: v, purpose: moving, difference: d, at: end, upserts: end, revision: v.Revision, complete: v.Revision})
	return true
}

// to returns the difference from a state of the former window, had, to a state of another one, which is not
// older.
func (f *former) to(l *Log, had, v *storage.Version) *difference {
	d, of := &difference{}, f.log.framing
	for i, s := range had.Segments {
		entries := had.Entries(i)
		for j := range entries {
			e := &entries[j]
			if !e.Visible(had.Seq) || e.Is(storage.IsDelete) && e.Seq <= f.cursor {
				continue
			}
			k := of.KeyOf(s, e)
			if _, has := v.Get(l.framing, k); has == nil || has.Is(storage.IsDelete) {
				gone := stream.Resource{Key: of.Key(s, e), Revision: v.Revision}
				d.gone = append(d.gone, stream.Event{Type: stream.Delete, Resource: gone, Left: had.Of == v.Of && !e.Is(storage.IsDelete)})
			}
		}
	}
	v.Each(v.Seq, func(s *storage.Segment, e *storage.Entry) bool {
		in, was := had.Get(of, l.framing.KeyOf(s, e))
		if was == nil || was.Is(storage.IsDelete) || was.Seq > f.cursor || was.Content != e.Content || of.ShownRevision(in, was) != l.framing.ShownRevision(s, e) {
			d.come = append(d.come, e.Seq)
		}
		return true
	})
	return d
}

// fillMove adds what is left of a difference, deletes first.
func (w *walk) fillMove(b *Batch) {
	d := w.difference
	for len(d.gone) > 0 && !b.full() {
		b.addEvent(d.gone[0])
		b.bytes += len(d.gone[0].Resource.Key)
		d.gone = d.gone[1:]
	}
	for len(d.come) > 0 && !b.full() {
		at := w.v.After(d.come[0] - 1)
		b.addEntry(w.v.Segments[at.Segment], at.Entry)
		d.come = d.come[1:]
	}
}
