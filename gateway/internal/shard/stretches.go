package shard

import (
	"container/list"
	"maps"
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
// stream that asks for it within a while, so that one stream alone does not pay for it. Those that only one client
// has asked for go first when there is no room, and displace none of the others, so that no client can use positions that it invents
// against others.
//
// A file is kept while the budget has room for it, and afterwards until the streams that are
// being sent it have it. It counts towards the budget all the time.
//
// All methods may be called from any goroutine.
type stretches struct {
	budget int64 // static after construction: the most bytes of all files

	// Atomic.
	bytes       atomic.Int64  // of all files that are not closed
	files, sent atomic.Uint64 // for the metrics

	mu     sync.Mutex // guards the following fields
	shards int        // that carry streams
	made   map[stretchKey]*list.Element
	single list.List // of *stretch that one client has asked for: the most recently used first
	shared list.List // of the other ones
	asked  map[stretchKey]ask
	sweep  *time.Timer // nil: there is nothing to forget
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
	said int      // bytes of its chunks, without their heads
	sum  wire.Sum // of its text, if it is compressed

	of limits.Ref // a stream that has asked for it

	// Guarded by the mutex of stretches.
	used   time.Time
	shared bool // another client has asked for it too
}

const (
	// stretchesBudget is the most bytes of all files.
	stretchesBudget = 32 << 20
	// stretchBytes is from how many bytes on a stretch ends: as many as are written at once without one, so
	// that a slow stream holds as much, and has as long to take it.
	stretchBytes = outboxFull
	// leaseBytes is how many bytes that a connection takes are progress of a stream that holds a lease:
	// a flush, which is less than a stretch.
	leaseBytes = 64 << 10
	// stretchKept is how long a stretch is kept that nobody asks for, and how long it is remembered
	// that a stream has asked for one.
	stretchKept = 2 * time.Second
	// stretchAsks is for how many stretches that is remembered.
	stretchAsks = 4096
)

func newStretches(budget int64) *stretches {
	return &stretches{budget: budget, made: map[stretchKey]*list.Element{}, asked: map[stretchKey]ask{}}
}

// find returns a stretch for a stream, with its file held; nil if it does not exist. Then the caller is to make it,
// if makes is true.
func (s *stretches) find(key stretchKey, of limits.Ref, now time.Time) (found *stretch, makes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.made[key]; e != nil {
		found = e.Value.(*stretch)
		found.used = now
		s.sent.Add(1)
		found.file.Hold()
		s.use(e, found, of)
		return found, false
	}
	before, known := s.asked[key]
	if known = known && now.Sub(before.at) <= stretchKept; known && before.makes {
		return nil, false
	}
	if !known && len(s.asked) >= stretchAsks {
		clear(s.asked)
	}
	s.asked[key] = ask{now, of, known, known && !of.SameClient(before.of)}
	s.startSweep()
	return nil, known
}

// use puts a stretch in front of the others of its kind. s.mu is held.
func (s *stretches) use(e *list.Element, t *stretch, of limits.Ref) {
	switch {
	case t.shared:
		s.shared.MoveToFront(e)
	case t.of.SameClient(of):
		s.single.MoveToFront(e)
	default:
		s.single.Remove(e)
		t.shared = true
		s.made[t.key] = s.shared.PushFront(t)
	}
}

// put keeps a stretch that was made, with its bytes. Its file is held for the caller. It returns false if
// the stretch is not kept.
func (s *stretches) put(t *stretch, bytes [][]byte, now time.Time) bool {
	size := int64(wire.LengthOf(bytes))
	if !s.reserve(t, size) {
		return false // streams are still being sent the others
	}
	file, err := epoll.NewFile(bytes, func() { s.bytes.Add(-size) })
	if err != nil {
		s.bytes.Add(-size)
		return false // each stream is sent it from the log
	}
	s.files.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[t.key] != nil {
		file.Release()
		return false
	}
	t.file, t.used = file, now
	file.Hold()
	to := &s.single
	if t.shared {
		to = &s.shared
	}
	s.made[t.key] = to.PushFront(t)
	s.startSweep()
	return true
}

// reserve takes room in the budget for a stretch. It returns false if there is none.
func (s *stretches) reserve(t *stretch, size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.shared = s.asked[t.key].shared
	delete(s.asked, t.key)
	for s.bytes.Load()+size > s.budget {
		switch {
		case s.single.Len() > 0:
			s.drop(&s.single)
		case t.shared && s.shared.Len() > 0:
			s.drop(&s.shared)
		default:
			return false
		}
	}
	s.bytes.Add(size)
	return true
}

// drop forgets the stretch of a kind that was not used for longest. s.mu is held.
func (s *stretches) drop(of *list.List) {
	t := of.Remove(of.Back()).(*stretch)
	delete(s.made, t.key)
	t.file.Release()
}

// startSweep has what is not used forgotten in a while. s.mu is held.
func (s *stretches) startSweep() {
	if s.sweep == nil {
		s.sweep = time.AfterFunc(stretchKept, func() { s.forgetUnused(time.Now().Add(-stretchKept)) })
	}
}

// forgetUnused forgets what was not asked for since then.
func (s *stretches) forgetUnused(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range []*list.List{&s.single, &s.shared} {
		for e := kind.Back(); e != nil && e.Value.(*stretch).used.Before(since); e = kind.Back() {
			s.drop(kind)
		}
	}
	maps.DeleteFunc(s.asked, func(_ stretchKey, a ask) bool { return a.at.Before(since) })
	if s.sweep = nil; len(s.made)+len(s.asked) > 0 {
		s.startSweep()
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
	for _, kind := range []*list.List{&s.single, &s.shared} {
		for kind.Len() > 0 {
			s.drop(kind)
		}
	}
	clear(s.asked)
	if s.sweep != nil {
		s.sweep.Stop()
		s.sweep = nil
	}
}
