package faults

import (
	"fmt"
	"slices"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// knowledge is the upstream's history, key by key, in order. A deletion is a
// Version without a value.
type knowledge struct {
	versions   map[string][]streamtest.Version
	unnumbered bool
}

func newKnowledge(u *upstream) *knowledge {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := &knowledge{versions: map[string][]streamtest.Version{}, unnumbered: unnumbered(u.rig.Source)}
	for _, o := range u.served() {
		for _, txn := range o.txns {
			k.add(txn)
		}
	}
	return k
}

func (k *knowledge) add(txn transaction) {
	for _, c := range txn.changes {
		v := versionOf(c)
		if c.Deleted {
			v.Revision = txn.revision
		}
		k.versions[c.Key] = append(k.versions[c.Key], v)
	}
}

// reading is a connection being checked.
type reading struct {
	*knowledge
	state     streamtest.State // the subscriber's knowledge
	vague     bool             // the knowledge is incomplete after an id inside a snapshot or a catch-up
	told      uint64           // up to this revision it knows everything
	deletesTo uint64           // except deletes without a revision, which it knows up to here
	joining   bool             // before the first end_of_snapshot
	snapshot  bool             // between reset and end_of_snapshot
	epoch     string           // "" before the first
}

// spurious returns the spurious events, as defined in the package comment.
func (k *knowledge) spurious(c *streamtest.Connection) (found []error) {
	r := reading{knowledge: k, state: streamtest.State{}, joining: true}
	if c.From != nil {
		r.state, r.epoch = c.From.State.Clone(), c.From.Position.Epoch
		r.vague, r.told, r.deletesTo = c.From.Position.Partial(), c.From.Position.AsOf, c.From.Position.DeletesCompleteTo()
	}
	for i := range c.Flushes {
		for _, e := range c.Flushes[i].Events {
			if why := r.event(e, c, i); why != "" {
				found = append(found, fmt.Errorf("spurious: %v: flush %d: %s", c, c.Flushes[i].Order, why))
			}
			r.state.Apply(e)
		}
		if m := c.Flushes[i].Mark; m != nil && !m.Position.Partial() {
			r.told = m.Position.AsOf
		}
	}
	return found
}

// epochAfter is the epoch of the events in a flush: that of the next id.
func epochAfter(c *streamtest.Connection, flush int) string {
	for _, f := range c.Flushes[flush:] {
		if f.Mark != nil {
			return f.Mark.Position.Epoch
		}
	}
	return ""
}

// event returns why an event of a flush is spurious; "" if it is not.
func (r *reading) event(e stream.Event, c *streamtest.Connection, flush int) string {
	switch e.Type {
	case stream.Reset:
		return r.reset(e, c, flush)
	case stream.EndOfSnapshot:
		r.joining, r.snapshot, r.vague = false, false, false
	case stream.Upsert:
		return r.upsert(e)
	case stream.Delete:
		return r.delete(e)
	}
	return ""
}

func (r *reading) reset(e stream.Event, c *streamtest.Connection, flush int) string {
	before, now, deletesTo := r.epoch, epochAfter(c, flush), r.deletesTo
	r.snapshot, r.vague, r.told = true, false, 0
	if now != "" {
		r.epoch = now
	}
	switch {
	case c.From == nil && before == "": // it came without an id
		return ""
	case before != now || now == "":
		return ""
	case r.joining && e.Reason == string(stream.ResetExpired) && deletesTo < c.Flushes[flush].Horizon:
		return ""
	}
	return fmt.Sprintf("reset (%s) within epoch %q", e.Reason, now)
}

func (r *reading) upsert(e stream.Event) string {
	key := e.Resource.Key
	sent := stateOf([]stream.Resource{e.Resource})[key]
	if !slices.Contains(r.versions[key], sent) {
		return fmt.Sprintf("%q never was %.60s at revision %d", key, sent.Value, sent.Revision)
	}
	if held, ok := r.state[key]; ok && held == sent && !r.snapshot && !r.vague {
		return fmt.Sprintf("%q is sent again at revision %d", key, sent.Revision)
	}
	return ""
}

func (r *reading) delete(e stream.Event) string {
	key := e.Resource.Key
	held, ok := r.state[key]
	switch {
	case !ok && (r.vague || r.joining && r.unnumbered):
		return ""
	case !ok && e.Resource.Revision > r.told &&
		slices.Contains(r.versions[key], streamtest.Version{Revision: e.Resource.Revision}):
		return "" // it was created and deleted, and only this is known of it
	case !ok:
		return fmt.Sprintf("%q is deleted at revision %d, and was not there; the subscriber has everything up to %d, upstream it was %v", key,
			e.Resource.Revision, r.told, r.versions[key][max(0, len(r.versions[key])-6):])
	}
	since := slices.Index(r.versions[key], held)
	gone := slices.ContainsFunc(r.versions[key][max(since, 0):], func(v streamtest.Version) bool { return v.Value == "" })
	if since < 0 || !gone {
		return fmt.Sprintf("%q is deleted, and upstream it was not", key)
	}
	return ""
}
