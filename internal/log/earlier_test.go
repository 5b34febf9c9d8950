package log

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// earlier is what an upstream knows: the given deletes, and no others after a revision.
func earlier(after uint64, deletes ...Change) *Earlier {
	e := &Earlier{After: after}
	for i := range deletes {
		e.Deletes = append(e.Deletes, deletes[i].Resource)
	}
	return e
}

// resume is what a reader at a revision is sent.
func resume(l *Writer, revision uint64) (got []string, outcome ResumeOutcome) {
	var c client
	c.state = map[string]string{}
	s := l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: l.Snapshot().Epoch(), Upserts: revision, AsOf: revision}})
	defer s.Close()
	c.drain(s)
	return c.take(), s.Outcome()
}

func wantResume(t *testing.T, l *Writer, revision uint64, want ...string) {
	t.Helper()
	got, outcome := resume(l, revision)
	if outcome != OutcomeExact || !slices.Equal(got, want) {
		t.Errorf("at %d: %s, %q, want %q", revision, outcome, got, want)
	}
}

// TestBeginWithEarlierDeletes: positions from before the first snapshot are resumed as far back as
// the upstream knows the deletes. What was created again is no delete, nor is what came after.
func TestBeginWithEarlierDeletes(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	l.PrepareEarlier(earlier(5,
		remove("gone", 8), remove("back", 7), remove("gone", 6), remove("later", 12), remove("unnumbered", 0)))
	mustReplace(t, l, "e", 10, upsert("back", 9), upsert("old", 3))
	inSync(l)
	wantResumes(t, l, 5)
	wantResume(t, l, 5, "delete gone@8", "upsert back@9", "end_of_snapshot 10 count=2 resumed=true")
	wantResume(t, l, 8, "upsert back@9", "end_of_snapshot 10 count=2 resumed=true")
	wantResume(t, l, 10, "end_of_snapshot 10 count=2 resumed=true")
	readAll(l).wants(t) // nobody is told of an outage
	mustReplace(t, l, "e", 20, upsert("back", 9), upsert("old", 3))
	wantResumes(t, l, 20) // it was for one snapshot
}

// TestDeletesThatProveNothing are remembered, although no position is resumed for them.
func TestDeletesThatProveNothing(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	l.PrepareEarlier(earlier(math.MaxUint64, remove("gone", 8)))
	mustReplace(t, l, "e", 10, upsert("old", 3))
	wantResumes(t, l, 10)
	if n := l.Snapshot().Tombstones(); n != 1 {
		t.Errorf("%d tombstones, want 1", n)
	}
}

// TestEarlierDeletesThatContradict: if one is newer than a resource that is live, none is believed.
func TestEarlierDeletesThatContradict(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	l.PrepareEarlier(earlier(1, remove("a", 5), remove("b", 6)))
	mustReplace(t, l, "e", 10, upsert("a", 3))
	wantResumes(t, l, 10)
	if n := l.Snapshot().Tombstones(); n != 0 {
		t.Errorf("%d tombstones, want 0", n)
	}
}

// TestEarlierDeletesAreBounded by the limits of the history, and by the memory of the watch.
func TestEarlierDeletesAreBounded(t *testing.T) {
	var deletes []Change
	for i := range uint64(100) {
		deletes = append(deletes, remove(fmt.Sprint("key ", i), 10+i))
	}
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 30}})
	l.PrepareEarlier(earlier(5, deletes...))
	mustReplace(t, l, "e", 200, upsert("a", 3))
	wantResumes(t, l, 79)
	if n := l.Snapshot().Tombstones(); n != 30 {
		t.Errorf("%d tombstones, want 30", n)
	}
	a := memory.NewAccount(20<<10, nil)
	l = NewWriter(Config{Watch: "w", Account: a})
	for i := range deletes {
		deletes[i].Key += string(make([]byte, 100))
	}
	l.PrepareEarlier(earlier(5, deletes...))
	mustReplace(t, l, "e", 200, upsert("a", 3))
	wantResumes(t, l, 200)
}

// TestOutageThatIsClosed: where the upstream knows every delete of an outage, it is none, neither
// for readers nor for positions inside it.
func TestOutageThatIsClosed(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1), upsert("b", 2))
	r := readAll(l)
	l.PrepareEarlier(earlier(10, remove("a", 12), remove("short", 15), remove("older", 9)))
	mustReplace(t, l, "e", 20, upsert("b", 17))
	r.wants(t, "bookmark 10 skipped=0 conflated=20", "delete a@12", "delete short@15", "upsert b@17")
	wantResumes(t, l, 10)
	wantResume(t, l, 12, "delete short@15", "upsert b@17", "end_of_snapshot 20 count=1 resumed=true")
	if v := l.Snapshot(); v.Origin() != 10 || v.Understood() != 20 {
		t.Errorf("every change is known since %d, and every value since %d, want 10 and 20", v.Origin(), v.Understood())
	}
}

