package log

import (
	"weak"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Spot is a place in a log from which all readers are sent the same, up to the end of the walk that
// they are in. Spots are equal if what follows is the same: they have everything that it depends on,
// and nothing that a client could set but the position that it came with. A Spot can be the key of a
// map, and holds no memory of the log.
type Spot struct {
	version weak.Pointer[storage.Version] // that is read
	walk    walk
	joined
	delivered
	synced          bool
	digest, deletes bool
	// The reader was told another status last, such as that it waits for its turn: at the end of the walk,
	// and only if that is the head, it is told that the watch is in sync.
	due    bool
	atHead bool            // of a reader with a status due: the version is the newest
	from   stream.Position // of a reader whose walk has not begun
}

// Stretch is what a reader is sent from a spot on, except for the bytes, and where it is then.
// Static after construction.
type Stretch struct {
	begins bool // at the beginning of a walk
	ends   bool // at the end of it
	joined
	delivered
	synced   bool
	outcome  ResumeOutcome
	told     storage.Window // of a window, at the end
	walk     walk           // as it is between two flushes
	bytes    int
	boundary bool
	counts   [stream.Goodbye + 1]int
}

// Spot returns the spot of the reader. It returns false if what comes next may not be the same for
// others: before a snapshot, outside of a walk, after a restart of the walk, or if a status is due.
func (s *Subscription) Spot() (Spot, bool) {
	spot, v := s.spot()
	return spot, v != nil
}

// spot is Spot, with the version that is read; nil: there is no spot.
func (s *Subscription) spot() (at Spot, v *storage.Version) {
	newest := s.log.newest()
	if s.closed || s.paused || s.ownStatus != nil || len(s.first) > 0 || s.options.Interval > 0 {
		return at, nil
	}
	if at.due = !storage.SameStatus(newest.Status, s.sentStatus); at.due && newest.Status.State != stream.InSync {
		return at, nil
	}
	switch r := s.options.Resume; {
	case s.walking() && s.shared():
		v, at.walk = s.pin.Version(), *s.walk
		at.walk.examined = 0
		if v == nil || v.Generation != s.generation || newest.Generation != s.generation {
			return at, nil
		}
	case !s.begun && r != nil && newest.Primed() && r.Epoch == newest.Epoch && r.AsOf <= newest.Revision && newest.CanResume(*r):
		v, at.from = newest, *r
	default:
		return at, nil
	}
	at.atHead = at.due && v == newest
	at.version, at.joined, at.delivered, at.synced = weak.Make(v), s.joined, s.delivered, s.synced
	at.digest, at.deletes = s.digests(), s.options.Deletes
	return at, v
}

// shared reports whether the walk under way is one that many readers take: the others are short, or
// of readers that are each at a place of their own.
func (s *Subscription) shared() bool {
	return s.walk.purpose == snapshot || s.walk.purpose == resuming
}

// Recording notes a stretch while a reader takes it.
//
// Owned by the pump of the reader.
type Recording struct {
	sub     *Subscription
	at      Spot
	version *storage.Version
	sent    *stream.Status
	stretch Stretch
	valid   bool
}

// Record begins to note a stretch at the spot where the reader is. It returns false if there is none.
func (s *Subscription) Record() (*Recording, bool) {
	at, v := s.spot()
	if v == nil {
		return nil, false
	}
	return &Recording{sub: s, at: at, version: v, sent: s.sentStatus, stretch: Stretch{begins: !s.walking()}, valid: true}, true
}

// Note adds the batch that the reader was given last, before its release.
func (r *Recording) Note(b *Batch) {
	for t, n := range b.counts {
		r.stretch.counts[t] += n
	}
	r.stretch.bytes += b.bytes
	r.stretch.boundary = b.boundary
	r.valid = r.valid && r.follows()
}

// follows reports whether what the reader was given is of the version of the recording, and has
// nothing in it that others would not be given.
func (r *Recording) follows() bool {
	s, v := r.sub, r.version
	switch {
	case s.ownStatus != nil || s.generation != v.Generation || s.digests() != r.at.digest:
		return false
	case s.sentStatus != r.sent && (!r.at.atHead || s.walking() || s.sentStatus != v.Status):
		return false
	case r.at.atHead && s.log.newest() != v:
		return false // it may have been told of a newer one at the end
	case r.stretch.begins && r.stretch.outcome == OutcomePending && s.log.newest() != v:
		return false // it may have begun in a newer version
	}
	r.stretch.outcome = s.outcome
	if s.walking() {
		return s.shared() && s.pin.Version() == v
	}
	return s.cursor == v.Seq && s.position.AsOf == v.Revision && !s.position.Partial()
}

// Done reports whether the walk is over, and with it the stretch.
func (r *Recording) Done() bool { return !r.valid || !r.sub.walking() }

// Stretch returns what was noted. It returns false if it is not the same for other readers.
func (r *Recording) Stretch() (Stretch, bool) {
	s, t := r.sub, r.stretch
	if !r.valid || t.bytes == 0 {
		return Stretch{}, false
	}
	t.joined, t.delivered, t.synced, t.told = s.joined, s.delivered, s.synced, s.told
	if t.ends = !s.walking(); !t.ends {
		t.walk = *s.walk
	}
	return t, true
}

// Small reports whether the stretch has so few bytes of events that reading them costs a reader no more than
// what is kept for all readers.
func (t *Stretch) Small() bool { return t.bytes < storage.FlushSize/4 }

// Take moves the reader, which is at the spot where the stretch begins, to its end. b has the counts of
// what it was sent, and no events. The reader pins the version that it is in, and must keep its minimum
// rate, like one that is given the same by NextTurn. It returns false, and does nothing, if the
// version is gone.
func (s *Subscription) Take(at Spot, t *Stretch, b *Batch) bool {
	v := at.version.Value()
	if v == nil {
		return false
	}
	b.reset(s.log)
	b.counts, b.bytes, b.boundary = t.counts, t.bytes, t.boundary
	s.changed = s.log.newest().Changed
	s.joined, s.delivered, s.synced, s.told = t.joined, t.delivered, t.synced, t.told
	if t.begins {
		s.outcome = t.outcome
	}
	switch {
	case t.ends:
		if at.atHead {
			s.sentStatus = v.Status
		}
		if s.provable(v) {
			s.digested = v.Seq // of its end
		}
		s.endWalk()
		return true
	case s.walking():
		*s.walk = t.walk
	default:
		w := t.walk
		s.walk, s.pin = &w, s.log.pins.Add(v, s.options.MinRate)
	}
	s.log.pins.Credit(s.pin, b.bytes)
	return true
}
