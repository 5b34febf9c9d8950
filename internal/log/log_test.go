package log

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// model is what a log should hold: the state after each commit, by seq.
type model struct {
	state map[string]stream.Resource
}

func value(s string) []byte { return []byte(`{"v":"` + s + `"}`) }

func upsert(key string, revision uint64) Change {
	return Change{Resource: stream.Resource{Key: key, Revision: revision, Value: value(fmt.Sprint(key, revision))}}
}

func remove(key string, revision uint64) Change {
	return Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true}
}

func mustCommit(t testing.TB, l *Writer, revision uint64, changes ...Change) CommitResult {
	t.Helper()
	r, err := l.Commit(changes, revision)
	if err != nil {
		t.Fatalf("Commit(%d): %v", revision, err)
	}
	return r
}

func mustReplace(t testing.TB, l *Writer, epoch string, revision uint64, changes ...Change) CommitResult {
	t.Helper()
	resources := make([]stream.Resource, len(changes))
	for i := range changes {
		resources[i] = changes[i].Resource
	}
	r, err := l.Replace(epoch, resources, revision)
	if err != nil {
		t.Fatalf("Replace(%s, %d): %v", epoch, revision, err)
	}
	return r
}

// client applies events as a correct client does.
type client struct {
	state map[string]string
	log   []string
}

func (c *client) apply(b *Batch) {
	for e := range b.Events() {
		line := e.Type.String()
		switch e.Type {
		case stream.Reset:
			c.state = map[string]string{}
			line += " " + e.Reason
		case stream.Upsert:
			c.state[e.Resource.Key] = fmt.Sprintf("%d %s", e.Resource.Revision, e.Resource.Value)
			line += fmt.Sprintf(" %s@%d", e.Resource.Key, e.Resource.Revision)
		case stream.Delete:
			delete(c.state, e.Resource.Key)
			line += fmt.Sprintf(" %s@%d", e.Resource.Key, e.Resource.Revision)
		case stream.EndOfSnapshot:
			line += fmt.Sprintf(" %d count=%d resumed=%v", e.Revision, e.Count, e.Resumed)
		case stream.Bookmark:
			line += fmt.Sprintf(" %d skipped=%d", e.Revision, e.Skipped)
			if e.Horizon > 0 {
				line += fmt.Sprintf(" horizon=%d", e.Horizon)
			}
			if e.Conflated > 0 {
				line += fmt.Sprintf(" conflated=%d", e.Conflated)
			}
		case stream.StatusChange:
			line += " " + e.State.String()
		}
		c.log = append(c.log, line)
	}
}

// drain reads until there is nothing left.
func (c *client) drain(s *Subscription) {
	var b Batch
	for s.Next(&b) {
		c.apply(&b)
	}
}

func (c *client) take() []string {
	out := c.log
	c.log = nil
	return out
}

func stateOf(v Snapshot) map[string]string {
	state := map[string]string{}
	for r := range v.Resources() {
		state[r.Key] = fmt.Sprintf("%d %s", r.Revision, r.Value)
	}
	return state
}

func inSync(l *Writer) { l.SetStatus(stream.Status{State: stream.InSync}) }

func TestSnapshotThenLive(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("b", 3), upsert("a", 7))
	inSync(l)
	c, s := &client{}, l.Subscribe(SubscribeOptions{})
	c.drain(s)
	want := []string{"reset initial", "upsert b@3", "upsert a@7", "end_of_snapshot 10 count=2 resumed=false"}
	if got := c.take(); !slices.Equal(got, want) {
		t.Fatalf("snapshot: %q, want %q", got, want)
	}
	mustCommit(t, l, 12, upsert("a", 11), remove("b", 12))
	mustCommit(t, l, 13, upsert("a", 13))
	c.drain(s)
	want = []string{"upsert a@11", "delete b@12", "upsert a@13"}
	if got := c.take(); !slices.Equal(got, want) {
		t.Fatalf("live: %q, want %q", got, want)
	}
	if p, _ := s.Position(); p.String() != "w@e-13" {
		t.Errorf("position %v, want w@e-13", p)
	}
}