// TestOutageThatIsClosedInPart: the outage ends where the upstream's knowledge begins. What was
// deleted before that, at an unknown time, is deleted there.
func TestOutageThatIsClosedInPart(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1), upsert("b", 2))
	r := readAll(l)
	l.PrepareEarlier(earlier(15, remove("b", 17)))
	mustReplace(t, l, "e", 20)
	r.wants(t, "bookmark 10 skipped=0 horizon=15", "bookmark 10 skipped=0 conflated=20", "delete a@15", "delete b@17")
	wantResumes(t, l, 15)
}

// TestDeleteThatIsKnownAlready: what the upstream found missing at the end of an outage of its own may have been
// deleted long before. Of a resource that the log does not have, that is no news.
func TestDeleteThatIsKnownAlready(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1), upsert("b", 2), upsert("c", 3))
	mustCommit(t, l, 12, remove("a", 12))
	r := readAll(l)
	l.PrepareEarlier(earlier(18, remove("a", 18), remove("b", 17), remove("short", 19)))
	mustReplace(t, l, "e", 20, upsert("c", 3))
	r.wants(t, "bookmark 12 skipped=0 horizon=18", "bookmark 12 skipped=0 conflated=20", "delete b@17", "delete short@19")
	wantResumes(t, l, 18)
}

// TestOutageWithUnknownDeletes: an upstream that says it knows every delete, and does not know one
// that must have been, is not believed.
func TestOutageWithUnknownDeletes(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1), upsert("b", 2))
	l.PrepareEarlier(earlier(8, remove("b", 17)))
	mustReplace(t, l, "e", 20)
	wantResumes(t, l, 20)
	l.PrepareEarlier(earlier(8)) // nothing at all is new
	mustReplace(t, l, "e", 20)
	wantResumes(t, l, 20)
}

// timeline is an upstream, and what it was at each revision.
type timeline struct {
	states  []map[string]uint64 // by revision
	deletes []Change
}

func (u *timeline) revision() uint64 { return uint64(len(u.states) - 1) }

// advance makes the next revision.
func (u *timeline) advance(key string, deletes bool) Change {
	state := maps.Clone(u.states[u.revision()])
	_, live := state[key]
	u.states = append(u.states, state)
	if live && deletes {
		delete(state, key)
		c := remove(key, u.revision())
		u.deletes = append(u.deletes, c)
		return c
	}
	state[key] = u.revision()
	return upsert(key, u.revision())
}

// snapshot gives a log the state, and the deletes after a revision.
func (u *timeline) snapshot(t *rapid.T, l *Writer, after uint64) {
	var all []stream.Resource
	for key, revision := range u.states[u.revision()] {
		all = append(all, upsert(key, revision).Resource)
	}
	e := &Earlier{After: after}
	for i := range u.deletes {
		if u.deletes[i].Revision > after {
			e.Deletes = append(e.Deletes, u.deletes[i].Resource)
		}
	}
	l.PrepareEarlier(e)
	if _, err := l.Replace("e", all, u.revision()); err != nil {
		t.Fatal(err)
	}
}

// TestEarlierDeletesProperty: a log that began with what its upstream knew of the time before, and
// that was cut off with such snapshots as ends, answers a reader from any revision like one that
// was there all along, or says that it cannot. So does one that is told by the first what it knows.
func TestEarlierDeletesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &timeline{states: []map[string]uint64{{}}}
		l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "most deletes")}})
		known := uint64(0) // no change after it is unknown to the log
		change := func(t *rapid.T) Change {
			return u.advance(fmt.Sprint("k", rapid.IntRange(0, 8).Draw(t, "key")), rapid.Bool().Draw(t, "deletes"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				if c := change(t); l.Snapshot().Primed() {
					if _, err := l.Commit([]Change{c}, u.revision()); err != nil {
						t.Fatal(err)
					}
				}
			},
			"snapshot": func(t *rapid.T) {
				for range rapid.IntRange(0, 12).Draw(t, "missed") {
					change(t)
				}
				after := rapid.Uint64Range(0, u.revision()).Draw(t, "after")
				if v := l.Snapshot(); !v.Primed() || after > v.Revision()+1 { // nothing is between a revision and the next
					known = after
				}
				u.snapshot(t, l, after)
			},
			"": func(t *rapid.T) {
				u.check(t, l, known)
				if v := l.Snapshot(); v.Primed() && v.Revision() == u.revision() {
					horizon, _ := v.Horizon()
					u.check(t, u.follow(t, l), horizon)
				}
			},
		})
	})
}

// follow returns a log that has begun with what a reader of another one is sent that serves it to others.
func (u *timeline) follow(t *rapid.T, l *Writer) *Writer {
	behind := NewWriter(Config{Watch: "w"})
	all, e := told(l, func() {})
	behind.PrepareEarlier(e)
	if _, err := behind.Replace("e", all, u.revision()); err != nil {
		t.Fatal(err)
	}
	return behind
}

