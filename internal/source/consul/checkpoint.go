package consul

import (
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

// checkpoint is the last committed state. It outlives connections. If the next state
// is not consistent with it, the server has gone back in time: it was restored, or
// replaced by one that counts from the beginning; or the token's policy shows
// formerly hidden resources, whose versions are older than the served state.
//
// Owned by Watch.
type checkpoint struct {
	objects  map[string]object
	revision uint64 // everything up to here was committed
	broken   bool   // something was inconsistent
}

// newCheckpoint returns the checkpoint of a snapshot, which keeps only a part of the
// objects.
func newCheckpoint(state []stream.Resource, objects map[string]object) checkpoint {
	k := checkpoint{objects: make(map[string]object, len(state))}
	for _, r := range state {
		k.objects[r.Key] = objects[r.Key]
		k.revision = max(k.revision, r.Revision)
	}
	return k
}

// forget clears the checkpoint for another cluster, which need not be
// consistent with it.
func (k *checkpoint) forget() { *k = checkpoint{} }

// contradiction returns the inconsistency of a state; empty: there is none. An empty
// collection is consistent only if the server names its cluster: one without a name
// may have been replaced by another one that is still empty, in whose order
// everything is older.
func (k *checkpoint) contradiction(state map[string]object, named bool) string {
	switch {
	case k.broken:
		return "versions went back"
	case !named && len(state) == 0 && len(k.objects) > 0:
		return "nothing is left"
	}
	for key, o := range state {
		if what := k.misfit(key, o); what != "" {
			return what
		}
	}
	return ""
}

// misfit returns why a resource is inconsistent. An unknown resource must be
// newer than every known one.
func (k *checkpoint) misfit(key string, o object) string {
	if k.objects[key] == o || o.version > k.revision {
		return ""
	}
	return fmt.Sprintf("key %.80q is at version %d, but not so when everything up to %d was served", key, o.version, k.revision)
}

// fits is misfit for changes after the snapshot.
func (k *checkpoint) fits(c *Config, t observed) error {
	what := k.misfit(t.key, t.object)
	if what == "" {
		return nil
	}
	k.broken = true
	return fmt.Errorf("%w: %s: %s: the server was restored or replaced, or a policy shows more than before",
		stream.ErrBehind, c.where(), what)
}
