package shard

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
)

// stretches keeps what many streams are sent from the same spot of a log on, such as a part of a
// snapshot: each in a memory file, rendered once for all of them. A stretch is made for the second
// stream that asks for it within a while, so that one stream alone does not pay for it.
//
// Those that only one client has asked for take half of the room at most, go first when there is no room, and displace
// none of the others. So no client can use positions that it invents against others.
//
// A stretch is dropped when it was not asked for in a while, or when others need the room. Its file exists until the streams
// that are being sent it have it, and takes room until then: see [stretchRoom].
//
// All methods may be called from any goroutine.
type stretches struct {
	room stretchRoom

	made, sent atomic.Uint64 // for the metrics

	mu      sync.RWMutex // guards the following fields
	shards  int          // that carry streams
	kept    map[stretchKey]*stretch
	dropped []*stretch // whose files may still have holders
	asked   map[stretchKey]ask
	askedBy map[int32]int // how many of these each client asked for first
	sweep   *time.Timer   // nil: there is nothing to forget
}

// stretchKey names a stretch: where it is, and the form in which it is sent.
type stretchKey struct {
	spot   log.Spot
	format frame.Format
	coding wire.Coding
	bare   bool
}

// ask is a stretch that one stream has asked for.
type ask struct {
	at     time.Time
	of     limits.Ref // the first one
	makes  bool       // another one has asked since, and makes it
	shared bool       // that is of another client
}

// stretch is the bytes of a stretch, as complete chunks.
type stretch struct {
	// Static after construction.
	log.Stretch
	key  stretchKey
	file *epoll.File
	said int        // bytes of its chunks, without their heads
	sum  wire.Sum   // of its text, if it is compressed
	of   limits.Ref // a stream that has asked for it

	used atomic.Int64 // when it was last asked for, in nanoseconds
	room stretchShare
}

const (
	// stretchesBudget is the most bytes that the files take of stretches that are not late.
	stretchesBudget = 32 << 20
	// stretchBytes is from how many bytes on a stretch ends: as many as are written at once without one, so
	// that a slow stream holds as much, and has as long to take it.
	stretchBytes = outboxFull
	// leaseBytes is how many bytes that a connection takes are progress of a stream that holds a lease:
	// a flush, which is less than a stretch.
	leaseBytes = 64 << 10
	// stretchKept is how long a stretch is kept that is not asked for, and how long it is remembered
	// that a stream has asked for one.
	stretchKept = 2 * time.Second
	// stretchLate is how long a stretch was not asked for when the streams that still hold its file are late.
	stretchLate = 10 * time.Second
	// stretchAsks is for how many stretches it is remembered that a stream has asked for one, and
	// stretchAsksOfClient for how many of them that can be the same client.
	stretchAsks, stretchAsksOfClient = 4096, 512
)

// newStretches returns an empty set. Its files have up to that many bytes, and half as many beside that for late streams. files is
// how many there may be in all.
func newStretches(budget int64, files int) *stretches {
	return &stretches{
		room: newStretchRoom(budget, files),
		kept: map[stretchKey]*stretch{}, asked: map[stretchKey]ask{}, askedBy: map[int32]int{},
	}
}

