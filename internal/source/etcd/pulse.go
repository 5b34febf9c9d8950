package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// read is the result of reading the cluster's revision.
type read struct {
	header *etcdserverpb.ResponseHeader
	floor  uint64 // the progress of the watch when the read began
	err    error
}

// pulse checks that the member is alive: it asks the watch how far it is and, once
// there is a state, the cluster's majority for its revision. A watch whose member
// was paused, or whose network is gone, would be silent forever. And a watch
// continues after its permission is revoked; a read does not.
func (f *follower) pulse() error {
	if f.stalled() {
		return fmt.Errorf("%w: asked, and nothing received for %v", stream.ErrStalled, f.source.config.StallAfter)
	}
	if f.asked.IsZero() {
		f.asked = time.Now()
	}
	f.timer.Reset(f.pulseEvery())
	if f.committed && !f.reading {
		f.reading = true
		floor := f.observed
		f.running.Go(func() { f.reads <- f.readRevision(floor) })
	}
	return f.watch.askProgress()
}

// stalled reports whether an answer is overdue. An answer that waits to be
// processed counts as received: a large snapshot may take long to process.
func (f *follower) stalled() bool {
	return !f.asked.IsZero() && time.Since(f.asked) >= f.source.config.StallAfter && len(f.watch.responses) == 0
}

// pulseEvery is short while a state is held back for the answer, and no longer
// than until the answer is due.
func (f *follower) pulseEvery() time.Duration {
	if !f.committed && f.target != unknownTarget {
		return settleEvery
	}
	due := f.source.config.StallAfter - time.Since(f.asked)
	return min(f.source.config.pulse(), max(due, settleEvery))
}

func (f *follower) readRevision(floor uint64) read {
	ctx, cancel := context.WithTimeoutCause(f.ctx, f.source.config.StallAfter,
		fmt.Errorf("%w: no answer to a read within %v", stream.ErrStalled, f.source.config.StallAfter))
	defer cancel()
	header, err := f.on.read(ctx, f.source.keys)
	return read{header, floor, because(ctx, err)}
}

// errReplaced ends a follower that detects this while it runs.
var errReplaced = errors.New("the cluster's store was replaced")

// read compares the cluster with the known one.
func (f *follower) read(r read) error {
	f.reading = false
	switch {
	case r.err != nil:
		return r.err
	case f.on.check(r.header) != nil:
		return f.on.check(r.header)
	case uint64(r.header.GetRevision()) < r.floor:
		f.source.replace(f.on.cluster)
		return fmt.Errorf("%w: revision is %d, was %d", errReplaced, r.header.GetRevision(), r.floor)
	}
	return nil
}
