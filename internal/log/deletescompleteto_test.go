package log

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

func mustCommitTo(t *testing.T, l *Writer, revision, deletesTo uint64, changes ...Change) {
	t.Helper()
	if _, err := l.CommitCompleteTo(changes, revision, deletesTo); err != nil {
		t.Fatal(err)
	}
}

// logAt12 returns a log at revision 12, with all deletes up to 11, that noticed at 11 that j was
// gone, and remembers so many deletes.
func logAt12(t *testing.T, remembered int) *Writer {
	t.Helper()
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: remembered}})
	if _, err := l.ReplaceCompleteTo("_e", []stream.Resource{upsert("j", 5).Resource, upsert("x", 6).Resource}, 6, 6); err != nil {
		t.Fatal(err)
	}
	inSync(l)
	mustCommitTo(t, l, 9, 8, upsert("y", 9))
	mustCommitTo(t, l, 11, 11, upsert("k", 11), remove("j", 0))
	mustCommitTo(t, l, 12, 11, upsert("z", 12))
	return l
}

// TestResumeWithDeletesWithoutRevision: what a position says about deletes decides which are
// repeated, not what it says about upserts.
func TestResumeWithDeletesWithoutRevision(t *testing.T) {
	for name, tt := range map[string]struct {
		position   string
		remembered int
		want       []string
	}{
		"all known":                   {"w@_e-12", 9, []string{"end_of_snapshot 12 count=4 resumed=true"}},
		"repeated from 11":            {"w@_e-12!1", 9, []string{"delete j@11", "end_of_snapshot 12 count=4 resumed=true"}},
		"repeated from 9":             {"w@_e-12!3", 9, []string{"delete j@11", "end_of_snapshot 12 count=4 resumed=true"}},
		"before the first change":     {"w@_e-12!4", 9, []string{"reset expired"}},
		"nothing is known":            {"w@_e-12!12", 9, []string{"reset expired"}},
		"in a catch-up":               {"w@_e-11/12!1", 9, []string{"delete j@11", "upsert z@12", "end_of_snapshot 12 count=4 resumed=true"}},
		"in one, with more deletes":   {"w@_e-11/12", 9, []string{"reset expired"}},
		"forgotten":                   {"w@_e-12!1", 1, []string{"reset expired"}},
		"forgotten, and was known":    {"w@_e-12", 1, []string{"end_of_snapshot 12 count=3 resumed=true"}},
		"older, with no more deletes": {"w@_e-11!2", 9, []string{"delete j@11", "upsert z@12", "end_of_snapshot 12 count=4 resumed=true"}},
	} {
		l := logAt12(t, tt.remembered)
		if tt.remembered == 1 {
			mustCommitTo(t, l, 12, 12, remove("x", 0)) // so that j's is forgotten
		}
		p, err := stream.ParsePosition(tt.position)
		if err != nil {
			t.Fatal(err)
		}
		c, s := &client{state: map[string]string{}}, l.Subscribe(SubscribeOptions{Resume: &p})
		c.drain(s)
		if tt.want[0] == "reset expired" {
			c.log = c.log[:1]
		}
		if tt.remembered == 1 && len(c.log) == 2 && c.log[0] == "delete x@12" {
			c.log = c.log[1:]
		}
		if !slices.Equal(c.log, tt.want) {
			t.Errorf("%s, at %s: %q, want %q", name, p, c.log, tt.want)
		}
	}
}

// TestDeletesAreCompleteAtTheHead: a position on the way to the head does not vouch for deletes
// that the head brings.
func TestDeletesAreCompleteAtTheHead(t *testing.T) {
	l := logAt12(t, 9)
	c, s := &client{state: map[string]string{}}, l.Subscribe(SubscribeOptions{})
	c.drain(s)
	large := upsert("large", 13)
	large.Value = value(strings.Repeat("x", 2*storage.FlushSize))
	mustCommitTo(t, l, 13, 11, large)
	mustCommitTo(t, l, 13, 13, remove("k", 0))
	var b Batch
	var got []string
	for s.Next(&b) {
		p, _ := s.Position()
		got = append(got, unnamed(p))
	}
	if want := []string{"w@_e-13!2", "w@_e-13"}; !slices.Equal(got, want) {
		t.Errorf("positions %q, want %q", got, want)
	}
	mustCommitTo(t, l, 20, 14)
	if s.Bookmark(&b); unnamed(l.Snapshot().Position()) != "w@_e-20!6" {
		t.Errorf("at %v, want all deletes up to 14", l.Snapshot().Position())
	}
	if p, _ := s.Position(); unnamed(p) != "w@_e-20!6" {
		t.Errorf("the bookmark is at %v", p)
	}
	mustCommitTo(t, l, 20, 12)
	if got := unnamed(l.Snapshot().Position()); got != "w@_e-20!6" {
		t.Errorf("at %v: deletes that were complete stay so", got)
	}
}

