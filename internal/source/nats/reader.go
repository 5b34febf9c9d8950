package nats

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// reader turns the deliveries of one consumer into the calls of a Sink, and
// decides when the messages read are a state that existed.
//
// Owned by the goroutine that runs Watch.
type reader struct {
	// Static after construction.
	bucket asked
	sink   stream.Sink
	begin  state       // the bucket when it was first read
	old    *checkpoint // the checkpoint from before; nil: none
	filter string      // the subjects that are watched
	resume bool        // resumes behind a position, and does not start with the last message of each key
	stall  time.Duration
	meter  *meter // of the connection
	// complete is called when a snapshot is complete.
	complete func()

	checkpoint *checkpoint
	number     uint64 // of the last delivery
	at         uint64 // sequence of the last message
	floor      uint64 // nothing up to here will be sent any longer
	live       bool   // something was committed
	staged
	exactness

	deletesTo uint64    // the keys that vanished while a lower sequence was the last have been passed on
	vanished  *vanished // the same, and not passed on yet; nil: nothing

	stuck progress
	heard int64 // bytes received at the last check
}

// staged is what the next commit has.
type staged struct {
	dirty  bool // something
	whole  bool // of a snapshot: the server was queried for messages during the read
	missed bool // sequences are missing between the checkpoint and the first commit
	gap    bool // values may be missing since the last commit
	open   bool // inside a batch that was published as a whole
}

// exactness says whether the messages read up to reader.at are the state of the bucket there. See
// the package.
type exactness struct {
	exact  bool
	target uint64 // the newest message at the last query; 0: not queried
	clean  bool   // no sequence was missing since
}

// asked answers the requests of a reader.
type asked interface {
	state(ctx context.Context) (state, error)
	keys(ctx context.Context, filter string) (state, map[string]uint64, error)
	newest(ctx context.Context, subject string) (message, error)
}

// progress is the time since which the reader has been waiting for an existing
// message.
type progress struct {
	at    uint64
	heard int64 // bytes received
	since time.Time
}

// errRestored means that the bucket is an older one, restored from a backup.
var errRestored = fmt.Errorf("%w: the bucket was restored from a backup", stream.ErrUnresumable)

// take handles one delivery.
func (r *reader) take(d delivery) error {
	defer r.sink.Charge(-d.held)
	switch d.kind {
	case broken:
		return d.err
	case heartbeat:
		if d.number > r.number {
			return fmt.Errorf("%w: %d messages were sent and %d arrived", stream.ErrInvalid, d.number, r.number)
		}
		return nil
	}
	if d.number != r.number+1 {
		return fmt.Errorf("%w: message %d arrived after message %d", stream.ErrInvalid, d.number, r.number)
	}
	r.number = d.number
	switch {
	case d.sequence <= r.at || r.live && d.sequence <= r.floor:
		return fmt.Errorf("%w: sequence %d arrived after %d", stream.ErrOrder, d.sequence, max(r.at, r.floor))
	case r.old.contradicts(d):
		return errRestored
	}
	return r.apply(d)
}

// apply passes a change on. In a snapshot only the newest version of a key counts.
func (r *reader) apply(d delivery) error {
	r.judge(d)
	before := r.checkpoint.keys[d.key]
	r.checkpoint.note(d)
	r.at, r.dirty = d.sequence, true
	if r.live || r.resume {
		r.sink.SetTimestamp(time.Unix(0, d.time))
	}
	switch {
	case d.kind == written:
		return r.sink.Upsert(stream.Resource{Key: d.key, Revision: d.sequence, Value: d.value, Encoding: d.encoding})
	case !r.live && !r.resume && (before.sequence == 0 || before.deleted):
		return nil // the snapshot does not have the key
	}
	return r.sink.Delete(d.key, d.sequence)
}

// judge decides whether the state after this message existed.
func (r *reader) judge(d delivery) {
	follows := d.sequence == r.at+1
	r.gap = r.gap || !follows
	r.missed = r.missed || !r.live && !follows
	r.open = d.part
	r.clean = r.clean && follows
	reached := r.target > 0 && d.sequence >= r.target
	switch {
	case r.exact && follows:
	case d.pending == 0 && (r.live || reached), reached && r.clean:
		r.exact = true
	default:
		r.exact = false
	}
}

// settled reports whether the messages read may be committed.
func (r *reader) settled() bool { return r.exact && !r.open }

// commit commits the messages read, if there are any and they are settled.
func (r *reader) commit(ctx context.Context) error {
	if !r.settled() || r.live && !r.dirty && !r.vanished.due(r.at) {
		return nil
	}
	if !r.live {
		if err := r.holdsKeys(ctx, r.begin); err != nil {
			return err
		}
		if err := r.complements(ctx); err != nil || !r.settled() {
			return err
		}
	}
	if err := r.deleteVanished(); err != nil {
		return err
	}
	r.floor = max(r.at, r.floor)
	r.sink.DeletesCompleteTo(r.deletesTo)
	if r.gap {
		r.sink.Conflated() // a bucket may keep only the newest value, or not even that
	}
	r.gap = false
	if err := r.sink.Commit(r.floor); err != nil {
		return err
	}
	r.checkpoint.committed = r.floor
	caughtUp := !r.live
	r.live, r.dirty = true, false
	if caughtUp {
		return r.caughtUp()
	}
	return nil
}

