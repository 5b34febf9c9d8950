package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/watchtide/watchtide/stream"
)

// read is the result of reading the cluster's revision.
type read struct {
	header *etcdserverpb.ResponseHeader
	floor  uint64 // what the watch had reported when the read began
	err    error
}

// pulse checks that the member is alive: it asks the watch how far it is and, once
// there is a state, the cluster's majority for its revision. A watch whose member
// was paused, or whose network is gone, would be silent forever. And a watch goes
// on after its permission was revoked; a read does not.
func (x *session) pulse() error {
	if x.stalled() {
		return fmt.Errorf("%w: asked, and nothing received for %v", stream.ErrStalled, x.source.config.StallAfter)
	}
	if x.asked.IsZero() {
		x.asked = time.Now()
	}
	x.timer.Reset(x.pulseEvery())
	if x.committed && !x.reading {
		x.reading = true
		floor := x.told
		x.running.Go(func() { x.reads <- x.readRevision(floor) })
	}
	return x.watch.askProgress()
}

// stalled reports whether an answer is overdue. An answer that waits to be
// processed counts as received: a large snapshot may have taken its time.
func (x *session) stalled() bool {
	return !x.asked.IsZero() && time.Since(x.asked) >= x.source.config.StallAfter && len(x.watch.responses) == 0
}

// pulseEvery is short while a state is held back for the answer, and no longer
// than until the answer is due.
func (x *session) pulseEvery() time.Duration {
	if !x.committed && x.target != unknownTarget {
		return settleEvery
	}
	due := x.source.config.StallAfter - time.Since(x.asked)
	return min(x.source.config.pulse(), max(due, settleEvery))
}

func (x *session) readRevision(floor uint64) read {
	ctx, cancel := context.WithTimeoutCause(x.ctx, x.source.config.StallAfter,
		fmt.Errorf("%w: no answer to a read within %v", stream.ErrStalled, x.source.config.StallAfter))
	defer cancel()
	header, err := x.on.read(ctx, x.source.keys)
	return read{header, floor, because(ctx, err)}
}

// errReplaced ends a session that learns of it while it runs.
var errReplaced = errors.New("the cluster's store was replaced")

// read compares the cluster with what is known of it.
func (x *session) read(r read) error {
	x.reading = false
	switch {
	case r.err != nil:
		return r.err
	case r.header.GetClusterId() != x.on.cluster:
		return fmt.Errorf("%w: cluster id is %x, was %x", errReplaced, r.header.GetClusterId(), x.on.cluster)
	case uint64(r.header.GetRevision()) < r.floor:
		x.source.replace(x.on.cluster)
		return fmt.Errorf("%w: revision is %d, was %d", errReplaced, r.header.GetRevision(), r.floor)
	}
	return nil
}
