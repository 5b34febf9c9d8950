package streamtest

import (
	"cmp"
	"slices"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// repair acts as a client that resumes by digest, at the event that says what it has to have. It
// returns the events of a snapshot that would bring the client to what it holds then, by the revisions
// of the replica, which it does not learn of what it has already.
func (c *Connection) repair(e stream.Event) []stream.Event {
	want, err := digest.Parse(e.Digest)
	if err != nil {
		c.broke("%s: %v", describe(e), err)
		return []stream.Event{e}
	}
	theirs, ok := c.source.Digested(want)
	if !ok {
		c.broke("%s: the state is gone at once", describe(e))
		return []stream.Event{e}
	}
	mine := c.state.Clone()
	if got, known := mine.digest(); !known || got != e.Digest {
		c.fetch(mine, theirs)
		if got, known := mine.digest(); known && got != e.Digest {
			c.broke("%s: the digest is %s after what differs was read", describe(e), got)
		}
	}
	all := []stream.Event{{Type: stream.Reset, Watch: e.Watch, Reason: string(stream.ResetExpired)}}
	for key, v := range mine {
		r, exists, _ := theirs.Get(key)
		if !exists || ValueText(r.Value) != v.Value { // a fault, which the checkers find
			r = stream.Resource{Key: key, Revision: v.Revision, Value: []byte(v.Value)}
		}
		all = append(all, stream.Event{Type: stream.Upsert, Watch: e.Watch, Resource: r})
	}
	slices.SortFunc(all[1:], func(a, b stream.Event) int { return cmp.Compare(a.Resource.Revision, b.Resource.Revision) })
	e.Resumed, e.Verify = false, false
	return append(all, e)
}

// fetch makes a state that of a replica, and reads only the buckets that differ.
func (c *Connection) fetch(mine State, theirs *log.Digested) {
	table, ok := theirs.Table()
	if !ok {
		c.broke("the table of a state is gone at once")
		return
	}
	own := digest.NewTable(uint64(theirs.Count()))
	for key, v := range mine {
		own.Add(digest.OfKey(key), v.hash(key))
	}
	differing, err := own.Differing(table.Bytes())
	if err != nil {
		c.broke("%v", err)
	}
	for _, b := range differing {
		keys, _, _ := theirs.Keys(b, 0, theirs.Count())
		has := map[string]digest.Hash{}
		for _, k := range keys {
			has[k.Key] = k.Hash
			if v, held := mine[k.Key]; held && v.hash(k.Key) == k.Hash {
				continue
			}
			r, _, _ := theirs.Get(k.Key)
			mine[k.Key] = versionOf(r)
		}
		for key := range mine {
			if _, is := has[key]; !is && own.Bucket(digest.OfKey(key)) == b {
				delete(mine, key)
			}
		}
	}
}