func TestResumeGivesTheChangesAlone(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 1), upsert("b", 2))
	inSync(l)
	for r := uint64(11); r <= 110; r++ {
		mustCommit(t, l, r, upsert(fmt.Sprint("k", r), r))
	}
	c, s := &client{state: map[string]string{}}, l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: 10, AsOf: 10}})
	c.drain(s)
	got := c.take()
	if len(got) != 101 || got[100] != "end_of_snapshot 110 count=102 resumed=true" {
		t.Fatalf("%d events, last %q; want 100 and end_of_snapshot", len(got), got[len(got)-1])
	}
}

func TestResumeOutcomes(t *testing.T) {
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 1}})
	mustReplace(t, l, "e", 10, upsert("a", 1), upsert("b", 2), upsert("c", 3))
	mustCommit(t, l, 11, remove("a", 11))
	mustCommit(t, l, 12, remove("b", 12))
	mustCommit(t, l, 13, upsert("d", 13))
	inSync(l)
	at := func(r, asOf uint64) *stream.Position {
		return &stream.Position{Watch: "w", Epoch: "e", Upserts: r, AsOf: asOf}
	}
	tests := []struct {
		name    string
		options SubscribeOptions
		outcome ResumeOutcome
		first   string
	}{
		{"nothing", SubscribeOptions{}, OutcomeSnapshot, "reset initial"},
		{"invalid", SubscribeOptions{Invalid: true}, OutcomeInvalid, "reset invalid_position"},
		{"at the head", SubscribeOptions{Resume: at(13, 13)}, OutcomeExact, "end_of_snapshot 13 count=2 resumed=true"},
		{"one behind", SubscribeOptions{Resume: at(12, 12)}, OutcomeExact, "upsert d@13"},
		{"at the horizon", SubscribeOptions{Resume: at(11, 11)}, OutcomeExact, "delete b@12"},
		{"before the horizon", SubscribeOptions{Resume: at(10, 10)}, OutcomeExpired, "reset expired"},
		{"other epoch", SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "f", Upserts: 13, AsOf: 13}}, OutcomeEpochChanged, "reset epoch_changed"},
		{"first snapshot cut off, before the horizon", SubscribeOptions{Resume: at(2, 10)}, OutcomeExpired, "reset expired"},
		{"snapshot cut off", SubscribeOptions{Resume: at(2, 12)}, OutcomeExact, "upsert c@3"},
		{"ahead", SubscribeOptions{Resume: at(14, 14), AheadWait: 1}, OutcomeAhead, "status resyncing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, s := &client{state: map[string]string{}}, l.Subscribe(tt.options)
			c.drain(s)
			for s.Outcome() == OutcomePending {
				c.drain(s)
			}
			if s.Outcome() != tt.outcome {
				t.Errorf("outcome %q, want %q", s.Outcome(), tt.outcome)
			}
			if got := c.take(); len(got) == 0 || got[0] != tt.first {
				t.Errorf("got %q, want %q first", got, tt.first)
			}
		})
	}
}

// TestInferredDelete: a snapshot is complete at its revision, and a reader that was
// there knows of every delete. Where deletes have no revision of their own, another
// replica may have given out the same revision before it saw the delete.
func TestInferredDelete(t *testing.T) {
	for epoch, want := range map[string]string{
		"e":                          "end_of_snapshot 11 count=1 resumed=true",
		stream.UnnumberedEpoch + "e": "reset expired",
	} {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, epoch, 10, upsert("a", 9), upsert("b", 10))
		mustReplace(t, l, epoch, 11, upsert("b", 11))
		inSync(l)
		c, s := &client{state: map[string]string{}}, l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: epoch, Upserts: 11, AsOf: 11}})
		c.drain(s)
		if got := c.take(); got[0] != want {
			t.Errorf("epoch %s: at 11 got %q, want %q first", epoch, got, want)
		}
	}
}