// caughtUp handles the first commit. A snapshot implies it.
func (r *reader) caughtUp() error {
	old := r.old
	r.old = nil
	if r.resume {
		return r.sink.Status(stream.InSync, "")
	}
	r.checkpoint.replaces(old)
	r.complete()
	return nil
}

// complements is called before the first commit, which must be as new as the
// keys missing from it: the keys that vanished while nothing was read, or while
// the snapshot was read.
func (r *reader) complements(ctx context.Context) error {
	switch {
	case r.resume:
		return r.compareFirst(ctx)
	case r.whole:
		return nil
	}
	last, newest, err := r.head(ctx)
	if err != nil {
		return err
	}
	r.whole, r.floor = true, max(r.floor, last)
	if newest > r.at {
		r.target, r.clean, r.exact = newest, true, false
	}
	return nil
}

// head requests the last sequence, and that of the newest message: once that message
// has arrived, so has everything up to the last sequence.
func (r *reader) head(ctx context.Context) (last, newest uint64, err error) {
	now, err := r.bucket.state(ctx)
	if err != nil {
		return 0, 0, err
	}
	m, err := r.bucket.newest(ctx, r.filter)
	return now.last, m.sequence, err
}

// ask requests the newest message, to find out whether messages are outstanding.
func (r *reader) ask(ctx context.Context) error {
	newest, err := r.newest(ctx)
	if err != nil {
		return err
	}
	r.target, r.clean = newest, true
	if r.at >= newest {
		r.exact, r.open = true, false
	}
	return r.waiting(newest)
}

// newest returns the sequence of the newest message. The last sequence of the
// stream is not below that, and known without a search, but its message may have
// vanished: if it does not arrive, the server searches for it. Until the first
// commit it always searches, since a missing permission should be found then.
func (r *reader) newest(ctx context.Context) (uint64, error) {
	if r.begin.alone && r.live && (r.stuck.since.IsZero() || r.stuck.at != r.at) {
		now, err := r.bucket.state(ctx)
		return now.last, err
	}
	m, err := r.bucket.newest(ctx, r.filter)
	return m.sequence, err
}

// waiting detects a consumer that is alive but does not send existing messages.
func (r *reader) waiting(newest uint64) error {
	switch {
	case r.at >= newest:
		r.stuck = progress{}
	case r.stuck.since.IsZero() || r.stuck.at != r.at || r.meter.received.Load()-r.stuck.heard >= busy:
		r.stuck = progress{at: r.at, heard: r.meter.received.Load(), since: time.Now()}
	case time.Since(r.stuck.since) > r.stall:
		return fmt.Errorf("%w: the newest message has sequence %d, and nothing arrived after %d for %v",
			stream.ErrStalled, newest, r.at, r.stall)
	}
	return nil
}

// poll compares the bucket with the known keys.
func (r *reader) poll(ctx context.Context) error {
	now, err := r.bucket.state(ctx)
	switch {
	case err != nil:
		return err
	case !now.created.Equal(r.begin.created):
		return fmt.Errorf("%w: the bucket was deleted and recreated", stream.ErrUnresumable)
	case now.last < r.at:
		return errRestored
	}
	var newest message
	if now.last > r.at {
		if newest, err = r.bucket.newest(ctx, r.filter); err != nil {
			return err
		}
	}
	if err := r.waiting(newest.sequence); err != nil || newest.sequence > r.at || !r.live || !r.settled() {
		return err // outstanding messages are sent first
	}
	if now.last > r.floor {
		r.floor, r.dirty = now.last, true // progress
	}
	if err := r.holdsKeys(ctx, now); err != nil {
		return err
	}
	if err := r.compare(ctx, now); err != nil {
		return err
	}
	return r.commit(ctx)
}

// holdsKeys reports a bucket that looks empty, since its messages have subjects
// of no key: those of another bucket.
func (r *reader) holdsKeys(ctx context.Context, now state) error {
	if !now.held || len(r.checkpoint.keys) > 0 {
		return nil
	}
	m, err := r.bucket.newest(ctx, allSubjects)
	if err != nil || m.sequence == 0 || strings.HasPrefix(m.subject, now.prefix) {
		return err
	}
	return fmt.Errorf("no key is in the bucket, though messages are: the newest has the subject %.100q; want subjects that begin with %q, to which a subject transform can change those of another bucket",
		m.subject, now.prefix)
}

// compareFirst looks for keys that vanished while nothing was read.
func (r *reader) compareFirst(ctx context.Context) error {
	now, err := r.bucket.state(ctx)
	if err != nil {
		return err
	}
	if err := r.admit(now); err != nil {
		return err
	}
	if now.alone && !r.checkpoint.recalled && now.last <= max(r.at, r.floor) && now.keys == len(r.checkpoint.keys) {
		r.deletesCompleteTo(now.last)
		return nil
	}
	return r.sweep(ctx, now.last)
}

// compare looks for vanished keys, if their number indicates some, or is unknown.
func (r *reader) compare(ctx context.Context, now state) error {
	if now.alone {
		switch {
		case now.keys == len(r.checkpoint.keys):
			r.deletesCompleteTo(now.last)
			return nil
		case now.keys > len(r.checkpoint.keys):
			return fmt.Errorf("%w: the bucket has %d keys and %d arrived", stream.ErrUnresumable, now.keys, len(r.checkpoint.keys))
		}
	}
	return r.sweep(ctx, now.last)
}
