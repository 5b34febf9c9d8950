package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// unknownTarget means that a list is still being read.
const unknownTarget = math.MaxUint64

// settleEvery is how often the member is asked how far the watch is while the
// first state waits for that. A watch that began in the past is served by the
// member every 100 ms.
const settleEvery = 20 * time.Millisecond

// follower follows one watch of one member: with a concurrent list, or from a known
// revision.
//
// It knows the exact state from two revisions: the one up to which the watch has
// reported everything (observed), and the one at which that makes the state complete
// (target).
type follower struct {
	// Static after construction.
	source *Source
	on     *connection
	sink   stream.Sink
	epoch  string
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *watch
	pages  chan page // from the list, or of what the watch is to catch up with
	reads  chan read // from the reads of the revision
	pasts  chan past // from the history; nil: none is being read, or it has come. Owned by run

	from    uint64         // where the watch begins; 0: now
	tooLate *time.Timer    // ends a watch that is not created
	running sync.WaitGroup // receive, list, history and reads

	// Owned by run.
	merge *adapter.Merge // nil once, or where, changes go to the sink
	listed
	observed   uint64
	committed  bool
	checkpoint checkpoint // of the events passed on, which may be uncommitted
	requested
	received
}

// received is what has come of a response in fragments.
type received struct {
	parts []*mvccpb.Event
	held  int // bytes of parts, and of what is being handled
}

// listed is what the list, or a resumed watch, is compared with.
type listed struct {
	target uint64
	oldest uint64 // revision of the list's first page
	total  int64  // keys at target, from the last page
	newest uint64 // newest revision of these keys; of a resumed watch
}

// requested is what the member has been asked for.
type requested struct {
	asked    time.Time // when the unanswered request was made; zero: all are answered
	reading  bool      // a read of the revision is running
	created  bool      // the member has confirmed the watch
	recalled bool      // the history was asked for
	timer    *time.Timer
}

// open starts a follower; from 0 with a list.
func (s *Source) open(ctx context.Context, on *connection, epoch string, from uint64, sink stream.Sink) (*follower, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	tooLate := time.AfterFunc(s.config.RequestTimeout, func() { cancel(s.late()) })
	known, err := s.knownAt(ctx, on, from)
	var w *watch
	if err == nil {
		w, err = openWatch(ctx, on, s.keys, from)
	}
	if err != nil {
		tooLate.Stop()
		cancel(nil)
		return nil, because(ctx, err)
	}
	f := &follower{
		source: s, on: on, sink: sink, epoch: epoch, ctx: ctx, cancel: cancel, watch: w,
		pages: make(chan page), reads: make(chan read, 1),
		listed: listed{target: on.revision}, observed: from, checkpoint: known, from: from, tooLate: tooLate,
		requested: requested{timer: time.NewTimer(s.config.pulse())},
	}
	if from == 0 {
		f.merge, f.target = adapter.NewMerge(), unknownTarget
		f.merge.CountAt(sink)
	}
	f.running.Go(func() { w.receive(ctx) })
	return f, nil
}

// close ends the goroutines of the follower, and waits for them.
func (f *follower) close() {
	f.cancel(nil)
	f.timer.Stop()
	f.tooLate.Stop()
	f.running.Wait()
	f.hold(-f.held)
	if f.merge != nil {
		f.merge.Close()
	}
}

// run follows the watch to its end.
func (f *follower) run() error {
	for {
		if err := f.step(); err != nil {
			return err
		}
	}
}

// step waits for the next event and handles it.
func (f *follower) step() error {
	select {
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	case r := <-f.watch.responses:
		f.asked = time.Time{}
		return f.receive(r)
	case p := <-f.pages:
		return f.list(p)
	case r := <-f.reads:
		return f.read(r)
	case p := <-f.pasts:
		return f.remember(p)
	case <-f.timer.C:
		return f.pulse()
	}
}

// receive handles a response of the watch.
func (f *follower) receive(r response) error {
	defer r.take()
	switch {
	case r.err != nil:
		return f.refused(because(f.ctx, r.err)) // the end of the context also ends the stream
	case r.GetCanceled() || r.GetCompactRevision() != 0:
		return canceled(r.WatchResponse)
	case r.GetCreated() == f.created:
		return fmt.Errorf("%w: want the watch to be created first, and once", stream.ErrInvalid)
	case r.GetCreated():
		return f.begin(uint64(r.GetHeader().GetRevision()))
	}
	if err := f.on.check(r.GetHeader()); err != nil {
		return err
	}
	f.hold(r.bytes)
	f.parts = append(f.parts, r.GetEvents()...)
	if r.GetFragment() {
		return nil
	}
	events := f.parts
	f.parts = nil
	defer f.hold(-f.held)
	if len(events) > 0 {
		return f.events(events)
	}
	return f.progress(r.GetHeader())
}

// refused tells the sink of a message that is larger than what the watch may hold.
func (f *follower) refused(err error) error {
	if adapter.TooLarge(err) {
		stream.RefuseMessage(f.sink, f.on.largest)
	}
	return err
}

// hold counts bytes of messages that are held.
func (f *follower) hold(bytes int) {
	f.held += bytes
	f.sink.Charge(int64(bytes))
}