// find returns a stretch for a stream, with its file held; nil if it does not exist. Then the caller is to make it,
// if makes is true.
func (s *stretches) find(key stretchKey, of limits.Ref, now time.Time) (found *stretch, makes bool) {
	s.mu.RLock()
	found = s.hold(key, of, now)
	s.mu.RUnlock()
	if found != nil {
		return found, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found = s.hold(key, of, now); found != nil {
		return found, false
	}
	return nil, s.ask(key, of, now)
}

// hold returns a stretch that is kept, with its file held; nil if it does not exist. s.mu is held, at least for reading.
func (s *stretches) hold(key stretchKey, of limits.Ref, now time.Time) *stretch {
	found := s.kept[key]
	if found == nil {
		return nil
	}
	found.used.Store(now.UnixNano())
	if !found.room.shared.Load() && !found.of.SameClient(of) {
		s.room.share(&found.room)
	}
	s.sent.Add(1)
	found.file.Hold()
	return found
}

// ask remembers that a stream has asked for a stretch that does not exist. It reports whether the stream is to make it. s.mu is
// held.
func (s *stretches) ask(key stretchKey, of limits.Ref, now time.Time) (makes bool) {
	before, known := s.asked[key]
	switch {
	case known && now.Sub(before.at) > stretchKept:
		s.forgetAsk(key)
	case known && before.makes:
		return false
	case known:
		s.asked[key] = ask{now, before.of, true, !of.SameClient(before.of)}
		return true
	}
	if len(s.asked) >= stretchAsks || s.askedBy[of.Client()] >= stretchAsksOfClient {
		return false
	}
	s.asked[key] = ask{at: now, of: of}
	s.askedBy[of.Client()]++
	s.startSweep()
	return false
}

// forgetAsk forgets that a stream has asked for a stretch. s.mu is held.
func (s *stretches) forgetAsk(key stretchKey) {
	one, known := s.asked[key]
	if !known {
		return
	}
	delete(s.asked, key)
	if client := one.of.Client(); s.askedBy[client] > 1 {
		s.askedBy[client]--
	} else {
		delete(s.askedBy, client)
	}
}

// put keeps a stretch that was made, with its bytes. Its file is held for the caller. It returns false if
// the stretch is not kept.
func (s *stretches) put(t *stretch, bytes [][]byte, now time.Time) bool {
	if !s.reserve(t, wire.LengthOf(bytes)) {
		return false // streams are still being sent the others
	}
	file, err := epoll.NewFile(bytes, func() { s.room.leave(&t.room) })
	if err != nil {
		s.room.leave(&t.room)
		return false // each stream is sent it from the log
	}
	s.made.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[t.key] != nil {
		file.Release()
		return false
	}
	t.file = file
	t.used.Store(now.UnixNano())
	file.Hold()
	s.kept[t.key] = t
	s.startSweep()
	return true
}

// reserve takes room for the file of a stretch, of which so many bytes are sent. It returns false if there is none.
func (s *stretches) reserve(t *stretch, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.room.shared.Store(s.asked[t.key].shared)
	s.forgetAsk(t.key)
	for !s.room.enter(&t.room, size) {
		least := s.leastUsed(t.room.shared.Load())
		if least == nil {
			return false
		}
		s.drop(least)
	}
	return true
}

// leastUsed returns the stretch that goes first: of those that one client has asked for the one that was not used for
// longest, or else, if that is allowed, of the others; nil: there is none. s.mu is held.
func (s *stretches) leastUsed(ofAll bool) (least *stretch) {
	for _, t := range s.kept {
		shared := t.room.shared.Load()
		switch {
		case shared && !ofAll:
		case least == nil || least.room.shared.Load() && !shared:
			least = t
		case least.room.shared.Load() == shared && t.used.Load() < least.used.Load():
			least = t
		}
	}
	return least
}

// drop forgets a stretch that is kept. s.mu is held.
func (s *stretches) drop(t *stretch) {
	delete(s.kept, t.key)
	if t.file.Release(); s.room.holds(&t.room, false) {
		s.dropped = append(s.dropped, t)
	}
}

// startSweep has what is not used forgotten in a while. s.mu is held.
func (s *stretches) startSweep() {
	if s.sweep == nil {
		s.sweep = time.AfterFunc(stretchKept, func() { s.forgetUnused(time.Now()) })
	}
}

// forgetUnused forgets what was not asked for in a while, and finds the streams that are late.
func (s *stretches) forgetUnused(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unused := now.Add(-stretchKept)
	for _, t := range s.kept {
		if t.used.Load() < unused.UnixNano() {
			s.drop(t)
		}
	}
	for key, a := range s.asked {
		if a.at.Before(unused) {
			s.forgetAsk(key)
		}
	}
	s.findLate(now.Add(-stretchLate))
	if s.sweep = nil; len(s.kept)+len(s.asked)+len(s.dropped) > 0 {
		s.startSweep()
	}
}

// findLate moves the files that late streams hold to the room for these: of stretches that were dropped, and not asked for
// since then. If these are too many, some are taken away from the streams, which end: those first that only one client has
// asked for, and the oldest of these. s.mu is held.
func (s *stretches) findLate(since time.Time) {
	held := s.dropped[:0]
	for _, t := range s.dropped {
		if s.room.holds(&t.room, t.used.Load() < since.UnixNano()) {
			held = append(held, t)
		}
	}
	clear(s.dropped[len(held):])
	s.dropped = held
	for _, shared := range []bool{false, true} {
		for _, t := range s.dropped {
			if t.room.shared.Load() == shared && s.room.crowdedBy(&t.room) {
				t.file.TakeAway()
			}
		}
	}
}

// enter is called when a shard begins to carry streams.
func (s *stretches) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards++
}

// leave is called when a shard has no stream any more. Once there is none at all, everything is forgotten.
func (s *stretches) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shards--; s.shards > 0 {
		return
	}
	for _, t := range s.kept {
		s.drop(t)
	}
	s.dropped = nil // no stream holds them
	clear(s.asked)
	clear(s.askedBy)
	if s.sweep != nil {
		s.sweep.Stop()
		s.sweep = nil
	}
}
