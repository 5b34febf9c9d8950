package etcd

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchtide/watchtide/stream"
)

// unknownTarget means that a list is still being read.
const unknownTarget = math.MaxUint64

// settleEvery is how often the member is asked how far the watch is while the
// first state waits for that. A watch that began in the past is served by the
// member every 100 ms.
const settleEvery = 20 * time.Millisecond

// session is one watch of one member: with a list beside it, or from a known
// revision.
//
// It knows the exact state from two revisions: the one up to which the watch has
// reported everything (told), and the one at which that makes the state complete
// (target).
type session struct {
	// Static after construction.
	source *Source
	on     *member
	sink   stream.Sink
	epoch  string
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *watch
	pages  chan page // from the list, or of what the watch is to catch up with
	reads  chan read // from the reads of the revision

	running sync.WaitGroup // receive, list and reads

	// Owned by run.
	merge     *stream.Merge // nil once, or where, changes go to the sink
	target    uint64
	told      uint64
	oldest    uint64 // revision of the list's first page
	total     int64  // keys at target, as the last page says
	newest    uint64 // newest revision of these keys; of a resumed watch
	committed bool
	memory    memory    // of what was passed on, and partly not committed
	asked     time.Time // when the unanswered request was made; zero: all are answered
	reading   bool      // a read of the revision is running
	timer     *time.Timer
}

// open starts a session; from 0 with a list.
func (s *Source) open(ctx context.Context, on *member, epoch string, from uint64, sink stream.Sink) (*session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	tooLate := time.AfterFunc(s.config.RequestTimeout, func() { cancel(s.late()) })
	known, err := s.knownAt(ctx, on, from)
	var w *watch
	if err == nil {
		w, err = openWatch(ctx, on, s.keys, from)
	}
	if !tooLate.Stop() || err != nil {
		cancel(nil)
		return nil, because(ctx, err)
	}
	x := &session{
		source: s, on: on, sink: sink, epoch: epoch, ctx: ctx, cancel: cancel, watch: w,
		pages: make(chan page), reads: make(chan read, 1),
		target: on.revision, told: from, memory: known,
		timer: time.NewTimer(s.config.pulse()),
	}
	if from == 0 {
		x.merge, x.target = stream.NewMerge(), unknownTarget
		x.merge.CountAt(sink)
	}
	x.running.Go(func() { w.receive(ctx) })
	return x, nil
}

// close ends what the session started, and waits for it.
func (x *session) close() {
	x.cancel(nil)
	x.timer.Stop()
	x.running.Wait()
}

// run follows the watch to its end.
func (x *session) run() error {
	for {
		if err := x.step(); err != nil {
			return err
		}
	}
}

// step waits for the next event and handles it.
func (x *session) step() error {
	select {
	case <-x.ctx.Done():
		return context.Cause(x.ctx)
	case r := <-x.watch.responses:
		x.asked = time.Time{}
		return x.receive(r)
	case p := <-x.pages:
		return x.list(p)
	case r := <-x.reads:
		return x.read(r)
	case <-x.timer.C:
		return x.pulse()
	}
}

// receive handles a response of the watch.
func (x *session) receive(r response) error {
	switch {
	case r.err != nil:
		return r.err
	case r.GetCanceled() || r.GetCompactRevision() != 0:
		return canceled(r.WatchResponse)
	case r.GetCreated():
		return x.begin()
	case len(r.GetEvents()) > 0:
		return x.events(r.GetEvents())
	}
	return x.progress(r.GetHeader())
}

// begin handles the opening of the watch.
func (x *session) begin() error {
	l := &list{ctx: x.ctx, on: x.on, keys: x.source.keys, limit: x.source.limit, pages: x.pages}
	switch from := x.told; {
	case x.merge != nil:
		x.running.Go(l.run)
		return nil
	case !x.on.ordered:
		x.target = unknownTarget
		x.running.Go(func() { l.again(from, clientv3.WithKeysOnly()) })
		return nil
	}
	x.timer.Reset(0)
	return x.advance()
}