// TestUnnumberedDeleteIsRepeated: where deletes have no revision of their own, a
// reader at the head's revision may or may not have seen the last one.
func TestUnnumberedDeleteIsRepeated(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 9), upsert("b", 10))
	mustCommit(t, l, 10, remove("a", 9))
	inSync(l)
	c, s := &client{state: map[string]string{}}, l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: 10, AsOf: 10}})
	c.drain(s)
	want := []string{"delete a@9", "end_of_snapshot 10 count=1 resumed=true"}
	if got := c.take(); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}

func TestResyncGivesTheDifference(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 1), upsert("b", 2), upsert("c", 3))
	inSync(l)
	c, s := &client{}, l.Subscribe(SubscribeOptions{})
	c.drain(s)
	c.take()
	mustReplace(t, l, "e", 20, upsert("c", 3), upsert("b", 15), upsert("d", 12))
	c.drain(s)
	want := []string{"bookmark 10 skipped=0 horizon=20", "upsert d@12", "upsert b@15", "delete a@20"}
	if got := c.take(); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	t.Run("positions of before and inside the outage expire", func(t *testing.T) {
		for revision, want := range map[uint64]ResumeOutcome{10: OutcomeExpired, 11: OutcomeExpired, 19: OutcomeExpired, 20: OutcomeExact} {
			var b Batch
			s := l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: revision, AsOf: revision}})
			s.Next(&b)
			if s.Outcome() != want {
				t.Errorf("revision %d: %q, want %q", revision, s.Outcome(), want)
			}
		}
	})
	t.Run("an outage in which nothing happened changes nothing", func(t *testing.T) {
		mustReplace(t, l, "e", 20, upsert("c", 3), upsert("b", 15), upsert("d", 12))
		var b Batch
		s := l.Subscribe(SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: 20, AsOf: 20}})
		s.Next(&b)
		if s.Outcome() != OutcomeExact {
			t.Errorf("%q, want exact", s.Outcome())
		}
	})
}

// TestReaderThatStayedThroughAnOutage: a reader that was connected all the time is
// never reset, however much the outage brought.
func TestReaderThatStayedThroughAnOutage(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 1), upsert("b", 2))
	inSync(l)
	c, s := &client{}, l.Subscribe(SubscribeOptions{})
	c.drain(s)
	c.take()
	snapshot := []Change{upsert("a", 1)}
	for i := range 4000 {
		snapshot = append(snapshot, upsert(fmt.Sprint("k", i), uint64(11+i)))
		snapshot[i+1].Value = value(strings.Repeat("x", 400))
	}
	mustReplace(t, l, "e", 5000, snapshot...)
	for r := uint64(5001); r < 5010; r++ {
		mustCommit(t, l, r, upsert("a", r))
	}
	c.drain(s)
	if got := c.take(); got[0] != "bookmark 10 skipped=0 horizon=5000" || got[1] != "status catching_up" || slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "reset") }) {
		t.Errorf("begins with %q, want a catch-up without a reset", got[:2])
	}
	if want := stateOf(l.Snapshot()); !maps.Equal(c.state, want) {
		t.Error("the state is not the log's")
	}
}

func TestEpochChangeResets(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 1))
	inSync(l)
	c, s := &client{}, l.Subscribe(SubscribeOptions{})
	c.drain(s)
	c.take()
	mustReplace(t, l, "f", 5, upsert("b", 5))
	c.drain(s)
	want := []string{"reset epoch_changed", "upsert b@5", "end_of_snapshot 5 count=1 resumed=false"}
	if got := c.take(); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}

