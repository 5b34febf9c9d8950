package streamtest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// repair is what a subscriber that resumes by digest goes through at the event that says what it has to have: a request for
// the table of that state, and then requests for keys and for resources. Any replica may answer each. The subscriber reads
// nothing meanwhile, and has taken over neither the state nor its id.
type repair struct {
	flush     Flush // from the event on
	digest    digest.Digest
	state     State                      // what the subscriber holds, with what was read
	is        map[string]stream.Resource // the state, with the revisions, which a subscriber does not learn of what it has already
	differing []int                      // the buckets whose keys it has to read; nil before the table
	wanted    []string                   // the keys whose resources it has to read
}

// readAtOnce is how many keys or buckets a request names at most. There are few, so that there are several requests.
const readAtOnce = 3

// verify compares what the subscriber holds with the digest that the i-th event of a flush has. It returns false if they
// differ: the subscriber has to find out what.
func (c *Connection) verify(f *Flush, i int) bool {
	e := f.Events[i]
	want, err := digest.Parse(e.Digest)
	if err != nil {
		c.broke("%s: %v", describe(e), err)
		return true
	}
	theirs, ok := c.source.Digested(want)
	if !ok {
		c.broke("%s: the state is gone at once", describe(e))
		return true
	}
	r := &repair{digest: want, state: c.state.Clone(), is: map[string]stream.Resource{}}
	for b := range digest.Buckets(want.Count) {
		keys, _, _ := theirs.Keys(b, 0, theirs.Count())
		for _, k := range keys {
			r.is[k.Key], _, _ = theirs.Get(k.Key)
		}
	}
	if got, known := r.state.digest(); known && got == e.Digest {
		c.replace(f, i, r)
		return true
	}
	r.flush, c.repair, c.repaired = *f, r, true
	r.flush.Events, r.flush.versions = slices.Clone(f.Events[i:]), nil
	if i > 0 {
		f.Events = f.Events[:i]
		c.Flushes = append(c.Flushes, *f)
	}
	return false
}

// Repairing reports whether the subscriber finds out what differs between what it holds and what it has to have.
func (c *Connection) Repairing() bool { return c.repair != nil }

// Repair makes one of the requests for what differs, which a replica answers. It returns false if that does not have the
// state. After the last request the subscriber has the state.
func (c *Connection) Repair(at Subscriber) bool {
	r := c.repair
	theirs, ok := at.Digested(r.digest)
	if !ok {
		return false
	}
	switch {
	case r.differing == nil:
		ok = c.readTable(theirs)
	case len(r.differing) > 0:
		ok = r.readKeys(theirs)
	case len(r.wanted) > 0:
		ok = r.read(theirs)
	}
	if !ok || len(r.differing)+len(r.wanted) > 0 {
		return ok
	}
	if got, known := r.state.digest(); known && got != r.digest.String() {
		c.broke("%s: the digest is %s after what differs was read", describe(r.flush.Events[0]), got)
	}
	f := r.flush
	f.Order, f.At = c.history.nextOrder(), time.Now()
	c.replace(&f, 0, r)
	c.repair = nil
	c.recordFrom(&f, 0)
	return true
}

// readTable finds the buckets that differ.
func (c *Connection) readTable(theirs *log.Digested) bool {
	table, ok := theirs.Table()
	if !ok {
		return false
	}
	r := c.repair
	own := digest.NewTable(r.digest.Count)
	for key, v := range r.state {
		own.Add(digest.OfKey(key), v.hash(key))
	}
	differing, err := own.Differing(table.Bytes())
	if err != nil {
		c.broke("%v", err)
	}
	r.differing = append([]int{}, differing...)
	return true
}

// readKeys reads the keys of some buckets. It drops what the state does not have.
func (r *repair) readKeys(theirs *log.Digested) bool {
	some := r.differing[:min(readAtOnce, len(r.differing))]
	for _, b := range some {
		keys, _, ok := theirs.Keys(b, 0, theirs.Count())
		if !ok {
			return false
		}
		has := map[string]bool{}
		for _, k := range keys {
			has[k.Key] = true
			if v, held := r.state[k.Key]; !held || v.hash(k.Key) != k.Hash {
				r.wanted = append(r.wanted, k.Key)
			}
		}
		maps.DeleteFunc(r.state, func(key string, _ Version) bool {
			return !has[key] && digest.BucketOf(digest.OfKey(key), digest.Buckets(r.digest.Count)) == b
		})
	}
	r.differing = r.differing[len(some):]
	return true
}

// read reads some resources.
func (r *repair) read(theirs *log.Digested) bool {
	some := r.wanted[:min(readAtOnce, len(r.wanted))]
	for _, key := range some {
		found, _, ok := theirs.Get(key)
		if !ok {
			return false
		}
		r.state[key] = versionOf(found)
	}
	r.wanted = r.wanted[len(some):]
	return true
}

// replace puts in place of the i-th event those of a snapshot that would bring the subscriber to what it holds now, by the
// revisions of the state.
func (c *Connection) replace(f *Flush, i int, r *repair) {
	e := f.Events[i]
	all := []stream.Event{{Type: stream.Reset, Watch: e.Watch, Reason: string(stream.ResetExpired)}}
	for key, v := range r.state {
		one, exists := r.is[key]
		if !exists || ValueText(one.Value) != v.Value { // a fault, which the checkers find
			one = stream.Resource{Key: key, Revision: v.Revision, Value: []byte(v.Value)}
		}
		all = append(all, stream.Event{Type: stream.Upsert, Watch: e.Watch, Resource: one})
	}
	slices.SortFunc(all[1:], func(a, b stream.Event) int { return cmp.Compare(a.Resource.Revision, b.Resource.Revision) })
	e.Resumed, e.Verify = false, false
	f.Events = slices.Replace(f.Events, i, i+1, append(all, e)...)
	if f.versions = nil; c.history.Groups {
		f.withoutRevisions()
	}
}

// fork returns a copy for a subscriber that goes on by itself.
func (r *repair) fork() *repair {
	if r == nil {
		return nil
	}
	f := *r
	f.flush.Events, f.state, f.wanted = slices.Clone(r.flush.Events), r.state.Clone(), slices.Clone(r.wanted)
	return &f
}

// abandon ends a repair with the connection: only what came before the event was received.
func (c *Connection) abandon() {
	c.repair = nil
	if n := len(c.Flushes); n > 0 && c.Flushes[n-1].Mark == nil {
		c.Flushes[n-1].Cut = true
	}
}
