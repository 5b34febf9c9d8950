package log

import (
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/difference"
	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Differences is a cache of the differences between parts of logs. Each is made once for all
// readers.
type Differences = difference.Cache

// NewDifferences returns an empty cache, whose memory is counted in a ceiling. Expire must be
// called some time after each call of later, which must not block. Close the cache after use.
func NewDifferences(c *memory.Ceiling, later func(time.Duration)) *Differences {
	return difference.NewCache(c, later)
}

// Holding is what a reader has when it switches from one part of a log to another: exactly the
// state of the first part at its place. The Holding keeps that state, unless the memory is
// needed. See SubscribeOptions.Holds.
//
// A Holding belongs to one goroutine, the pump of the subscription that it came from.
type Holding struct {
	log         *Log
	pin         *pin.Pin
	seq         uint64
	differences *Differences
	origin      uint64
	fromThisLog bool
	partial     bool // the reader was sent changes that its position does not cover
	since       time.Time
}

// Holds returns what the reader has, or the Holding that the subscription was given; nil: it
// has nothing. That is known if everything up to some place was sent, and nothing after it. Any
// other reader must begin again from nothing.
func (s *Subscription) Holds(d *Differences) *Holding {
	if h := s.options.Holds; h != nil || !s.begun {
		s.options.Holds = nil
		return h
	}
	h := &Holding{
		log: s.log, seq: s.cursor, differences: d,
		origin: s.origin, fromThisLog: s.fromThisLog, partial: s.partial, since: time.Now(),
	}
	if v := s.log.newest(); s.CaughtUp() && v.Generation == s.generation && s.cursor >= v.Readable {
		h.pin = s.log.pins.Add(v, 0)
	}
	return h
}

// HoldsUnknown returns the Holding of a reader about which nothing is known. It begins again
// from nothing.
func (l *Log) HoldsUnknown() *Holding { return &Holding{log: l, since: time.Now()} }

// Release gives up the state. A subscription releases the Holding that it was given.
func (h *Holding) Release() {
	h.log.pins.Release(h.pin)
	h.pin = nil
}

// status returns the status of a reader that has not been sent the whole difference yet.
func (h *Holding) status() *stream.Status {
	return &stream.Status{State: stream.CatchingUp, Since: h.since, Reason: "what may be seen of the watch has changed"}
}

// differenceKey names a difference in a cache.
type differenceKey struct {
	from, to         *Log
	generation, seq  uint64
	toGeneration, at uint64
}

// to returns the difference to the state of another part; nil: there is none.
func (h *Holding) to(l *Log, v *storage.Version) *difference.Kept {
	old := h.pin.Version()
	if old == nil {
		return nil // the memory was needed
	}
	k := differenceKey{from: h.log, to: l, generation: old.Generation, seq: h.seq}
	if v != nil {
		k.toGeneration, k.at = v.Generation, v.Seq
	}
	return h.differences.Get(k, func() *difference.Difference {
		return difference.Between(difference.State{Version: old, Seq: h.seq}, v, h.log.framing)
	})
}

// Withdraw deletes everything that the reader has. It fills b with a status, and then with
// deletes, and calls say after each. A reader that is cut off can resume from the id of the
// status as one that has nothing. If it is unknown what the reader has, Withdraw sends a reset
// instead.
func (h *Holding) Withdraw(b *Batch, say func()) {
	b.reset(h.log)
	kept := h.to(nil, nil)
	if kept == nil {
		b.addEvent(stream.Event{Type: stream.Reset, Reason: string(stream.ResetEpochChanged)})
		b.boundary = true
		say()
		return
	}
	defer kept.Release()
	status := h.status()
	b.addEvent(stream.Event{Type: stream.StatusChange, State: status.State, Since: status.Since, Reason: status.Reason})
	b.boundary = true
	say()
	b.reset(h.log)
	for _, r := range kept.Difference().Runs {
		b.addOf(r)
	}
	say()
}

// Announces reports whether the status with which a switch begins has not been sent yet.
func (s *Subscription) Announces() bool { return s.announces != nil }

// announce sends the status with which a switch begins. It is a flush of its own, as a reset is: its
// id says that from here on it is not known what the reader has, and must arrive before anything of
// the difference.
func (s *Subscription) announce(b *Batch) bool {
	if s.announces == nil {
		return false
	}
	s.announces, s.sentStatus = nil, s.announces
	b.addEvent(stream.Event{Type: stream.StatusChange, State: s.sentStatus.State, Since: s.sentStatus.Since, Reason: s.sentStatus.Reason})
	b.boundary, b.final = true, true
	return true
}

// changeOver begins to send the reader the difference from what it holds to v or, if that is
// impossible, all of v. It waits if v is older than what the reader holds.
func (s *Subscription) changeOver(b *Batch, v *storage.Version) (begins bool) {
	h := s.options.Holds
	old := h.pin.Version()
	same := old != nil && old.SameOrder(v)
	if same && !old.NotAfter(v) {
		if v = s.log.awaited(v); !old.NotAfter(v) {
			return false
		}
	}
	defer s.drop()
	if !same || !s.differ(b, v, h) {
		s.outcome = OutcomeEpochChanged
		s.reset(b, v, stream.ResetEpochChanged)
	}
	return true
}

// differ begins to send the difference, or returns false if there is none.
func (s *Subscription) differ(b *Batch, v *storage.Version, h *Holding) bool {
	kept, held := h.to(s.log, v), s.log.pins.Add(v, s.options.MinRate)
	if kept == nil || held == nil {
		kept.Release()
		s.log.pins.Release(held)
		return false
	}
	s.join(v)
	s.origin, s.fromThisLog, s.cursor, s.outcome, s.partial = h.origin, h.fromThisLog, v.Seq, OutcomeExact, true
	s.startWalk(b, walk{v: v, purpose: switching, difference: kept, midTransaction: true})
	s.pin = held
	return true
}

// Uncovered reports whether the reader was sent changes that its position does not cover, and no
// reset since: a part of a transaction, of the deletes of a catch-up, or of a difference. Then no
// id of any kind is sent, not even for the sake of another watch: a reader that applies what it
// has when an id arrives would show what never was, and one that is cut off after it would resume
// from a place where it is not.
func (s *Subscription) Uncovered() bool { return s.partial }

// drop releases what the reader holds of another part.
func (s *Subscription) drop() {
	if s.options.Holds != nil {
		s.options.Holds.Release()
		s.options.Holds = nil
	}
}

// fillDifference adds the next events of a difference.
func (w *walk) fillDifference(b *Batch) {
	runs := w.difference.Difference().Runs
	for ; w.at.Segment < len(runs) && !b.full(); w.at.Segment++ {
		b.addOf(runs[w.at.Segment])
	}
}

// addOf adds a run of a difference.
func (b *Batch) addOf(r difference.Run) {
	if r.Deletes() {
		b.addDeletes(r.Segment, r.From, r.To)
		return
	}
	b.addUpserts(r.Segment, r.From, r.To)
}