func TestBrokenPromises(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	if _, err := l.Commit(nil, 1); err == nil {
		t.Error("a commit before the first snapshot was taken")
	}
	mustReplace(t, l, "e", 10, upsert("a", 5), upsert("b", 6))
	before := stateOf(l.Snapshot())
	for name, try := range map[string]func() error{
		"news from the past": func() error { _, err := l.Commit([]Change{upsert("c", 7)}, 11); return err },
		"commit goes back":   func() error { _, err := l.Commit(nil, 9); return err },
		"two values of one revision": func() error {
			_, err := l.Commit([]Change{{Resource: stream.Resource{Key: "a", Revision: 5, Value: []byte(`"another"`)}}}, 11)
			return err
		},
		"another value in a snapshot": func() error {
			_, err := l.Replace("e", []stream.Resource{upsert("a", 5).Resource, {Key: "b", Revision: 6, Value: []byte(`"another"`)}}, 12)
			return err
		},
		"revision 0": func() error { _, err := l.Commit([]Change{upsert("c", 0)}, 11); return err },
		"no value": func() error {
			_, err := l.Commit([]Change{{Resource: stream.Resource{Key: "c", Revision: 11}}}, 11)
			return err
		},
		"value with a line break": func() error {
			_, err := l.Commit([]Change{{Resource: stream.Resource{Key: "c", Revision: 11, Value: []byte("{\n}")}}}, 11)
			return err
		},
		"older snapshot":            func() error { _, err := l.Replace("e", nil, 9); return err },
		"older key in a snapshot":   func() error { _, err := l.Replace("e", []stream.Resource{upsert("a", 4).Resource}, 12); return err },
		"unknown key from the past": func() error { _, err := l.Replace("e", []stream.Resource{upsert("z", 4).Resource}, 12); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	if after := stateOf(l.Snapshot()); !maps.Equal(before, after) || l.Snapshot().Revision() != 10 {
		t.Errorf("a refused change left its mark: %v", after)
	}
	if r := mustCommit(t, l, 11, upsert("a", 5), remove("zz", 3)); r.Duplicates != 2 {
		t.Errorf("duplicates at the seam: %+v, want 2 dropped", r)
	}
}

// TestLiesAboutRevisions: what comes again is dropped, and what contradicts the log is an error.
func TestLiesAboutRevisions(t *testing.T) {
	value := func(key string, revision uint64, value string) Change {
		return Change{Resource: stream.Resource{Key: key, Revision: revision, Value: []byte(value)}}
	}
	for name, test := range map[string]struct {
		before Change // committed at 12, after a snapshot at 10
		change Change
		known  bool
	}{
		"the same again":                        {value("a", 12, "1"), value("a", 12, "1"), true},
		"another value":                         {value("a", 12, "1"), value("a", 12, "2"), false},
		"another encoding":                      {value("a", 12, `"MQ=="`), Change{Resource: stream.Resource{Key: "a", Revision: 12, Value: []byte(`"MQ=="`), Encoding: stream.Base64}}, false},
		"created at the revision of its delete": {remove("a", 12), value("a", 12, "1"), false},
		"created again, older than its delete":  {remove("a", 12), value("a", 11, "1"), false},
		"deleted at the revision of its value":  {value("a", 12, "1"), remove("a", 12), false},
		"deleted again":                         {remove("a", 12), remove("a", 12), true},
		"an older change of the key":            {value("a", 12, "1"), value("a", 11, "1"), false},
		"an older change of another key":        {value("a", 12, "1"), value("b", 4, "1"), false},
		"an older change of an unknown key":     {value("a", 12, "1"), value("c", 11, "1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewWriter(Config{Watch: "w"})
			mustReplace(t, l, "e", 10, value("a", 5, "0"), value("b", 6, "0"))
			mustCommit(t, l, 12, test.before)
			r, err := l.Commit([]Change{test.change}, 13)
			switch dropped := err == nil && r.Duplicates == 1; {
			case err != nil && !errors.Is(err, stream.ErrOrder):
				t.Errorf("error %v", err)
			case dropped != test.known:
				t.Errorf("%+v, error %v; want it dropped: %t", r, err, test.known)
			}
		})
	}
}

// TestOverlapEndsWithNews: older changes may come again after a snapshot and after a reconnect, up to
// the first news.
func TestOverlapEndsWithNews(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 5), upsert("b", 6))
	for range 2 {
		for range 2 {
			if r := mustCommit(t, l, l.Snapshot().Revision(), upsert("a", 3), upsert("b", 4)); r.Duplicates != 2 {
				t.Errorf("older changes at the seam: %+v, want 2 dropped", r)
			}
		}
		next := l.Snapshot().Revision() + 1
		if r := mustCommit(t, l, next, upsert("b", 4), upsert("a", next)); r.Duplicates != 1 {
			t.Errorf("an older change beside news: %+v, want 1 dropped", r)
		}
		if _, err := l.Commit([]Change{upsert("b", 4)}, next); !errors.Is(err, stream.ErrOrder) {
			t.Errorf("an older change after news: error %v", err)
		}
		l.Overlap()
	}
}

