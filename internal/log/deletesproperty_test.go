package log

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// An upstream whose deletes have no revision, replicas that group its events into
// commits of their own, a gateway above them, and a client that goes from one to
// another. Whatever its path, the client ends with what the upstream has.

// vanishing is the upstream: writes have revisions, one after the other.
type vanishing struct {
	state   map[string]uint64
	events  []Change // deletes are among them if they are in order
	heads   []uint64 // the newest revision after each
	head    uint64
	ordered bool // deletes are in the order of the revisions, as Consul reports them
}

func (u *vanishing) write(key string) {
	u.head++
	u.state[key] = u.head
	u.add(upsert(key, u.head))
}

// drop removes a key: with an event that has no revision, or silently.
func (u *vanishing) drop(key string, shown bool) {
	revision, there := u.state[key]
	if !there {
		return
	}
	delete(u.state, key)
	if !shown {
		revision = 0
	}
	if u.ordered {
		u.add(remove(key, revision))
	}
}

func (u *vanishing) add(c Change) {
	u.events = append(u.events, c)
	u.heads = append(u.heads, u.head)
}

// snapshot returns the current state, and its revision.
func (u *vanishing) snapshot() (resources []stream.Resource, revision uint64) {
	for key, at := range u.state {
		resources = append(resources, upsert(key, at).Resource)
		revision = max(revision, at)
	}
	if !u.ordered {
		revision = u.head // and not only the newest that still exists
	}
	return resources, revision
}

// sweep is a replica's search for keys that vanished silently.
type sweep struct {
	before uint64            // the replica had everything up to here when it began
	known  map[string]uint64 // that the replica had then
	gone   []string
	last   int    // events, when the last key was looked for
	head   uint64 // newest revision then
	begun  bool
	listed bool
}

// vanishingReplica follows the upstream.
type vanishingReplica struct {
	*Writer
	t         *rapid.T
	u         *vanishing
	at        int // events that were committed
	deletesTo uint64
	sweep     sweep
}

func (r *vanishingReplica) must(_ CommitResult, err error) {
	if err != nil {
		r.t.Fatal(err)
	}
}

// restart takes a snapshot; before is the newest revision before it was begun.
func (r *vanishingReplica) restart(before uint64) {
	resources, revision := r.u.snapshot()
	r.deletesTo = stream.AllDeletes
	if !r.u.ordered {
		r.deletesTo = before
	}
	r.at, r.sweep = len(r.u.events), sweep{}
	r.must(r.ReplaceCompleteTo("_e", resources, revision, r.deletesTo))
}

// commit takes the next events as one transaction, together with the keys found
// missing, if it then has everything that the upstream had.
func (r *vanishingReplica) commit(events int) {
	end := min(r.at+events, len(r.u.events))
	changes := slices.Clone(r.u.events[r.at:end])
	revision := r.Snapshot().Revision()
	if end > 0 {
		revision = max(revision, r.u.heads[end-1])
	}
	r.at = end
	if w := &r.sweep; w.listed && end >= w.last {
		for _, key := range w.gone {
			if !slices.ContainsFunc(r.u.events[:end], func(c Change) bool { return c.Key == key && c.Revision > w.known[key] }) {
				changes = append(changes, remove(key, 0))
			}
		}
		revision, r.deletesTo = max(revision, w.head), max(r.deletesTo, w.before)
		*w = sweep{}
	}
	r.must(r.CommitCompleteTo(changes, revision, r.deletesTo))
}

// look continues the sweep: it begins, looks for one key after the other, and is
// complete.
func (r *vanishingReplica) look() {
	w := &r.sweep
	switch {
	case r.u.ordered || w.listed:
	case !w.begun:
		// The upstream's newest revision would be too much: a key that the replica has not
		// heard of yet may vanish without being missed.
		*w = sweep{begun: true, before: r.Snapshot().Revision(), known: map[string]uint64{}}
		for res := range r.Snapshot().Resources() {
			w.known[res.Key] = res.Revision
		}
	default:
		for _, key := range slices.Sorted(maps.Keys(w.known)) {
			if _, there := r.u.state[key]; !there {
				w.gone = append(w.gone, key)
			}
		}
		w.listed, w.last, w.head = true, len(r.u.events), r.u.head
	}
}

// above is a gateway that follows whichever replica it gets.
type above struct {
	*Writer
	t       *rapid.T
	changes []Change
	whole   bool // they are a snapshot
}

// follow makes a request, and takes some flushes.
func (a *above) follow(r *Writer, flushes int) {
	o := SubscribeOptions{AheadWait: 1}
	if v := a.Snapshot(); v.Primed() {
		p := v.Position()
		o.Resume = &p
	}
	s := r.Subscribe(o)
	defer s.Close()
	a.changes, a.whole = nil, false
	live, behind := false, false
	var b Batch
	for ; flushes > 0 && !behind && s.Next(&b); flushes-- {
		for e := range b.Events() {
			switch e.Type {
			case stream.Reset:
				a.changes, a.whole, live = nil, true, false
			case stream.Upsert, stream.Delete:
				a.changes = append(a.changes, Change{Resource: e.Resource, Deleted: e.Type == stream.Delete})
			case stream.EndOfSnapshot:
				live = true
			}
		}
		if p, ok := s.Position(); ok && live && b.Boundary() && !p.Partial() {
			behind = a.commit(p)
		}
	}
}

