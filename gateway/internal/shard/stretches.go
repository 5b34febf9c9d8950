package shard

import (
	"container/list"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
)

// stretches keeps what many streams are sent from the same spot of a log on, such as a part of a
// snapshot: each in a memory file, rendered once for all of them. A stretch is made for the second
// stream that asks for it within a while, so that one stream alone does not pay for it, and a
// client cannot have any made by positions that it invents.
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
	recent list.List // of *stretch: the most recently used first
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
	at    time.Time
	makes bool // another one has asked since, and makes it
}

// stretch is the bytes of a stretch, as complete chunks.
type stretch struct {
	// Static after construction.
	log.Stretch
	key  stretchKey
	file *epoll.File
	said int      // bytes of its chunks, without their heads
	sum  wire.Sum // of its text, if it is compressed

	used time.Time // guarded by the mutex of stretches
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

// find returns a stretch, with its file held; nil if it does not exist. Then the caller is to make it,
// if makes is true.
func (s *stretches) find(key stretchKey, now time.Time) (found *stretch, makes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.made[key]; e != nil {
		found = e.Value.(*stretch)
		found.used = now
		s.sent.Add(1)
		found.file.Hold()
		s.recent.MoveToFront(e)
		return found, false
	}
	before, known := s.asked[key]
	if known = known && now.Sub(before.at) <= stretchKept; known && before.makes {
		return nil, false
	}
	if !known && len(s.asked) >= stretchAsks {
		clear(s.asked)
	}
	s.asked[key] = ask{now, known}
	s.startSweep()
	return nil, known
}

// put keeps a stretch that was made, with its bytes. Its file is held for the caller. It returns false if
// the stretch is not kept.
func (s *stretches) put(t *stretch, bytes [][]byte, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, t.key)
	size := int64(wire.LengthOf(bytes))
	for s.bytes.Load()+size > s.budget && s.recent.Len() > 0 {
		s.drop(s.recent.Back())
	}
	if s.made[t.key] != nil || s.bytes.Load()+size > s.budget {
		return false // streams are still being sent the others
	}
	file, err := epoll.NewFile(bytes, func() { s.bytes.Add(-size) })
	if err != nil {
		return false // each stream is sent it from the log
	}
	s.bytes.Add(size)
	s.files.Add(1)
	t.file, t.used = file, now
	file.Hold()
	s.made[t.key] = s.recent.PushFront(t)
	s.startSweep()
	return true
}

// drop forgets a stretch. s.mu is held.
func (s *stretches) drop(e *list.Element) {
	t := s.recent.Remove(e).(*stretch)
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
	for e := s.recent.Back(); e != nil && e.Value.(*stretch).used.Before(since); e = s.recent.Back() {
		s.drop(e)
	}
	maps.DeleteFunc(s.asked, func(_ stretchKey, a ask) bool { return a.at.Before(since) })
	if s.sweep = nil; s.recent.Len()+len(s.asked) > 0 {
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
	for s.recent.Len() > 0 {
		s.drop(s.recent.Back())
	}
	clear(s.asked)
	if s.sweep != nil {
		s.sweep.Stop()
		s.sweep = nil
	}
}
