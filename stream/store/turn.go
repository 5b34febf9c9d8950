package store

import (
	"bytes"
	"errors"
	"sync"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// op is one write. It belongs to its writer until it is in the queue, and again once do has returned.
type op struct {
	// What is asked for.
	watch        *watch
	key          string
	value        []byte
	deletes      bool
	ifRevision   *uint64
	condition    func(old *stream.Resource) error // nil: none
	validateOnly bool

	// Decided by the writer whose turn it is.
	done    bool // nobody makes it any more
	made    bool // err says what became of it
	existed bool // the resource, before
	result  stream.Resource
	err     error
	change  log.Change
	grows   int64  // by how many bytes of keys and values
	old     uint64 // revision of the resource before; 0: there was none
}

// queue has the writes that wait for their turn.
type queue struct {
	mu  sync.Mutex
	ops []*op
}

func (q *queue) add(o *op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ops = append(q.ops, o)
}

const (
	// mostOps and mostBytes bound what one turn writes.
	mostOps   = 1024
	mostBytes = 8 << 20
)

// take removes the oldest writes, as many as one turn may write.
func (q *queue) take() []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.ops) && n < mostOps && bytes < mostBytes {
		bytes += len(q.ops[n].key) + len(q.ops[n].value)
		n++
	}
	taken := q.ops[:n:n]
	q.ops = q.ops[n:]
	return taken
}

// do makes a write. Whoever gets the turn makes all the writes that wait, so that they share the
// wait for the disk.
func (s *Store) do(o *op) error {
	s.queue.add(o)
	s.turn.Lock()
	defer s.turn.Unlock()
	for !o.done {
		s.make(s.queue.take())
	}
	if !o.made {
		return errUnmade
	}
	return o.err
}

// errUnmade is the error of a write whose turn ended in a panic.
var errUnmade = errors.New("the store failed while it made this write and others")

// make makes several writes, in their order. Each is a transaction of its own. The caller holds turn.
func (s *Store) make(ops []*op) {
	defer func() {
		for _, o := range ops {
			o.done = true // also after a panic, which a condition may cause
		}
	}()
	if s.disk == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, o := range ops {
			if s.decide(o, nil); o.changes() {
				s.commit(o)
			}
			o.made = true
		}
		return
	}
	changes := s.decideAll(ops)
	err := s.disk.write(changes, s.watches)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range changes {
		if err != nil {
			o.err, o.result, o.existed = err, stream.Resource{}, false
			continue
		}
		s.commit(o)
	}
	for _, o := range changes {
		o.watch.log.Unreserve()
	}
	for _, o := range ops {
		o.made = true
	}
}

// decideAll decides on several writes before any of them is on the disk, and returns those that
// change something.
func (s *Store) decideAll(ops []*op) (changes []*op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &planned{newest: map[place]*op{}, revision: s.revision, bytes: s.bytes}
	for _, o := range ops {
		if s.decide(o, p); o.changes() {
			if err := o.watch.log.Reserve([]log.Change{o.change}); err != nil {
				o.err = s.full(err)
				continue
			}
			p.add(o)
			changes = append(changes, o)
		}
	}
	return changes
}

// planned are writes that were decided on and are not made yet.
type planned struct {
	newest   map[place]*op
	revision uint64
	bytes    int64
}

type place struct {
	watch *watch
	key   string
}

func (p *planned) add(o *op) {
	p.newest[place{o.watch, o.key}] = o
	p.revision, p.bytes = o.change.Revision, p.bytes+o.grows
}

// before returns a resource as the writes before o leave it.
func (s *Store) before(o *op, p *planned) (old stream.Resource, exists bool) {
	if p != nil {
		if last := p.newest[place{o.watch, o.key}]; last != nil {
			return last.change.Resource, !last.change.Deleted
		}
	}
	return o.watch.log.Snapshot().Get(o.key)
}

// changes reports whether a write that was decided on is to be made.
func (o *op) changes() bool { return o.err == nil && o.change.Revision > 0 }

// decide decides what a write does after those that are planned; nil: there are none. The caller
// holds turn and mu.
func (s *Store) decide(o *op, p *planned) {
	o.watch = s.current(o.watch)
	revision, used := s.revision+1, s.bytes
	if p != nil {
		revision, used = p.revision+1, p.bytes
	}
	old, exists := s.before(o, p)
	if o.condition != nil {
		if o.err = o.condition(present(&old, exists)); o.err != nil {
			return
		}
	}
	if !exists {
		old = stream.Resource{}
	}
	if o.err = expect(o.key, o.ifRevision, old.Revision); o.err != nil {
		return
	}
	o.old = old.Revision
	if o.deletes {
		o.existed = exists
		if exists && !o.validateOnly {
			o.change = log.Change{Resource: stream.Resource{Key: o.key, Revision: revision}, Deleted: true}
			o.grows = -int64(len(o.key) + len(old.Value))
		}
		return
	}
	o.grows = int64(len(o.value) - len(old.Value))
	if !exists {
		o.grows += int64(len(o.key))
	}
	// A write that makes the store smaller is accepted even if the store is still
	// too large.
	if most := s.config.Load().MaxBytes; o.grows > 0 && used+o.grows > most {
		// The size would tell how long values are that the writer may not read.
		o.err = &stream.TooLargeError{What: "store", Limit: most}
		return
	}
	o.existed = exists
	o.result = stream.Resource{Key: o.key, Revision: revision, Value: o.value}
	if o.validateOnly {
		o.result.Value = bytes.Clone(o.value)
		return
	}
	o.change = log.Change{Resource: o.result}
}

// commit makes one change visible. The caller holds turn and mu.
func (s *Store) commit(o *op) {
	w := o.watch
	_, err := w.log.Commit([]log.Change{o.change}, o.change.Revision)
	if err != nil {
		o.err, o.result, o.existed = s.full(err), stream.Resource{}, false
		if s.disk != nil {
			s.disk.fail(err) // the file has what the log has not
		}
		return
	}
	s.keep(w)
	s.revision = o.change.Revision
	s.bytes += o.grows
	if !o.deletes {
		o.result, _ = w.log.Snapshot().Get(o.key) // the log's copy, not the writer's
	}
}

// full hides how much memory is used: the sizes would tell how long values are that the writer may
// not read.
func (s *Store) full(err error) error {
	if errors.Is(err, memory.ErrExceeded) {
		return &stream.TooLargeError{What: "memory of all watches", Limit: s.memory.Bytes()}
	}
	return err
}