// events handles whole transactions: a member never spreads one over two
// responses, except in fragments.
func (x *session) events(events []*mvccpb.Event) error {
	for _, e := range events {
		if err := x.source.keys.check(e.GetKv()); err != nil {
			return err
		}
	}
	for len(events) > 0 {
		revision, n := events[0].Kv.ModRevision, 1
		for n < len(events) && events[n].Kv.ModRevision == revision {
			n++
		}
		if err := x.transaction(uint64(revision), events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// transaction handles one. The watch starts at a known revision, so some
// events are known, too.
func (x *session) transaction(revision uint64, events []*mvccpb.Event) error {
	if revision <= x.told {
		return nil
	}
	for _, e := range events {
		if err := x.change(e); err != nil {
			return err
		}
	}
	x.told = revision
	return x.advance()
}

func (x *session) change(e *mvccpb.Event) error {
	x.memory.change(e)
	if e.Type == mvccpb.Event_DELETE {
		key, revision := x.source.keys.key(e.Kv.Key), uint64(e.Kv.ModRevision)
		if x.merge != nil {
			x.merge.Deleted(key, revision)
			return nil
		}
		return x.sink.Delete(key, revision)
	}
	r := x.source.keys.resource(e.Kv)
	if x.merge != nil {
		x.merge.Upserted(r)
		return nil
	}
	return x.sink.Upsert(r)
}

// progress handles the answer to a request for progress. The revision in the
// header of other responses proves nothing.
func (x *session) progress(h *etcdserverpb.ResponseHeader) error {
	revision := uint64(h.GetRevision())
	if !x.on.ordered || revision <= x.told {
		return nil
	}
	x.told = revision
	return x.advance()
}

// list handles a page.
func (x *session) list(p page) error {
	if p.err != nil {
		return p.err
	}
	if x.merge == nil {
		return x.behind(p)
	}
	for _, kv := range p.kvs {
		if err := x.source.keys.check(kv); err != nil {
			return err
		}
		x.memory.see(kv, false)
		x.merge.Listed(x.source.keys.resource(kv))
	}
	if x.oldest == 0 {
		x.oldest = p.revision
	}
	if !p.last {
		return nil
	}
	// The revisions of pages rise, since each is read by a majority.
	x.merge.Complete(x.oldest, true)
	x.target, x.total = p.revision, p.total
	x.timer.Reset(0)
	return x.advance()
}

// behind handles what changed since the position from which the watch resumes.
func (x *session) behind(p page) error {
	x.newest = x.told
	for _, kv := range p.kvs {
		x.newest = max(x.newest, uint64(kv.ModRevision))
	}
	x.target, x.total = p.revision, p.total
	x.timer.Reset(0)
	return x.advance()
}

// reached reports whether what was passed on is the state at the target, where the
// member cannot be asked how far its watch is: nothing in that state is newer than
// what was reported, or what the last page showed, and the number of known keys
// matches, so that none of them was deleted since.
func (x *session) reached() bool {
	if x.on.ordered || x.committed || x.target == unknownTarget {
		return false
	}
	if x.merge != nil {
		return int64(x.merge.Len()) == x.total
	}
	return x.told >= x.newest && x.memory.count == x.total
}

// advance commits, if the changes so far make a complete state.
func (x *session) advance() error {
	if x.told < x.target && x.reached() {
		x.told = x.target
	}
	if x.told < x.target {
		return nil
	}
	if err := x.commit(); err != nil {
		return err
	}
	x.committed, x.memory.revision = true, x.told
	x.source.memory = x.memory
	return nil
}

func (x *session) commit() error {
	if x.merge == nil {
		err := x.sink.Commit(x.told)
		if err == nil && !x.committed {
			err = x.sink.Status(stream.InSync, "") // it resumes, and has caught up
		}
		return err
	}
	x.memory.count = int64(x.merge.Len())
	err := x.merge.Commit(x.sink, x.epoch, x.told)
	x.merge.Close()
	x.merge, x.target = nil, 0
	if errors.Is(err, stream.ErrBehind) {
		x.source.replace(x.on.cluster)
	}
	return err
}
