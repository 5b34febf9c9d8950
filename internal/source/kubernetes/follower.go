package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// follower is one running Watch call.
//
// Owned by the goroutine that runs Watch.
type follower struct {
	// Static after construction.
	source *Source
	client *client
	sink   stream.Sink

	place    stream.Resume // the order, and the position reached; revision 0: none
	seen     uint64        // the newest revision of the changes so far; 0: a snapshot is being read
	caughtUp bool          // this call has committed
	listed   time.Time     // when the newest snapshot was complete
	listedAt uint64        // its revision
	refused  error         // the error of a method of the sink
}

// run follows one watch after the other, until one does not end in good order.
func (f *follower) run(ctx context.Context) error {
	for {
		call, err := f.begin(ctx)
		if err != nil {
			return err
		}
		err = f.follow(call)
		call.close()
		switch {
		case expired(err):
			if err := f.startOver(err); err != nil {
				return err
			}
		case err != nil || f.hasty(call):
			return err
		}
	}
}

// hasty reports whether the server ended a watch immediately. Then ingest's
// back-off decides when to try again.
func (f *follower) hasty(call *watchCall) bool {
	return time.Since(call.opened) < time.Second
}

// startOver drops the position, since the server has compacted it. A server
// that compacts the revision of a list at once is not queried again
// immediately.
func (f *follower) startOver(why error) error {
	if f.place.Revision == f.listedAt && time.Since(f.listed) < time.Minute {
		return fmt.Errorf("%w: %w", stream.ErrUnresumable, why)
	}
	f.place.Revision = 0
	return nil
}

// begin returns a live watch, from the known position or after a snapshot. The
// server's position is requested before its name: a server that is starting up
// has not loaded all objects and permissions.
func (f *follower) begin(ctx context.Context) (*watchCall, error) {
	asked := time.Now()
	head, err := f.client.head(ctx)
	settled := settling + 4*time.Since(asked)
	if err != nil {
		return nil, err
	}
	if err := f.locate(ctx, head); err != nil {
		return nil, err
	}
	if f.place.Revision == 0 {
		return f.snapshot(ctx)
	}
	call, err := f.resume(ctx, head, settled)
	if expired(err) {
		return f.snapshot(ctx)
	}
	return call, err
}

// locate determines the order of a server whose revision is head. A position of
// another order, or beyond head, is discarded.
func (f *follower) locate(ctx context.Context, head uint64) error {
	epochs := &f.source.epochs
	epoch, err := epochs.name(ctx, f.client)
	if err != nil {
		return err
	}
	epoch = epochs.adopt(epoch, f.place.Epoch)
	if f.place.Epoch != epoch {
		f.place = stream.Resume{Epoch: epoch}
	}
	if known := max(f.place.Revision, epochs.reached[epoch]); head < known {
		f.place = stream.Resume{Epoch: epochs.wentBack(epoch)}
		f.source.config.Logger.Warn("the Kubernetes server was restored or replaced: starting over",
			"resource", f.source.config.name(), "served", known, "now", head)
	}
	return nil
}

// settling is how long a resumed watch must be quiet to be caught up, on a
// server that answers immediately.
const settling = 200 * time.Millisecond

// resume continues from the position. The server is at head, and silence for
// the time settled means that no more past events are to come.
func (f *follower) resume(ctx context.Context, head uint64, settled time.Duration) (*watchCall, error) {
	f.seen = f.place.Revision
	call, err := f.client.watch(ctx, f.client.query("resourceVersion", strconv.FormatUint(f.place.Revision, 10)))
	if err != nil || f.caughtUp {
		return call, err
	}
	if err := f.catchUp(call, head, settled); err != nil {
		call.close()
		return nil, err
	}
	return call, nil
}

// catchUp handles the changes since the position as one transaction: up to
// head, or until nothing arrives for the time settled.
func (f *follower) catchUp(call *watchCall, head uint64, settled time.Duration) error {
	reached := f.place.Revision
	quiet := time.NewTimer(settled)
	defer quiet.Stop()
	for reached < head {
		e, err := call.next(quiet.C)
		if errors.Is(err, errQuiet) || errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		at, err := f.apply(e)
		if err != nil {
			return err
		}
		reached = at.revision
		quiet.Reset(settled)
	}
	if err := f.commit(reached); err != nil {
		return err
	}
	return f.sinkError(f.sink.Status(stream.InSync, ""))
}

// follow passes events on until the watch ends; nil: in good order.
func (f *follower) follow(call *watchCall) error {
	for {
		e, err := call.next(nil)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at, err := f.apply(e)
		if err != nil {
			return err
		}
		if err := f.commit(at.revision); err != nil {
			return err
		}
	}
}

// commit ends a transaction. The known position is the committed one.
func (f *follower) commit(revision uint64) error {
	if revision < f.place.Revision {
		return fmt.Errorf("%w: resourceVersion %d after %d", stream.ErrOrder, revision, f.place.Revision)
	}
	if err := f.sinkError(f.sink.Commit(revision)); err != nil {
		return err
	}
	f.place.Revision, f.seen, f.caughtUp = revision, revision, true
	f.source.epochs.reach(f.place.Epoch, revision)
	return nil
}

// sinkError records that the sink ended the watch.
func (f *follower) sinkError(err error) error {
	if err != nil {
		f.refused = err
	}
	return err
}
