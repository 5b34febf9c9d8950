package log

import (
	"iter"

	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Entry is one change in a log. It aliases the log, and is valid for as long as the
// Snapshot that it comes from is held.
type Entry struct {
	log *Log
	s   *storage.Segment
	e   *storage.Entry
}

// Seq is its number: those of later entries are greater.
func (e Entry) Seq() uint64 { return e.e.Seq }

// Revision is its place in the order of the log.
func (e Entry) Revision() uint64 { return e.e.Revision }

// Deleted reports whether it deletes its resource.
func (e Entry) Deleted() bool { return e.e.Is(storage.IsDelete) }

// EndsTransaction reports whether it is the last one of its transaction.
func (e Entry) EndsTransaction() bool { return e.e.Is(storage.EndsCommit) }

// Resource is the resource as of the entry; that of a delete has no value.
func (e Entry) Resource() stream.Resource { return e.log.framing.Event(e.s, e.e).Resource }

// Bytes is about how much memory it takes.
func (e Entry) Bytes() int { return int(e.e.Size) + int(storage.EntrySize) }

// RawKey is its key as written in its frame, which is valid as long as e.
func (e Entry) RawKey() []byte { return e.log.framing.RawKeyOf(e.s, e.e) }

func (e Entry) key() storage.Key { return e.log.framing.KeyOf(e.s, e.e) }

// Entries returns the entries after a seq, in order. Superseded ones are among them as
// far as they are still there: all are if seq is not below Intact.
func (s Snapshot) Entries(after uint64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		v := s.v
		for at := v.After(after); at.Segment < len(v.Segments); at = v.Next(at) {
			if !yield(Entry{s.log, v.Segments[at.Segment], v.Entry(at)}) {
				return
			}
		}
	}
}

// Counts reports whether an entry is the newest one of its key.
func (s Snapshot) Counts(e Entry) bool { return e.e.Visible(s.v.Seq) }

// Counting reports whether the entry with a seq is there, and the newest one of its key.
func (s Snapshot) Counting(seq uint64) bool {
	_, e := s.v.Find(seq)
	return e != nil && e.Visible(s.v.Seq)
}

// Before returns the previous entry of the key of e; ok is false if it had none. It is not
// known if the entry is no longer there.
func (s Snapshot) Before(e Entry) (previous Entry, ok, known bool) {
	in, before, known := s.v.Before(e.e)
	return Entry{s.log, in, before}, before != nil, known
}

// NewerThan reports whether a reader that has deletes up to a revision may lack e.
func (e Entry) NewerThan(revision uint64) bool {
	return e.e.Revision > revision || e.e.Revision == revision && e.e.Is(storage.UnnumberedDelete)
}

// Conflated reports whether values of its key before it may have been left out.
func (e Entry) Conflated() bool { return e.e.Is(storage.Conflated) }

// PreviousSeq is the seq of the previous entry of the key, or of an earlier one; 0: there
// was none, or it is very far back.
func (e Entry) PreviousSeq() uint64 { return e.e.Previous() }

// Pin keeps a snapshot for a while, and counts its memory.
type Pin struct {
	log *Log
	pin *pin.Pin
}

// Pin keeps the snapshot. Release it.
func (s Snapshot) Pin() *Pin { return &Pin{log: s.log, pin: s.log.pins.Add(s.v, 0)} }

// Snapshot returns what is kept; false if it was taken away, since the memory was needed.
func (h *Pin) Snapshot() (Snapshot, bool) {
	v := h.pin.Version()
	return Snapshot{h.log, v}, v != nil
}

// Release ends the hold.
func (h *Pin) Release() { h.log.pins.Release(h.pin) }

// Origin is the revision since which every change was received. When it rises, readers are
// told.
func (s Snapshot) Origin() uint64 { return s.v.Origin }

// Number rises with each version of the log.
func (s Snapshot) Number() uint64 { return s.v.Number }

// Seq is the seq of the newest entry.
func (s Snapshot) Seq() uint64 { return s.v.Seq }

// Exact is the least revision after which it is known for every change what it changed.
func (s Snapshot) Exact() uint64 { return s.v.Exact() }

// Intact is the seq after which all entries are still there, superseded or not.
func (s Snapshot) Intact() uint64 { return s.v.Intact }

// Forgotten is the seq of the newest delete that is no longer there.
func (s Snapshot) Forgotten() uint64 { return s.v.Forgotten }

// Generation differs between states that have nothing to do with each other.
func (s Snapshot) Generation() uint64 { return s.v.Generation }

// DeletesCompleteTo is how far deletes without a revision are complete; see stream.SinkExtension.
func (s Snapshot) DeletesCompleteTo() uint64 { return s.v.DeletesCompleteTo }
