package nats

import (
	"context"
)

// vanished are keys of which the server no longer has a message, and whose deletes
// are still to be sent. A key may have vanished at any moment until the server had
// named all others. So it is deleted together with everything that the bucket had
// stored by then, or a reader that saw that state at another replica would miss
// it.
//
// Static after construction.
type vanished struct {
	keys   []string
	bound  uint64 // of the sequences that they had
	before uint64 // last sequence before the search for them
	last   uint64 // last sequence after that
	newest uint64 // newest message after that
	shared bool   // other replicas have the same epoch
}

// due reports whether all messages have arrived that the bucket had when the
// keys were missing.
func (v *vanished) due(at uint64) bool { return v != nil && at >= v.newest }

// sweep requests the names of all keys, and so finds those that vanished without a
// message. before is a sequence that was the last one before. A key whose message is still on
// its way may have vanished without being missed, so the keys are complete only up to what has
// arrived.
func (r *reader) sweep(ctx context.Context, before uint64) error {
	before = min(before, max(r.at, r.floor))
	now, present, err := r.bucket.keys(ctx, r.filter)
	if err != nil {
		return err
	}
	v := &vanished{bound: min(now.last, r.at), before: before, shared: !now.forgets}
	v.keys = r.checkpoint.vanished(present, now.prefix, v.bound)
	if r.checkpoint.recalled {
		r.checkpoint.learn(present, now.prefix)
	}
	if len(v.keys) == 0 {
		r.vanished = nil
		r.deletesCompleteTo(before)
		return nil
	}
	v.last, v.newest, err = r.head(ctx)
	r.vanished = v
	return err
}

// deletesCompleteTo records that the deletes of all keys that vanished below a sequence
// were passed on.
func (r *reader) deletesCompleteTo(sequence uint64) {
	if sequence > r.deletesTo {
		r.deletesTo, r.dirty = sequence, true
	}
}

// deleteVanished passes on the keys that vanished, once they are due.
func (r *reader) deleteVanished() error {
	v := r.vanished
	if !v.due(r.at) {
		return nil
	}
	r.vanished, r.floor = nil, max(r.floor, v.last)
	r.deletesCompleteTo(v.before)
	for _, key := range v.keys {
		was, still := r.checkpoint.keys[key]
		if !still || was.sequence > v.bound {
			continue // written again meanwhile
		}
		delete(r.checkpoint.keys, key)
		r.checkpoint.from = max(r.at, r.floor)
		if was.deleted {
			continue
		}
		r.gap = r.gap || v.shared // another replica may have seen a later value of the key
		if err := r.sink.Delete(key, 0); err != nil {
			return err
		}
	}
	return nil
}

// admit reports that a resumed reader may have missed keys that were written and
// vanished while nothing was read, if sequences are missing: another replica may
// have passed them on. Where keys vanish by themselves no other replica has the
// same epoch.
func (r *reader) admit(now state) error {
	if now.forgets || !r.missed && now.last == r.at {
		return nil
	}
	return r.sink.RaiseHorizon(now.last + 1)
}
