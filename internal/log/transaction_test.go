package log

import (
	"errors"
	"maps"
	"testing"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// TestLastChangeOfAKeyCounts: the last in the source's order counts, whatever the
// revisions. A delete may have none, or that of the version that it ends.
func TestLastChangeOfAKeyCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		changes []Change
		there   bool
		shown   uint64 // revision of what is left of k
	}{
		"written and deleted":                {[]Change{upsert("k", 12), remove("k", 0)}, false, 12},
		"deleted under its last version":     {[]Change{upsert("k", 12), remove("k", 12)}, false, 12},
		"deleted under an older version":     {[]Change{upsert("k", 12), remove("k", 5)}, false, 12},
		"deleted and written":                {[]Change{remove("k", 0), upsert("k", 12)}, true, 12},
		"written twice":                      {[]Change{upsert("k", 11), upsert("k", 12)}, true, 12},
		"reported twice, the older one last": {[]Change{upsert("k", 12), upsert("k", 11)}, true, 12},
		"written, deleted, written":          {[]Change{upsert("k", 11), remove("k", 0), upsert("k", 12)}, true, 12},
		"written, deleted, among others":     {[]Change{upsert("y", 12), upsert("k", 11), upsert("z", 12), remove("k", 0)}, false, 11},
		"written and deleted, numbered":      {[]Change{upsert("k", 11), remove("k", 12)}, false, 12},
		"deleted, written, deleted again":    {[]Change{remove("k", 5), upsert("k", 11), remove("k", 11)}, false, 11},
		"deleted last, the first one late":   {[]Change{upsert("k", 12), upsert("k", 11), remove("k", 0)}, false, 12},
	} {
		for _, epoch := range []string{"e", stream.UnnumberedEpoch + "e"} {
			l := NewWriter(Config{Watch: "w"})
			mustReplace(t, l, epoch, 10, upsert("k", 5), upsert("x", 10))
			mustCommit(t, l, 12, tt.changes...)
			_, e := l.head.Load().Get(l.framing, storage.NewKey("k"))
			s, _ := l.head.Load().Find(e.Seq)
			if got := l.framing.ShownRevision(s, e); e.Is(storage.IsDelete) == tt.there || got != tt.shown {
				t.Errorf("%s, epoch %s: deleted %t at %d; want %t at %d", name, epoch, e.Is(storage.IsDelete), got, !tt.there, tt.shown)
			}
		}
	}
}

// TestDeleteWithoutARevisionIsRepeated: two replicas follow the same history. One commits
// changes and then deletes without a revision, the other one all of it at once, so that
// it never shows one of the resources. A reader that comes from the first, with the
// changes and not the deletes, gets the deletes from the other.
func TestDeleteWithoutARevisionIsRepeated(t *testing.T) {
	for _, epoch := range []string{"e", stream.UnnumberedEpoch + "e"} {
		for _, shown := range []uint64{0, 5} {
			begin := func() *Writer {
				l := NewWriter(Config{Watch: "w"})
				mustReplace(t, l, epoch, 6, upsert("j", 5), upsert("x", 6))
				mustCommit(t, l, 10, upsert("x", 10))
				inSync(l)
				return l
			}
			one, both := begin(), begin()
			c, s := &client{}, one.Subscribe(SubscribeOptions{})
			mustCommit(t, one, 11, upsert("k", 11), upsert("n", 11))
			c.drain(s)
			position, _ := s.Position()
			mustCommit(t, one, 11, remove("j", shown), remove("n", 0))
			mustCommit(t, both, 11, upsert("k", 11), upsert("n", 11), remove("j", shown), remove("n", 0))
			for _, l := range []*Writer{one, both} {
				came := &client{state: maps.Clone(c.state)}
				s := l.Subscribe(SubscribeOptions{Resume: &position})
				came.drain(s)
				if want := stateOf(l.Snapshot()); s.Outcome() != OutcomeExact || !maps.Equal(came.state, want) {
					t.Errorf("epoch %s, delete at %d: %s %q\nholds %v, want %v", epoch, shown, s.Outcome(), came.log, came.state, want)
				}
			}
		}
	}
}

// TestNothingIsNewerThanItsCommit: others of that revision may be missing, and the
// log must not claim that it has everything up to there.
func TestNothingIsNewerThanItsCommit(t *testing.T) {
	l := newSyncedLog(t, "e", 10, upsert("a", 1))
	for _, c := range []Change{upsert("b", 12), remove("a", 12)} {
		if _, err := l.Commit([]Change{c}, 11); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("a commit at 11 with %+v: %v, want %v", c, err, stream.ErrInvalid)
		}
	}
	if _, err := l.Replace("e", []stream.Resource{upsert("b", 12).Resource}, 11); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("a snapshot at 11 with a resource of 12: %v, want %v", err, stream.ErrInvalid)
	}
	if v := l.Snapshot(); v.Revision() != 10 || v.Count() != 1 {
		t.Errorf("the log is at %d with %d resources, want it unchanged", v.Revision(), v.Count())
	}
}
