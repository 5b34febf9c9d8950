package consul

import (
	"github.com/hashicorp/consul/proto-public/pbresource"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// event handles one event of the watch. The end of its snapshot means nothing:
// it may come from a cache, or from a server that has only begun to load.
func (f *follower) event(e event) error {
	f.heard = true
	if f.unheard {
		// The list may have been read before the server began to watch.
		f.unheard = false
		f.list()
	}
	switch e := e.GetEvent().(type) {
	case *pbresource.WatchEvent_Upsert_:
		return f.observe(e.Upsert.GetResource(), f.upsert)
	case *pbresource.WatchEvent_Delete_:
		return f.observe(e.Delete.GetResource(), f.delete)
	}
	return nil
}

func (f *follower) observe(r *pbresource.Resource, take func(observed) error) error {
	t, err := f.source.config.read(r)
	if err != nil {
		return err
	}
	return take(t)
}

func (f *follower) upsert(t observed) error {
	if _, dead := f.dead[t.uid]; dead {
		return nil
	}
	if known, ok := f.objects[t.key]; ok && t.version <= known.version {
		return nil
	}
	if !f.live {
		return f.collect(t)
	}
	switch f.merge.Upserted(stream.Resource{Key: t.key, Revision: t.version}) {
	case adapter.Newer:
		return f.pass(t)
	case adapter.Doubtful:
		lives, err := f.settle(t)
		if err != nil || !lives {
			return err
		}
		return f.pass(t)
	}
	return nil
}

// collect handles an upsert that arrives before the first list.
func (f *follower) collect(t observed) error {
	r, err := t.resource()
	if err != nil {
		return err
	}
	if f.merge.Upserted(r) == adapter.Newer {
		f.objects[t.key] = t.object
	}
	return nil
}

// settle asks the server about the objects in doubt.
func (f *follower) settle(t observed) (lives bool, err error) {
	lives, err = f.conn.lives(t.key, t.uid, f.report)
	switch {
	case err != nil:
		return false, err
	case lives:
		f.merge.Confirm(stream.Resource{Key: t.key, Revision: t.version})
	default:
		f.dead[t.uid] = struct{}{}
	}
	return lives, nil
}

// pass passes on an upsert if it is newer than everything before.
func (f *follower) pass(t observed) error {
	checkpoint := &f.source.checkpoint
	if err := checkpoint.fits(&f.source.config, t); err != nil {
		return err
	}
	r, err := t.resource()
	if err != nil {
		return err
	}
	if err := f.sink.Upsert(r); err != nil {
		return err
	}
	f.objects[t.key] = t.object
	checkpoint.revision = t.version
	return f.sink.Commit(checkpoint.revision)
}

// delete handles a deletion, which is reported under the resource's last version.
func (f *follower) delete(t observed) error {
	delete(f.dead, t.uid)
	if known, ok := f.objects[t.key]; ok && known.uid != t.uid {
		return nil // of an earlier resource of the same name
	}
	if !f.merge.Deleted(t.key, t.version) {
		return nil
	}
	delete(f.objects, t.key)
	if !f.live {
		return nil
	}
	if f.audit != nil {
		f.audit.dropped[t.key] = t.version
	}
	if err := f.sink.Delete(t.key, t.version); err != nil {
		return err
	}
	return f.sink.Commit(f.source.checkpoint.revision)
}