// told returns what a reader of a log is sent that serves it to others. between is called after each flush.
func told(l *Writer, between func()) (all []stream.Resource, e *Earlier) {
	var b Batch
	e = &Earlier{After: math.MaxUint64}
	s := l.Subscribe(SubscribeOptions{Deletes: true})
	defer s.Close()
	for ; s.Next(&b); between() {
		for event := range b.Events() {
			switch event.Type {
			case stream.Upsert:
				r := event.Resource
				r.Value = slices.Clone(r.Value)
				all = append(all, r)
			case stream.Delete:
				e.Deletes = append(e.Deletes, event.Resource)
			case stream.EndOfSnapshot:
				if event.Deletes {
					e.After = event.Horizon
				}
			}
		}
	}
	return all, e
}

// TestSnapshotWithDeletesGoesOn in a newer state, if its own is taken away among the deletes. One of them
// is live again by then.
func TestSnapshotWithDeletesGoesOn(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	long := strings.Repeat("x", 300)
	for i := range uint64(500) {
		key := fmt.Sprint(i, long)
		mustCommit(t, l, 11+2*i, upsert(key, 11+2*i))
		mustCommit(t, l, 12+2*i, remove(key, 12+2*i))
	}
	flushes := 0
	all, e := told(l, func() {
		if flushes++; flushes == 2 {
			l.pins.TakeAll()
			mustCommit(t, l, 2000, upsert("3"+long, 2000))
		}
	})
	if len(all) != 2 || e.After != 10 {
		t.Errorf("%d resources, and all deletes after %d: want 2, 10", len(all), e.After)
	}
	behind := NewWriter(Config{Watch: "w"})
	behind.PrepareEarlier(e)
	if _, err := behind.Replace("e", all, 2000); err != nil {
		t.Fatal(err)
	}
	wantResumes(t, behind, 10)
	if got := behind.Snapshot().Tombstones(); got != 499 {
		t.Errorf("%d deletes, want 499", got)
	}
}

// check resumes at some revisions, also as a reader that holds more than its position says.
func (u *timeline) check(t *rapid.T, l *Writer, known uint64) {
	v := l.Snapshot()
	if !v.Primed() || v.Revision() != u.revision() {
		return
	}
	horizon, _ := v.Horizon()
	some := []uint64{0, known, horizon, max(1, horizon) - 1, u.revision()}
	for range 5 {
		some = append(some, rapid.Uint64Range(0, u.revision()).Draw(t, "position"))
	}
	for _, at := range some {
		ahead := rapid.Uint64Range(at, u.revision()).Draw(t, "holds")
		c := client{state: map[string]string{}}
		for _, state := range u.states[at : ahead+1] {
			for key, revision := range state {
				c.state[key] = fmt.Sprintf("%d %s", revision, upsert(key, revision).Value)
			}
		}
		for key := range c.state {
			if _, was := u.states[at][key]; !was && rapid.Bool().Draw(t, "not received") {
				delete(c.state, key)
			}
		}
		s := l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: at, AsOf: at}})
		c.drain(s)
		s.Close()
		if !maps.Equal(c.state, stateOf(v)) {
			t.Fatalf("from %d (%s): %v, want %v", at, s.Outcome(), c.state, stateOf(v))
		}
		if exact := s.Outcome() == OutcomeExact; exact != (at >= horizon) || exact && at < known {
			t.Fatalf("from %d: %s, with the horizon %d, and %d known", at, s.Outcome(), horizon, known)
		}
		if at >= known && s.Outcome() != OutcomeExact && len(u.deletes) == 0 {
			t.Fatalf("from %d: %s, and there are no deletes", at, s.Outcome())
		}
	}
}

// TestSnapshotWithDeletes: a reader that serves the watch to others is given the deletes too, and from
// where on they are complete. Others are not, and where deletes have no revisions nobody is.
func TestSnapshotWithDeletes(t *testing.T) {
	read := func(l *Writer, o SubscribeOptions) (got []string, end stream.Event) {
		var b Batch
		s := l.Subscribe(o)
		defer s.Close()
		for s.Next(&b) {
			for e := range b.Events() {
				if end = e; e.Type == stream.Upsert || e.Type == stream.Delete {
					got = append(got, fmt.Sprintf("%v %s@%d", e.Type, e.Resource.Key, e.Resource.Revision))
				}
			}
		}
		return got, end
	}
	l := newSyncedLog(t, "e", 10, upsert("a", 1), upsert("b", 2))
	mustCommit(t, l, 12, remove("a", 12))
	mustCommit(t, l, 13, remove("c", 13), upsert("d", 13))
	got, end := read(l, SubscribeOptions{Deletes: true})
	if want := []string{"delete a@12", "delete c@13", "upsert b@2", "upsert d@13"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if end.Type != stream.EndOfSnapshot || !end.Deletes || end.Horizon != 10 || end.Count != 2 {
		t.Errorf("ends with %+v, want 2 resources, and all deletes since 10", end)
	}
	if got, end = read(l, SubscribeOptions{}); len(got) != 2 || end.Deletes {
		t.Errorf("got %q without asking", got)
	}
	l = newSyncedLog(t, "_e", 10, upsert("a", 1), upsert("b", 2))
	mustCommit(t, l, 12, remove("a", 0))
	if got, end = read(l, SubscribeOptions{Deletes: true}); len(got) != 1 || end.Deletes {
		t.Errorf("got %q, %+v where deletes have no revision", got, end)
	}
}