// TestSourceWithoutDeletesCompleteTo: its commits are complete. So are those where deletes
// have revisions, whatever DeletesCompleteTo says.
func TestSourceWithoutDeletesCompleteTo(t *testing.T) {
	for _, epoch := range []string{"e", "_e"} {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, epoch, 10, upsert("a", 9))
		mustCommit(t, l, 11, remove("a", 9))
		if got := unnamed(l.Snapshot().Position()); got != "w@"+epoch+"-11" {
			t.Errorf("at %s", got)
		}
	}
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 9))
	mustCommitTo(t, l, 11, 3, upsert("a", 11))
	if got := l.Snapshot().Position().String(); got != "w@e-11" {
		t.Errorf("at %s", got)
	}
}

// TestPagesWithDeletesWithoutRevision: the position of a listing says how far deletes were known
// when it began. A page for which that is not true is refused.
func TestPagesWithDeletesWithoutRevision(t *testing.T) {
	l := logAt12(t, 9)
	first, err := l.Page("", 2)
	if err != nil || first.Position.String() != "w@_e-12!1" {
		t.Fatalf("%v, %v", first.Position, err)
	}
	mustCommitTo(t, l, 13, 13, remove("z", 0))
	second, err := l.Page(first.Next, 2)
	if err != nil || second.Position != first.Position || len(second.Resources) != 2 {
		t.Errorf("the next page: %+v, %v", second, err)
	}
	behind := NewWriter(Config{Watch: "w"})
	mustReplace(t, behind, "_e", 6, upsert("j", 5), upsert("x", 6))
	behind.next.DeletesCompleteTo = 0
	mustCommitTo(t, behind, 12, 8, upsert("y", 9), upsert("k", 11), upsert("z", 12))
	if _, err := behind.Page(first.Next, 2); err != ErrPageGone {
		t.Errorf("a replica with fewer deletes: %v, want ErrPageGone", err)
	}
}

// unnamed is a position as another replica would issue it.
func unnamed(p stream.Position) string {
	p.Run = 0
	return p.String()
}

// idleLog returns a log at the revision of its snapshot, with a reader that has it.
func idleLog(t *testing.T) (*Writer, *client, *stream.Position) {
	t.Helper()
	l := NewWriter(Config{Watch: "w"})
	if _, err := l.ReplaceCompleteTo("_e", []stream.Resource{upsert("j", 5).Resource, upsert("x", 6).Resource}, 6, 6); err != nil {
		t.Fatal(err)
	}
	inSync(l)
	c, p := visit(t, l, &client{}, nil)
	return l, c, p
}

// visit reads everything, and returns the position after it.
func visit(t *testing.T, l *Writer, c *client, from *stream.Position) (*client, *stream.Position) {
	t.Helper()
	s := l.Subscribe(SubscribeOptions{Resume: from})
	defer s.Close()
	c.drain(s)
	p, ok := s.Position()
	read, err := stream.ParsePosition(p.String())
	if !ok || err != nil || read != p {
		t.Fatalf("position %v is read as %v: %v", p, read, err)
	}
	return c, &read
}

