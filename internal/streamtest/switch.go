package streamtest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// switching is the state of a connection while it switches to another part of a watch.
type switching struct {
	held    State // what the subscriber has of the former part
	events  []stream.Event
	markers []string // in the bytes of the upserts, if the history hides something
}

// Switch ends the connection, and returns the one that its subscriber has from then on, to
// another part of the watch, whose history is h. The difference is checked when it is received.
// Then it is recorded as a snapshot of all that the subscriber has, so that the checkers
// compare that with the part.
func (c *Connection) Switch(h *History, to Subscriber, d *log.Differences) *Connection {
	next := &Connection{Client: c.Client, Replica: c.Replica, Slow: c.Slow, Opened: time.Now()}
	holds := c.sub.Holds(d)
	next.history, next.source = h, to
	next.state = State{}
	if holds != nil {
		next.state = c.state.Clone()
		next.switches = &switching{held: c.state.Clone()}
	}
	next.sub = to.Subscribe(log.SubscribeOptions{Holds: holds})
	c.Close()
	h.Add(next)
	return next
}

// Differs reports whether the connection began with a difference.
func (c *Connection) Differs() bool { return c.differs }

// readDifference adds a flush to what was received of a difference. A snapshot may take its
// place.
func (c *Connection) readDifference(f *Flush) {
	s := c.switches
	if reset := slices.IndexFunc(f.Events, isReset); reset >= 0 {
		c.switches = nil
		f.Events[reset].Reason = string(stream.ResetInitial) // it is the first one of its history
		c.record(f)
		return
	}
	for i, e := range f.Events {
		c.checkDifference(e)
		s.events = append(s.events, e)
		f.apply(c.state, i)
		c.remember(f, i)
	}
	c.checkMarkers(f)
	if !c.batch.Boundary() || f.Cut || len(s.events) == 1 && s.events[0].Type == stream.StatusChange {
		return
	}
	last := s.events[len(s.events)-1]
	if last.Type != stream.Bookmark {
		c.broke("an id within a difference, after %s", describe(last))
	}
	c.switches = nil
	f.markers = s.markers
	c.asSnapshot(f, last.Revision)
	c.differs = true
	sent := c.sent
	c.record(f)
	c.sent = sent // not what the snapshot is made of
}

// checkDifference checks one event of a difference, before it is applied.
func (c *Connection) checkDifference(e stream.Event) {
	s := c.switches
	upserts := slices.ContainsFunc(s.events, func(e stream.Event) bool { return e.Type == stream.Upsert })
	held, holds := c.state[e.Resource.Key]
	switch {
	case len(s.events) == 0 && (e.Type != stream.StatusChange || e.State != stream.CatchingUp):
		c.broke("a difference begins with %s, not with a status (catching_up)", describe(e))
	case e.Type == stream.Delete && upserts:
		c.broke("%s after an upsert", describe(e))
	case e.Type == stream.Delete && !holds:
		c.broke("%s, which the subscriber has not", describe(e))
	case e.Type == stream.Upsert && holds && held == versionOf(e.Resource):
		c.broke("%s, which the subscriber has", describe(e))
	case e.Type == stream.Upsert && slices.ContainsFunc(s.events, func(d stream.Event) bool { return d.Type == stream.Delete && d.Resource.Key == e.Resource.Key }):
		c.broke("%s, which was deleted first", describe(e))
	case e.Type == stream.Upsert && holds && held.Revision > e.Resource.Revision:
		c.broke("%s, of which the subscriber has revision %d", describe(e), held.Revision)
	case e.Type == stream.EndOfSnapshot:
		c.broke("%s in a difference", describe(e))
	}
}

// checkMarkers checks that the bytes of a part of a difference contain only markers of its
// events.
func (c *Connection) checkMarkers(f *Flush) {
	var told []string
	for _, e := range f.Events {
		key, value := markersIn([]byte(e.Resource.Key)), markersIn(e.Resource.Value)
		told = slices.Concat(told, key, value)
		if e.Type == stream.Upsert {
			c.switches.markers = slices.Concat(c.switches.markers, key, value)
		}
	}
	for _, m := range f.markers {
		if !slices.Contains(told, m) {
			c.broke("the bytes of a difference hold %s, which is in none of its events", m)
		}
	}
}

// asSnapshot replaces the events of a flush by a snapshot of all that the subscriber has.
func (c *Connection) asSnapshot(f *Flush, revision uint64) {
	watch := f.Events[0].Watch
	keys := slices.SortedFunc(maps.Keys(c.state), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.state[a].Revision, c.state[b].Revision), cmp.Compare(a, b))
	})
	f.Events = []stream.Event{{Type: stream.Reset, Watch: watch, Reason: string(stream.ResetInitial)}}
	f.versions = []Version{{}}
	for _, key := range keys {
		v := c.state[key]
		r := stream.Resource{Key: key, Revision: v.Revision, Value: []byte(v.Value)}
		f.Events, f.versions = append(f.Events, stream.Event{Type: stream.Upsert, Watch: watch, Resource: r}), append(f.versions, v)
	}
	f.Events = append(f.Events, stream.Event{Type: stream.EndOfSnapshot, Watch: watch, Revision: revision, Count: len(keys)})
	f.versions = append(f.versions, Version{})
}
