package streamtest

import (
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// A revision that changes nothing is nothing newer than the state before: a reader that is slow
// may keep that.
func TestLookIgnoresRevisionsWithoutAChange(t *testing.T) {
	w := log.NewWriter(log.Config{Watch: "w", Account: memory.NewAccount(0, nil)})
	if _, err := w.Replace("e", []stream.Resource{{Key: "a", Value: []byte("1"), Revision: 1}}, 1); err != nil {
		t.Fatal(err)
	}
	h := &History{}
	c := h.Connect(w.Log, Dial{MinRate: 1})
	for _, step := range []struct {
		revision uint64
		changes  []log.Change
		newer    bool
	}{
		{revision: 1},
		{revision: 5},
		{revision: 7, changes: []log.Change{{Resource: stream.Resource{Key: "a", Value: []byte("2"), Revision: 7}}}, newer: true},
	} {
		if _, err := w.Commit(step.changes, step.revision); err != nil {
			t.Fatal(err)
		}
		c.Look()
		if newer := !c.newerSince(1).IsZero(); newer != step.newer {
			t.Errorf("at revision %d: something newer than revision 1 is there: %v, want %v", step.revision, newer, step.newer)
		}
	}
}

// The state that a reader is sent is known when it is read: if the replica was looked at first
// when a revision without a change had come, that revision is nothing newer either.
func TestLookFirstAtARevisionWithoutAChange(t *testing.T) {
	w := log.NewWriter(log.Config{Watch: "w", Account: memory.NewAccount(0, nil)})
	if _, err := w.Replace("e", []stream.Resource{{Key: "a", Value: []byte("1"), Revision: 1}}, 1); err != nil {
		t.Fatal(err)
	}
	h := &History{}
	c := h.Connect(w.Log, Dial{MinRate: 1})
	c.Drain()
	if _, err := w.Commit([]log.Change{{Resource: stream.Resource{Key: "b", Revision: 2}, Deleted: true}}, 2); err != nil {
		t.Fatal(err)
	}
	c.Look()
	if got := c.newerSince(1); !got.IsZero() {
		t.Errorf("a delete of what is not there is something newer, since %v", got)
	}
}

// What a replica had before its upstream went back is nothing newer.
func TestNewerSinceTheUpstreamWentBack(t *testing.T) {
	c := newHand().connect(nil).c
	c.heads = []head{{revision: 9, at: at(1)}, {revision: 4, at: at(2)}}
	if got := c.newerSince(4); !got.IsZero() {
		t.Errorf("something is newer than the head, since %v", got)
	}
	c.heads = append(c.heads, head{revision: 5, at: at(3)}, head{revision: 6, at: at(4)})
	if got := c.newerSince(4); !got.Equal(at(3)) {
		t.Errorf("got %v, want %v", got, at(3))
	}
}
