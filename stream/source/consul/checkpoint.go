package consul

import (
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

// checkpoint is what was committed last. It outlives connections. The next state must
// be consistent with it, or the server has gone back in time: it was restored, or
// replaced by one that counts from the beginning; or the token's policy shows what it
// hid, which in our order would have to be older than what was served.
//
// Owned by Watch.
type checkpoint struct {
	objects  map[string]object
	revision uint64 // everything up to here was committed
	broken   bool   // something was inconsistent
}

// newCheckpoint returns what to remember of a snapshot; objects hold more than that.
func newCheckpoint(state []stream.Resource, objects map[string]object) checkpoint {
	k := checkpoint{objects: make(map[string]object, len(state))}
	for _, r := range state {
		k.objects[r.Key] = objects[r.Key]
		k.revision = max(k.revision, r.Revision)
	}
	return k
}

// forget is for another cluster, with which nothing has to be consistent.
func (k *checkpoint) forget() { *k = checkpoint{} }

// contradiction returns what in a state is inconsistent; empty: nothing is. An empty
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

// misfit returns why a resource is inconsistent. What is not already known
// must be newer than everything that is.
func (k *checkpoint) misfit(key string, o object) string {
	if k.objects[key] == o || o.version > k.revision {
		return ""
	}
	return fmt.Sprintf("key %q is at version %d, but not so when everything up to %d was served", key, o.version, k.revision)
}

// fits is misfit for what comes after the snapshot.
func (k *checkpoint) fits(c *Config, t observed) error {
	what := k.misfit(t.key, t.object)
	if what == "" {
		return nil
	}
	k.broken = true
	return fmt.Errorf("%w: %s: %s: the server was restored or replaced, or a policy shows more than before",
		stream.ErrBehind, c.where(), what)
}
