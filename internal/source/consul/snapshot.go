package consul

import (
	"github.com/watchtide/watchtide/stream"
)

// listed handles a complete list: the first is the snapshot, those after it
// are audits.
func (f *follower) listed(l listing) error {
	f.sink.Charge(int64(l.bytes))
	defer f.sink.Charge(-int64(l.bytes))
	f.again, f.unheard = f.again || l.early && f.heard, l.early && !f.heard
	if f.live {
		f.auditing.Reset(auditAfter)
		return f.audit.read(&f.source.config, l)
	}
	if err := f.snapshot(l); err != nil {
		return err
	}
	f.listedAll()
	return nil
}

// listedAll handles a list once it is fully processed.
func (f *follower) listedAll() {
	f.listing = false
	f.relist.Reset(f.source.config.untilRelist())
	if f.again {
		f.list()
	}
}

// snapshot commits the first list, merged with the events of the watch so far.
func (f *follower) snapshot(l listing) error {
	f.named = l.cluster != ""
	if f.source.epochs.enter(l.cluster, f.at) {
		f.source.checkpoint.forget()
	}
	newest := uint64(0)
	for _, r := range l.resources {
		t, err := f.source.config.read(r)
		if err != nil {
			return err
		}
		newest = max(newest, t.version)
		if err := f.shown(t); err != nil {
			return err
		}
	}
	if err := f.complete(newest); err != nil {
		return err
	}
	return f.commit()
}

// shown handles one resource of the first list.
func (f *follower) shown(t observed) error {
	if known, ok := f.objects[t.key]; ok && t.version <= known.version {
		f.merge.Listed(stream.Resource{Key: t.key, Revision: t.version})
		return nil
	}
	r, err := t.resource()
	if err != nil {
		return err
	}
	if f.merge.Listed(r) {
		f.objects[t.key] = t.object
	}
	return nil
}

// complete ends the list. Objects that the watch reported and the list does not
// show are looked up.
func (f *follower) complete(newest uint64) error {
	doubtful := f.merge.Complete(newest, false)
	for _, r := range doubtful {
		uid := f.objects[r.Key].uid
		lives, err := f.conn.lives(r.Key, uid, f.report)
		switch {
		case err != nil:
			return err
		case lives:
			f.merge.Confirm(r)
		default:
			f.dead[uid] = struct{}{}
		}
	}
	return nil
}

// commit sends the snapshot, in the order that continues or in a new one.
func (f *follower) commit() error {
	var state gathering
	if err := f.merge.Commit(&state, "", 0); err != nil {
		return err
	}
	checkpoint := &f.source.checkpoint
	next := newCheckpoint(state.resources, f.objects)
	if checkpoint.contradiction(next.objects, f.named) != "" {
		f.source.epochs.renew(next.objects)
	} else {
		// The newest resource may have been deleted since.
		next.revision = max(next.revision, checkpoint.revision)
	}
	if err := f.send(state.resources, next.revision); err != nil {
		return err
	}
	*checkpoint, f.objects, f.live = next, next.objects, true
	return nil
}

func (f *follower) send(state []stream.Resource, revision uint64) error {
	if err := f.sink.Reset(f.source.epochs.name()); err != nil {
		return err
	}
	for _, r := range state {
		if err := f.sink.Upsert(r); err != nil {
			return err
		}
	}
	return f.sink.Commit(revision)
}

// gathering is a [stream.Sink] that buffers a snapshot: before it is sent it must
// be checked against the previous one.
type gathering struct {
	stream.PlainSink
	resources []stream.Resource
}

// Upsert implements [stream.Sink].
func (g *gathering) Upsert(r stream.Resource) error {
	g.resources = append(g.resources, r)
	return nil
}

// Reset implements [stream.Sink].
func (*gathering) Reset(string) error { return nil }

// Delete implements [stream.Sink].
func (*gathering) Delete(string, uint64) error { return nil }

// Commit implements [stream.Sink].
func (*gathering) Commit(uint64) error { return nil }

// Status implements [stream.Sink].
func (*gathering) Status(stream.State, string) error { return nil }
