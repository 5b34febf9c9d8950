package log

import (
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log/internal/difference"
	"github.com/watchtide/watchtide/stream/log/internal/pin"
	"github.com/watchtide/watchtide/stream/log/internal/version"
	"github.com/watchtide/watchtide/stream/memory"
)

// Differences are what leads readers from one part of a log to another: each is made once,
// for all of them.
type Differences = difference.Cache

// NewDifferences returns an empty cache, which counts what it keeps in a ceiling. Call Expire
// some time after each call of later, which must not wait. Close it.
func NewDifferences(c *memory.Ceiling, later func(time.Duration)) *Differences {
	return difference.NewCache(c, later)
}

// Holding is what a reader has that goes from one part of a log to another: all of the state
// at its place in the first one, and nothing else. It keeps that state, unless the memory is
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
	purpose     purpose // of the walk through the difference; resuming: the reader comes back with a position
	sent        uint64  // up to this seq, the reader may have been sent what came after seq
	partial     bool    // the reader was sent some of a difference, and not all of it
	since       time.Time
}

// Holds returns what the reader has, and takes it over if the subscription was given it. It
// is known of a reader at rest, which was sent all up to some place, and nothing after it.
// Any other must begin again from nothing where it goes. It returns nil if the reader was
// sent nothing.
func (s *Subscription) Holds(d *Differences) *Holding {
	if h := s.options.Holds; h != nil || !s.begun {
		s.options.Holds = nil
		return h
	}
	h := &Holding{
		log: s.log, seq: s.cursor, differences: d,
		origin: s.origin, fromThisLog: s.fromThisLog, partial: s.partial, since: time.Now(), purpose: switching,
	}
	if v := s.log.newest(); s.CaughtUp() && v.Generation == s.generation && s.cursor >= v.Readable {
		h.pin = s.log.pins.Add(v, 0)
	}
	return h
}

// HoldsAt returns what a reader has that comes back with a position of the log, and goes to
// another part. It may have any of what the log had after the position and up to a seq, since
// it may have been cut off before the next id. HoldsAt returns nil if that is not known any
// more. Where deletes have no revision, it is not known at all.
func (l *Log) HoldsAt(p stream.Position, sent uint64, d *Differences) *Holding {
	v := l.newest()
	if p.Epoch != v.Epoch || p.Partial() || p.AsOf > v.Revision || !v.CanResume(p) || strings.HasPrefix(p.Epoch, stream.UnnumberedEpoch) {
		return nil
	}
	h := &Holding{log: l, seq: v.SeqBefore(v.NewerThan(p.AsOf)), sent: sent, differences: d, origin: v.Complete(), purpose: resuming, since: time.Now()}
	if h.seq < v.Readable || h.seq < min(sent, v.Intact) {
		return nil
	}
	h.pin = l.pins.Add(v, 0)
	return h
}

// HoldsUnknown returns what a reader has of which nothing is known: it begins again from
// nothing where it goes.
func (l *Log) HoldsUnknown() *Holding { return &Holding{log: l, purpose: resuming, since: time.Now()} }

// Release gives the state up. A subscription releases what it was given.
func (h *Holding) Release() {
	h.log.pins.Release(h.pin)
	h.pin = nil
}

// status is that of a reader that has not been sent all of the difference yet.
func (h *Holding) status() stream.Status {
	return stream.Status{State: stream.CatchingUp, Since: h.since, Reason: "what may be seen of the watch has changed"}
}

// differenceKey names a difference in a cache.
type differenceKey struct {
	from, to         *Log
	generation, seq  uint64
	sent             uint64
	toGeneration, at uint64
}

// to returns the difference to a state of another part; nil: there is none.
func (h *Holding) to(l *Log, v *version.Version) *difference.Kept {
	old := h.pin.Version()
	if old == nil {
		return nil // the memory was needed
	}
	k := differenceKey{from: h.log, to: l, generation: old.Generation, seq: h.seq, sent: h.sent}
	if v != nil {
		k.toGeneration, k.at = v.Generation, v.Seq
	}
	return h.differences.Get(k, func() *difference.Difference {
		return difference.Between(difference.State{Version: old, Seq: h.seq, Sent: h.sent}, v, h.log.framing)
	})
}

// Withdraw takes everything from the reader: it fills b with a status, and then with deletes,
// and calls say each time. The status is where a reader may resume that has nothing: one that
// has got some of the deletes can go on there. If it is not known what the reader has, a reset
// takes the place of all that.
func (h *Holding) Withdraw(b *Batch, say func()) {
	b.reset(h.log)
	kept := h.to(nil, nil)
	if kept == nil {
		b.of.AddEvent(stream.Event{Type: stream.Reset, Reason: string(stream.ResetEpochChanged)})
		b.of.Boundary = true
		say()
		return
	}
	defer kept.Release()
	status := h.status()
	b.of.AddEvent(stream.Event{Type: stream.StatusChange, State: status.State, Since: status.Since, Reason: status.Reason})
	b.of.Boundary = true
	say()
	b.reset(h.log)
	for _, r := range kept.Difference().Runs {
		b.addOf(r)
	}
	say()
}

// changeOver begins to send the reader what leads to v from what it holds, or all of v if that is
// not possible. It waits if v is older than what the reader holds.
func (s *Subscription) changeOver(b *Batch, v *version.Version) (begins bool) {
	h := s.options.Holds
	old := h.pin.Version()
	same := old != nil && old.SameOrder(v)
	if same && !old.NotAfter(v) {
		if v = s.log.awaited(v); !old.NotAfter(v) {
			return false
		}
	}
	defer s.drop()
	if !same || !s.differ(v, h) {
		s.outcome = OutcomeEpochChanged
		s.reset(b, v, stream.ResetEpochChanged)
	}
	return true
}

// differ begins to send the difference. It returns false if there is none.
func (s *Subscription) differ(v *version.Version, h *Holding) bool {
	kept, held := h.to(s.log, v), s.log.pins.Add(v, s.options.MinRate)
	if kept == nil || held == nil {
		kept.Release()
		s.log.pins.Release(held)
		return false
	}
	s.join(v)
	s.origin, s.fromThisLog, s.cursor, s.outcome, s.partial = h.origin, h.fromThisLog, v.Seq, OutcomeExact, true
	s.pin, s.walk = held, walk{active: true, v: v, purpose: h.purpose, difference: kept, midTransaction: true}
	return true
}

// Differs reports whether the reader was sent some of a difference, and not all of it, and no
// reset since. No id is sent then, whatever it is the id of: it would cover what the reader has
// to drop if it is cut off.
func (s *Subscription) Differs() bool { return s.partial }

// drop gives up what the reader holds of another part.
func (s *Subscription) drop() {
	if s.options.Holds != nil {
		s.options.Holds.Release()
		s.options.Holds = nil
	}
}

// fillDifference adds what leads from one part of the log to another.
func (w *walk) fillDifference(b *Batch) {
	runs := w.difference.Difference().Runs
	for ; w.at.Segment < len(runs) && !b.of.Full(); w.at.Segment++ {
		b.addOf(runs[w.at.Segment])
	}
}

// addOf adds a run of a difference.
func (b *Batch) addOf(r difference.Run) {
	if r.Deletes() {
		b.of.AddDeletes(r.Segment, r.From, r.To)
		return
	}
	b.of.AddUpserts(r.Segment, r.From, r.To)
}
