package consul

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// audit is a list that was read beside the live watch. It finds changes that the
// watch does not report: resources hidden by a narrowed policy, or lost events. It
// is evaluated some time after it was read, since the watch may be a little
// behind. Changes that the watch reports arrive in order, and are not taken from
// the list.
//
// Owned by the follower.
type audit struct {
	sent    uint64            // everything up to here was known when the list was requested
	objects map[string]object // in the list
	newest  uint64            // their newest version
	dropped map[string]uint64 // deleted by the watch since the list was requested: key → version
	waited  time.Duration
}

const (
	// auditAfter is how far the watch may lag behind a list.
	auditAfter = 2 * time.Second
	// how far it may lag while it is catching up.
	auditPatience = 30 * time.Second
)

func newAudit(sent uint64) *audit {
	return &audit{sent: sent, objects: map[string]object{}, dropped: map[string]uint64{}}
}

// read stores the list.
func (a *audit) read(c *Config, l listing) error {
	for _, r := range l.resources {
		t, err := c.read(r)
		if err != nil {
			return err
		}
		a.objects[t.key] = t.object
		a.newest = max(a.newest, t.version)
	}
	return nil
}

// judge compares the list with the current objects, if the watch has passed it.
func (f *follower) judge() error {
	a, checkpoint := f.audit, &f.source.checkpoint
	if checkpoint.revision < a.newest {
		return f.await(a)
	}
	for key, o := range a.objects {
		if f.objects[key].version >= o.version || a.dropped[key] >= o.version {
			continue
		}
		if err := checkpoint.fits(&f.source.config, observed{object: o, key: key}); err != nil {
			return err
		}
	}
	if err := f.drop(a.gone(f.objects)); err != nil {
		return err
	}
	f.audit = nil
	f.listedAll()
	return nil
}

// await gives the watch some more time.
func (f *follower) await(a *audit) error {
	if a.waited >= auditPatience {
		return fmt.Errorf("%w: %s: a list shows version %d, and the watch has not observed of it after %v",
			stream.ErrStalled, f.source.config.where(), a.newest, a.waited)
	}
	a.waited += auditAfter
	f.auditing.Reset(auditAfter)
	return nil
}

// gone returns the keys that the list does not show, although they were
// known before it was requested and have not changed since.
func (a *audit) gone(known map[string]object) (keys []string) {
	for key, o := range known {
		if _, shown := a.objects[key]; !shown && o.version <= a.sent {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// drop deletes, in one commit, the objects that vanished without an event.
func (f *follower) drop(keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	for _, key := range keys {
		version := f.objects[key].version
		f.merge.Deleted(key, version)
		delete(f.objects, key)
		if err := f.sink.Delete(key, version); err != nil {
			return err
		}
	}
	return f.sink.Commit(f.source.checkpoint.revision)
}