// TestResumeInTheSameRun: the replica that issued a position knows what is newer,
// where no other one does.
func TestResumeInTheSameRun(t *testing.T) {
	l, c, p := idleLog(t)
	if p.Run == 0 || p.Run != l.Snapshot().Position().Run {
		t.Fatalf("at %v, the snapshot at %v: want the name of the run", p, l.Snapshot().Position())
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"idle", func() {}, []string{"bookmark 6 skipped=0 horizon=7", "end_of_snapshot 6 count=2 resumed=true"}},
		{"a delete at the same revision", func() { mustCommitTo(t, l, 6, 6, remove("j", 0)) },
			[]string{"bookmark 6 skipped=0 horizon=7", "delete j@6", "end_of_snapshot 6 count=1 resumed=true"}},
		{"after an outage", func() {
			if _, err := l.ReplaceCompleteTo("_e", []stream.Resource{upsert("y", 8).Resource}, 8, 8); err != nil {
				t.Fatal(err)
			}
		}, []string{"bookmark 6 skipped=0 horizon=9", "delete j@6", "delete x@8", "upsert y@8", "end_of_snapshot 8 count=1 resumed=true"}},
		{"whose end was seen since", func() { mustCommitTo(t, l, 12, 8, upsert("z", 12)) },
			[]string{"bookmark 8 skipped=0 horizon=12", "delete x@8", "upsert z@12", "end_of_snapshot 12 count=2 resumed=true"}},
	} {
		c.take()
		step.do()
		if _, p = visit(t, l, c, p); !slices.Equal(c.log, step.want) {
			t.Errorf("%s: %q, want %q", step.name, c.log, step.want)
		}
		if got, want := c.state, stateOf(l.Snapshot()); !maps.Equal(got, want) {
			t.Errorf("%s: has %v, want %v", step.name, got, want)
		}
	}
}

// TestRunsEnd: runs end with the log, and with what it has forgotten. A position
// inside a snapshot, or of another replica, names none.
func TestRunsEnd(t *testing.T) {
	for name, end := range map[string]func(l *Writer, p *stream.Position) *Writer{
		"another replica": func(*Writer, *stream.Position) *Writer { other, _, _ := idleLog(t); return other },
		"without a name":  func(l *Writer, p *stream.Position) *Writer { p.Run = 0; return l },
		"a new log": func(l *Writer, _ *stream.Position) *Writer {
			l.Discard(stream.Status{})
			mustReplace(t, l, "_e", 6)
			return l
		},
		"another order": func(l *Writer, _ *stream.Position) *Writer {
			mustReplace(t, l, "_f", 6)
			mustReplace(t, l, "_e", 6)
			return l
		},
		"a delete that is forgotten": func(l *Writer, _ *stream.Position) *Writer {
			l.history.MaxDeletes = 1
			mustCommitTo(t, l, 6, 6, remove("j", 0))
			mustCommitTo(t, l, 6, 6, remove("x", 0))
			return l
		},
	} {
		l, c, p := idleLog(t)
		l = end(l, p)
		c.take()
		if visit(t, l, c, p); !slices.Contains(c.log, "reset expired") {
			t.Errorf("%s: %q, want reset", name, c.log)
		}
		if got, want := c.state, stateOf(l.Snapshot()); !maps.Equal(got, want) {
			t.Errorf("%s: has %v, want %v", name, got, want)
		}
	}
	l, _, _ := idleLog(t)
	mustCommitTo(t, l, 9, 9, upsert("large", 9), upsert("y", 9))
	first, err := l.Page("", 1)
	if err != nil || first.Position.Run != 0 {
		t.Errorf("a page of several is at %v, %v: want no run, since another replica may have the next one", first.Position, err)
	}
	if all, err := l.Page("", 9); err != nil || all.Position != l.Snapshot().Position() {
		t.Errorf("a page of all is at %v, %v: want %v", all.Position, err, l.Snapshot().Position())
	}
	if all, err := l.Page(first.Next, 9); err != nil || all.Position.Run != 0 {
		t.Errorf("the last page is at %v, %v: want no run", all.Position, err)
	}
}

// TestResumeAtAnotherReplica: a client may get a part of what follows its position
// there, and come back to the first one, which never had it.
func TestResumeAtAnotherReplica(t *testing.T) {
	one, _, p := idleLog(t)
	two := logAt12(t, 9)
	mustCommitTo(t, one, 12, 12, upsert("y", 12))
	_, p = visit(t, one, &client{state: map[string]string{}}, p)
	s := two.Subscribe(SubscribeOptions{Resume: p})
	defer s.Close()
	var b Batch
	if !s.Next(&b) || !b.Boundary() {
		t.Fatal("nothing with a position comes first")
	}
	c := &client{}
	c.apply(&b)
	at, _ := s.Position()
	if want := []string{"bookmark 12 skipped=0"}; !slices.Equal(c.take(), want) || at.Run != 0 || unnamed(*p) != at.String() {
		t.Errorf("at %v, want %s", at, unnamed(*p))
	}
	c.state = map[string]string{}
	if c.drain(s); s.Outcome() != OutcomeExact {
		t.Errorf("%s: %q, want exact", s.Outcome(), c.log)
	}
	if at, _ = s.Position(); at.Run != 0 {
		t.Errorf("then at %v, want no run: the client may hold more than its position said", at)
	}
}