func TestCatchUp(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	const keys = 2000
	var first []Change
	for i := range keys {
		first = append(first, upsert(fmt.Sprint("k", i), uint64(i+1)))
	}
	mustReplace(t, l, "e", keys, first...)
	inSync(l)
	c, s := &client{}, l.Subscribe(SubscribeOptions{})
	c.drain(s)
	c.take()
	revision := uint64(keys)
	for range 20 {
		for i := range keys {
			revision++
			mustCommit(t, l, revision, upsert(fmt.Sprint("k", i), revision))
		}
	}
	revision++
	mustCommit(t, l, revision, remove("k7", revision))
	c.drain(s)
	got := c.take()
	if got[0] != "status catching_up" || !strings.HasPrefix(got[1], "delete k7") || got[len(got)-1] != "status in_sync" {
		t.Fatalf("begins with %q, ends with %q", got[:2], got[len(got)-2:])
	}
	if want := fmt.Sprintf("bookmark %d skipped=%d", revision, 20*keys+1-keys); got[len(got)-2] != want {
		t.Errorf("%q, want %q", got[len(got)-2], want)
	}
	if len(got) != keys+3 {
		t.Errorf("%d events, want one for each key and three", len(got))
	}
	if want := stateOf(l.Snapshot()); !maps.Equal(c.state, want) {
		t.Error("the state is not the log's")
	}
	if v := l.Snapshot(); v.Bytes() > 4<<20 {
		t.Errorf("the log holds %d bytes for %d keys: it was not compacted", v.Bytes(), v.Count())
	}
}

// TestCatchUpAfterAReset: a reset in the middle of a catch-up ends it, so that a catch-up that follows the
// snapshot has a status of its own. Without that a client shows, and a gateway commits, parts of it.
func TestCatchUpAfterAReset(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	const keys = 2000
	var all []Change
	for i := range uint64(keys) {
		all = append(all, upsert(fmt.Sprint("k", i), i+1))
	}
	mustReplace(t, l, "e", keys, all...)
	inSync(l)
	c, s := &client{}, l.Subscribe(SubscribeOptions{})
	defer s.Close()
	c.drain(s)
	revision := uint64(keys)
	rewrite := func() {
		for range 20 * keys {
			revision++
			mustCommit(t, l, revision, upsert(fmt.Sprint("k", revision%keys), revision))
		}
	}
	var b Batch
	until := func(event string) {
		t.Helper()
		c.take()
		for s.Next(&b) {
			c.apply(&b)
			if slices.ContainsFunc(c.log, func(line string) bool { return strings.HasPrefix(line, event) }) {
				return
			}
		}
		t.Fatalf("no %q among the last %d events", event, len(c.log))
	}
	rewrite()
	until("upsert")
	mustReplace(t, l, "f", keys, all...)
	revision = keys
	until("upsert")
	rewrite()
	until("end_of_snapshot")
	if got, want := c.log[len(c.log)-1], "status in_sync"; got != want {
		t.Errorf("%q is sent after the snapshot, want %q: it is whole", got, want)
	}
	c.take()
	c.drain(s)
	got := c.take()
	if got[0] != "status catching_up" || !strings.HasPrefix(got[len(got)-2], "bookmark") || got[len(got)-1] != "status in_sync" {
		t.Errorf("the catch-up begins with %q, and ends with %q", got[0], got[len(got)-2:])
	}
}