// begin handles the opening of the watch, when the cluster was at a revision.
func (f *follower) begin(now uint64) error {
	f.created = true
	if !f.tooLate.Stop() {
		return f.source.late()
	}
	l := &list{
		ctx: f.ctx, on: f.on, keys: f.source.keys, limit: f.source.limit, pages: f.pages,
		bytes: min(pageBytes, max(f.on.largest/2, 1)),
	}
	switch from := f.observed; {
	case f.merge != nil:
		f.recall(max(now, f.on.revision))
		f.running.Go(l.run)
		return nil
	case !f.on.ordered:
		f.target = unknownTarget
		f.running.Go(func() { l.again(from, clientv3.WithKeysOnly()) })
		return nil
	}
	f.timer.Reset(0)
	return f.advance()
}

// events handles whole transactions: a member never splits one across
// responses, except in fragments.
func (f *follower) events(events []*mvccpb.Event) error {
	for _, e := range events {
		if err := f.source.keys.check(e.GetKv()); err != nil {
			return err
		}
		if e.Type != mvccpb.Event_PUT && e.Type != mvccpb.Event_DELETE {
			return fmt.Errorf("%w: an event of type %d: want a put or a delete", stream.ErrInvalid, e.Type)
		}
	}
	for len(events) > 0 {
		revision, n := events[0].Kv.ModRevision, 1
		for n < len(events) && events[n].Kv.ModRevision == revision {
			n++
		}
		if err := f.transaction(uint64(revision), events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// transaction handles one. The watch starts at a known revision, so its first
// events may be known. Where the member cannot report how far its watch is, the list may
// have been ahead of it.
func (f *follower) transaction(revision uint64, events []*mvccpb.Event) error {
	switch {
	case revision > f.observed:
	case revision == f.from || !f.on.ordered:
		return nil
	default:
		return fmt.Errorf("%w: key %.80q changed at %d, after everything up to %d was reported",
			stream.ErrOrder, events[0].Kv.Key, revision, f.observed)
	}
	for _, e := range events {
		if err := f.change(e); err != nil {
			return err
		}
	}
	f.observed = revision
	return f.advance()
}

func (f *follower) change(e *mvccpb.Event) error {
	f.checkpoint.change(e)
	if e.Type == mvccpb.Event_DELETE {
		key, revision := f.source.keys.key(e.Kv.Key), uint64(e.Kv.ModRevision)
		if f.merge != nil {
			f.merge.Deleted(key, revision)
			return nil
		}
		return f.sink.Delete(key, revision)
	}
	r := f.source.resource(e.Kv)
	if f.merge != nil {
		f.merge.Upserted(r)
		return nil
	}
	return f.sink.Upsert(r)
}

// progress handles the answer to a request for progress. The revision in the
// header of other responses proves nothing.
func (f *follower) progress(h *etcdserverpb.ResponseHeader) error {
	revision := uint64(h.GetRevision())
	if !f.on.ordered || revision <= f.observed {
		return nil
	}
	f.observed = revision
	return f.advance()
}

// list handles a page.
func (f *follower) list(p page) error {
	if p.err != nil {
		return f.refused(p.err)
	}
	f.hold(p.bytes)
	defer f.hold(-p.bytes)
	if f.merge == nil {
		return f.behind(p)
	}
	for _, kv := range p.kvs {
		if err := f.source.keys.check(kv); err != nil {
			return err
		}
		f.checkpoint.see(kv, false)
		f.merge.Listed(f.source.resource(kv))
	}
	if f.oldest == 0 {
		f.oldest = p.revision
	}
	if !p.last {
		return nil
	}
	// The revisions of pages rise, since each is read by a majority.
	f.merge.Complete(f.oldest, true)
	f.target, f.total = p.revision, p.total
	f.timer.Reset(0)
	return f.advance()
}

// behind handles the changes since the position from which the watch resumes.
func (f *follower) behind(p page) error {
	f.newest = f.observed
	for _, kv := range p.kvs {
		f.newest = max(f.newest, uint64(kv.ModRevision))
	}
	f.target, f.total = p.revision, p.total
	f.timer.Reset(0)
	return f.advance()
}

// reached reports whether the events passed on make the state at the target, where
// the member cannot report how far its watch is: nothing in that state is newer
// than the reported events or the last page, and the number of known keys matches,
// so that none of them was deleted since.
func (f *follower) reached() bool {
	if f.on.ordered || f.committed || f.target == unknownTarget {
		return false
	}
	if f.merge != nil {
		return int64(f.merge.Len()) == f.total
	}
	return f.observed >= f.newest && f.checkpoint.count == f.total
}

// advance commits, if the changes so far make a complete state.
func (f *follower) advance() error {
	if f.observed < f.target && f.reached() {
		f.observed = f.target
	}
	if f.observed < f.target || f.pasts != nil {
		return nil
	}
	if err := f.commit(); err != nil {
		return err
	}
	f.committed, f.checkpoint.revision = true, f.observed
	f.source.checkpoint = f.checkpoint
	return nil
}

func (f *follower) commit() error {
	if f.merge == nil {
		err := f.sink.Commit(f.observed)
		if err == nil && !f.committed {
			err = f.sink.Status(stream.InSync, "") // it resumes, and has caught up
		}
		return err
	}
	f.checkpoint.count = int64(f.merge.Len())
	err := f.merge.Commit(f.sink, f.epoch, f.observed)
	f.merge.Close()
	f.merge, f.target = nil, 0
	if errors.Is(err, stream.ErrBehind) {
		f.source.replace(f.on.cluster)
	}
	return err
}
