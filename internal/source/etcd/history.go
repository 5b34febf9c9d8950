package etcd

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// historyPatience is how long the first state may wait for the history.
	historyPatience = 5 * time.Second
	// historyBytes is about how much a member reads at once for the history. It reads everything
	// that changed, whatever the prefix, and meanwhile serves no other watch. There are
	// historyFewest revisions in any case.
	historyBytes  = 32 << 20
	historyFewest = 1000
	// historyMost is how many revisions the history has. The member reads the rest again after
	// each thousand.
	historyMost = 20_000
	// pastBytes is how much memory the deletes may take.
	pastBytes = 4 << 20
	// askEvery is how often the member is asked how far the history is. It is sent every 100 ms.
	askEvery = 50 * time.Millisecond
)

// history reads which keys were deleted before a watch began, as far as the member still knows and
// within limits. A second watch, from the past, is sent the deletes only, and is over once the
// member reports that it has come to where the other one began.
type history struct {
	// Static after construction.
	on    *connection
	keys  keyRange
	until uint64 // the revision at which the other watch began, or a later one
	most  int    // bytes of deletes
	sink  stream.Sink

	// Owned by run.
	past
	newest uint64 // revision of the last event, or the first one
}

// past is the deletes of a history.
type past struct {
	deletes []stream.Resource // by rising revision
	bytes   int
	after   uint64 // none is missing after it
	err     error  // instead of all other fields
}

// pastCost is what a delete takes besides its key: here, in a slice that is copied when it grows, and
// in what makes the snapshot of it.
const pastCost = 8 * int(unsafe.Sizeof(stream.Resource{}))

// recall begins to read the history of a watch that began at a revision, or before.
func (f *follower) recall(until uint64) {
	if !f.on.recalls || f.source.plain || f.source.config.NoHistory {
		return
	}
	h := &history{on: f.on, keys: f.source.keys, until: until, most: pastBytes, sink: f.sink}
	if most := f.sink.MaxBytes(); most > 0 {
		h.most = int(min(most/16, pastBytes))
	}
	f.merge.Remember()
	f.recalled, f.pasts = true, make(chan past, 1)
	pasts := f.pasts
	f.running.Go(func() { pasts <- h.run(f.ctx) })
}

// remember takes the history. Without one, the watch begins with the snapshot alone.
func (f *follower) remember(p past) error {
	f.pasts = nil
	if p.err == nil {
		f.merge.Before(p.deletes, p.after)
		f.sink.Charge(-int64(p.bytes))
	}
	return f.advance()
}

// run reads the history. A compaction meanwhile shortens it.
func (h *history) run(ctx context.Context) past {
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	from, err := h.first(ctx)
	for n := 0; err == nil && n < attempts; n++ {
		var compacted uint64
		switch compacted, err = h.follow(ctx, from); {
		case err != nil:
		case compacted == 0:
			return h.past
		case compacted >= h.until:
			h.begin(compacted + 1)
			return h.past
		}
		from = compacted + 1
	}
	h.count(0)
	return past{err: cmp.Or(err, rpctypes.ErrCompacted)}
}

// begin forgets what has been read.
func (h *history) begin(from uint64) {
	h.count(0)
	h.deletes, h.after, h.newest = nil, from-1, from
}

// count counts how many bytes are held.
func (h *history) count(bytes int) {
	h.sink.Charge(int64(bytes - h.bytes))
	h.bytes = bytes
}

// first returns the revision where the history begins. The number of keys tells how large the
// changes may be.
func (h *history) first(ctx context.Context) (uint64, error) {
	answer, err := h.on.client.Get(ctx, h.keys.start, clientv3.WithRange(h.keys.end), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	revisions := historyBytes * uint64(max(answer.Count, 0)) / h.on.inUse
	revisions = min(max(revisions, historyFewest), historyMost)
	return max(h.until, revisions) - revisions + 1, nil
}

// follow reads the history from a revision on. If the member no longer knows all of it, follow
// returns the revision up to which that was compacted.
func (h *history) follow(ctx context.Context, from uint64) (compacted uint64, err error) {
	h.begin(from)
	ctx, cancel := context.WithCancel(ctx)
	w, err := openWatch(ctx, h.on, h.keys, from, etcdserverpb.WatchCreateRequest_NOPUT)
	if err != nil {
		cancel()
		return 0, err
	}
	var running sync.WaitGroup
	running.Go(func() { w.receive(ctx) })
	defer running.Wait()
	defer cancel()
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ask.C:
			err = w.askProgress()
		case r := <-w.responses:
			var done bool
			done, err = h.receive(r)
			r.take()
			if done {
				return uint64(max(r.GetCompactRevision(), 0)), nil
			}
		}
		if err != nil {
			return 0, err
		}
	}
}

// receive handles a response. The watch is done once it has come to where the other one began, or
// if it began before what the member still knows.
func (h *history) receive(r response) (done bool, err error) {
	switch {
	case r.err != nil:
		return false, r.err
	case r.GetCompactRevision() != 0:
		if uint64(r.GetCompactRevision()) <= h.after {
			return false, fmt.Errorf("%w: what is newer than %d was compacted up to %d", stream.ErrInvalid, h.after, r.GetCompactRevision())
		}
		return true, nil
	case r.GetCanceled():
		return false, canceled(r.WatchResponse)
	case r.GetCreated():
		return false, nil
	}
	if err := h.on.check(r.GetHeader()); err != nil {
		return false, err
	}
	for _, e := range r.GetEvents() {
		if err := h.event(e); err != nil {
			return false, err
		}
	}
	return len(r.GetEvents()) == 0 && !r.GetFragment() && uint64(r.GetHeader().GetRevision()) >= h.until, nil
}

func (h *history) event(e *mvccpb.Event) error {
	if err := h.keys.check(e.GetKv()); err != nil {
		return err
	}
	revision := uint64(e.GetKv().GetModRevision())
	if revision < h.newest {
		return fmt.Errorf("%w: key %.80q was deleted at %d, after a change at %d", stream.ErrInvalid, e.Kv.Key, revision, h.newest)
	}
	h.newest = revision
	if e.Type != mvccpb.Event_DELETE {
		return nil // a member need not filter
	}
	h.deletes = append(h.deletes, stream.Resource{Key: h.keys.key(e.Kv.Key), Revision: revision})
	if h.count(h.bytes + pastCost + len(e.Kv.Key)); h.bytes > h.most {
		h.shorten()
	}
	return nil
}

// shorten forgets the older half of the deletes.
func (h *history) shorten() {
	drop := (len(h.deletes) + 1) / 2
	h.after = h.deletes[drop-1].Revision
	for drop < len(h.deletes) && h.deletes[drop].Revision == h.after {
		drop++
	}
	h.deletes = append([]stream.Resource(nil), h.deletes[drop:]...)
	bytes := 0
	for _, r := range h.deletes {
		bytes += pastCost + len(h.keys.prefix) + len(r.Key)
	}
	h.count(bytes)
}