// TestLogAgainstModel plays random histories. Readers stop anywhere, even inside a
// snapshot, and resume elsewhere. The state must always be the model's.
func TestLogAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{state: map[string]stream.Resource{}}
		history := Retention{MaxDeletes: rapid.IntRange(1, 50).Draw(t, "deletes")}
		l := NewWriter(Config{Watch: "w", History: history})
		padding := strings.Repeat("x", rapid.SampledFrom([]int{1, 300, 5000}).Draw(t, "padding"))
		keys := rapid.IntRange(1, 400).Draw(t, "keys")
		revision, seed := uint64(0), rapid.Uint64().Draw(t, "seed")
		random := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		change := func() Change {
			k := fmt.Sprint("k", random(keys))
			if _, live := m.state[k]; live && random(4) == 0 {
				delete(m.state, k)
				return remove(k, revision)
			}
			c := Change{Resource: stream.Resource{Key: k, Revision: revision, Value: value(fmt.Sprint(revision, padding))}}
			m.state[k] = c.Resource
			return c
		}
		snapshot := func(epoch string) {
			var all []stream.Resource
			for _, r := range m.state {
				all = append(all, r)
			}
			if _, err := l.Replace(epoch, all, revision); err != nil {
				t.Fatal(err)
			}
		}
		check := func(got map[string]string, what string) {
			if len(got) != len(m.state) {
				t.Fatalf("%s: %d resources, want %d", what, len(got), len(m.state))
			}
			for k, r := range m.state {
				if got[k] != fmt.Sprintf("%d %s", r.Revision, r.Value) {
					t.Fatalf("%s: %s is %.40q, want revision %d", what, k, got[k], r.Revision)
				}
			}
		}
		epoch := 0
		snapshot("e0")
		inSync(l)
		c, s := &client{}, l.Subscribe(SubscribeOptions{})
		t.Repeat(map[string]func(*rapid.T){
			"commits": func(t *rapid.T) {
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					revision += uint64(1 + random(2))
					changes := map[string]Change{}
					for range 1 + random(3) {
						ch := change()
						changes[ch.Key] = ch
					}
					if _, err := l.Commit(slices.Collect(maps.Values(changes)), revision); err != nil {
						t.Fatal(err)
					}
				}
			},
			"resync": func(t *rapid.T) {
				for range rapid.IntRange(0, 50).Draw(t, "missed") {
					revision++
					change()
				}
				snapshot(fmt.Sprint("e", epoch))
			},
			"restore": func(t *rapid.T) {
				epoch++
				snapshot(fmt.Sprint("e", epoch))
			},
			"read a little": func(*rapid.T) {
				var b Batch
				if s.Next(&b) {
					c.apply(&b)
				}
			},
			"read all": func(*rapid.T) {
				c.drain(s)
				check(c.state, "reader")
			},
			"reconnect": func(*rapid.T) {
				p, ok := s.Position()
				s.Close()
				s = l.Subscribe(SubscribeOptions{})
				if ok {
					s = l.Subscribe(SubscribeOptions{Resume: &p})
				}
			},
			"": func(*rapid.T) {
				check(stateOf(l.Snapshot()), "snapshot")
				k := fmt.Sprint("k", random(keys))
				got, ok := l.Snapshot().Get(k)
				if want, live := m.state[k]; ok != live || ok && got.Revision != want.Revision {
					t.Fatalf("Get(%s) = %v %v, want %v %v", k, got.Revision, ok, want.Revision, live)
				}
			},
		})
	})
}