// commit reports whether the replica is behind; the gateway then leaves it.
func (a *above) commit(p stream.Position) bool {
	var err error
	if a.whole {
		_, err = a.ReplaceCompleteTo(p.Epoch, remaining(a.changes), p.AsOf, p.DeletesCompleteTo())
	} else {
		_, err = a.CommitCompleteTo(a.changes, p.AsOf, p.DeletesCompleteTo())
	}
	if err != nil && !errors.Is(err, stream.ErrBehind) {
		a.t.Fatalf("at %v: %v", p, err)
	}
	a.changes, a.whole = nil, false
	return err != nil
}

// wanderer is a client that goes from one log to another.
type wanderer struct {
	holds    map[string]uint64
	position *stream.Position
	trace    []string
}

// read takes some events from a log, and is cut off.
func (c *wanderer) read(name string, l *Writer, events int) {
	s := l.Subscribe(SubscribeOptions{Resume: c.position, AheadWait: 1})
	defer s.Close()
	var b Batch
	for events > 0 && s.Next(&b) {
		for e := range b.Events() {
			if events--; events < 0 {
				break
			}
			switch e.Type {
			case stream.Reset:
				c.holds = map[string]uint64{}
			case stream.Upsert:
				c.holds[e.Resource.Key] = e.Resource.Revision
			case stream.Delete:
				delete(c.holds, e.Resource.Key)
			}
		}
		if p, ok := s.Position(); ok && b.Boundary() && events >= 0 {
			read, err := stream.ParsePosition(p.String())
			if err != nil || read != p {
				panic(fmt.Sprintf("%v is read as %v: %v", p, read, err))
			}
			c.position = &read
		}
	}
	c.trace = append(c.trace, fmt.Sprintf("%s (%s, horizon %d): holds %v at %v", name, s.Outcome(), l.head.Load().Horizon, c.holds, c.position))
}

// TestVanishingKeysProperty runs many histories: some faults need thousands.
func TestVanishingKeysProperty(t *testing.T) {
	for range 40 {
		rapid.Check(t, vanishingHistory)
	}
}

func vanishingHistory(t *rapid.T) {
	keys := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	u := &vanishing{state: map[string]uint64{}, ordered: rapid.Bool().Draw(t, "ordered")}
	limits := Retention{MaxDeletes: rapid.SampledFrom([]int{1, 2, 100}).Draw(t, "remembered")}
	newReplica := func() *vanishingReplica {
		l := NewWriter(Config{Watch: "w", History: limits})
		inSync(l)
		return &vanishingReplica{Writer: l, t: t, u: u}
	}
	u.write("a")
	u.write("b")
	replicas := []*vanishingReplica{newReplica(), newReplica()}
	gateway := &above{Writer: NewWriter(Config{Watch: "w", History: limits}), t: t}
	inSync(gateway.Writer)
	for _, r := range replicas {
		r.restart(u.head)
	}
	gateway.follow(replicas[0].Writer, 100)
	logs := []*Writer{replicas[0].Writer, replicas[1].Writer, gateway.Writer}
	c := &wanderer{holds: map[string]uint64{}}
	replica := func(t *rapid.T) *vanishingReplica { return rapid.SampledFrom(replicas).Draw(t, "replica") }
	visit := func(t *rapid.T, events int) {
		i := rapid.IntRange(0, 2).Draw(t, "log")
		c.read([]string{"A", "B", "gateway"}[i], logs[i], events)
	}
	t.Repeat(map[string]func(*rapid.T){
		"write":  func(t *rapid.T) { u.write(keys.Draw(t, "key")) },
		"drop":   func(t *rapid.T) { u.drop(keys.Draw(t, "key"), rapid.Bool().Draw(t, "shown")) },
		"commit": func(t *rapid.T) { replica(t).commit(rapid.IntRange(0, 4).Draw(t, "events")) },
		"look":   func(t *rapid.T) { replica(t).look() },
		"follow": func(t *rapid.T) { gateway.follow(replica(t).Writer, rapid.IntRange(1, 4).Draw(t, "flushes")) },
		"read":   func(t *rapid.T) { visit(t, rapid.IntRange(1, 8).Draw(t, "events")) },
	})
	for range 2 { // the sweep under way, and another one
		for _, r := range replicas {
			r.look()
			r.look()
			r.commit(len(u.events))
			r.look()
			r.look()
			r.commit(0)
		}
	}
	gateway.follow(replica(t).Writer, 100)
	visit(t, 100)
	want := map[string]uint64{}
	maps.Copy(want, u.state)
	if !maps.Equal(c.holds, want) {
		for _, line := range c.trace {
			t.Log(line)
		}
		t.Fatalf("the client holds %v, the upstream has %v", c.holds, want)
	}
}

// remaining returns the resources that are left after the changes of a snapshot.
func remaining(changes []Change) (resources []stream.Resource) {
	last := map[string]Change{}
	for _, c := range changes {
		last[c.Key] = c
	}
	for _, c := range changes {
		if !c.Deleted && !last[c.Key].Deleted {
			resources = append(resources, c.Resource)
		}
	}
	return resources
}
