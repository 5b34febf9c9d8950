package watch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// The histories of this file once broke a guarantee, or would have. Each is as short
// as possible.

func put(key string, revision uint64) log.Change {
	return log.Change{Resource: stream.Resource{Key: key, Revision: revision, Value: []byte("1")}}
}

// logAt5 returns a log with one resource, x, at revision 5.
func logAt5(t *testing.T, c log.Config) *log.Writer {
	t.Helper()
	c.Watch = "w"
	l := newLog(c)
	mustReplace(t, l, 1)
	mustCommit(t, l, 5, put("x", 5))
	return l
}

func newLog(c log.Config) *log.Writer {
	l := log.NewWriter(c)
	l.SetStatus(stream.Status{State: stream.InSync, Since: time.Now()})
	return l
}

func mustReplace(t *testing.T, l *log.Writer, revision uint64, snapshot ...log.Change) {
	t.Helper()
	mustBegin(t, l, "e", revision, snapshot...)
}

func mustBegin(t *testing.T, l *log.Writer, epoch string, revision uint64, snapshot ...log.Change) {
	t.Helper()
	resources := make([]stream.Resource, len(snapshot))
	for i, c := range snapshot {
		resources[i] = c.Resource
	}
	if _, err := l.Replace(epoch, resources, revision); err != nil {
		t.Fatal(err)
	}
}

func mustCommit(t *testing.T, l *log.Writer, revision uint64, changes ...log.Change) {
	t.Helper()
	if _, err := l.Commit(changes, revision); err != nil {
		t.Fatal(err)
	}
}

// follow connects and reads everything. It returns the connection, and the last
// id of it.
func follow(h *streamtest.History, l *log.Writer, d streamtest.Dial) (*streamtest.Connection, *streamtest.Mark) {
	c := h.Connect(l, d)
	c.Drain()
	marks := c.Marks()
	return c, marks[len(marks)-1]
}

// A replica that cannot resume an id sends reset. The subscriber clears its state
// and is cut off; the next replica could resume its previous id.
func TestResetTakesTheOldIDAway(t *testing.T) {
	a := logAt5(t, log.Config{})
	fresh := newLog(log.Config{Watch: "w"})
	mustReplace(t, fresh, 6, put("x", 5), put("y", 6))
	h := &streamtest.History{}
	_, id := follow(h, a, streamtest.Dial{})
	cut := h.Connect(fresh, streamtest.Dial{From: id})
	cut.CutAfter(1)
	for _, m := range cut.Marks() {
		id = m
	}
	mustCommit(t, a, 6, put("y", 6))
	c, _ := follow(h, a, streamtest.Dial{From: id, Begin: cut.State()})
	if _, ok := c.State()["x"]; !ok {
		t.Errorf("x is missing:\n%s%s", cut.Describe(), c.Describe())
	}
}

// An upstream gives deletes no revision. One replica is at 5 with x; x is
// deleted, which is still 5; a fresh replica takes its snapshot there.
func TestSnapshotAtTheRevisionOfAnUnnumberedDelete(t *testing.T) {
	const epoch = stream.UnnumberedEpoch + "e"
	first, fresh := newLog(log.Config{Watch: "w"}), newLog(log.Config{Watch: "w"})
	mustBegin(t, first, epoch, 1)
	mustCommit(t, first, 5, put("x", 5))
	h := &streamtest.History{}
	_, id := follow(h, first, streamtest.Dial{})
	mustBegin(t, fresh, epoch, 5)
	c, _ := follow(h, fresh, streamtest.Dial{From: id})
	if _, ghost := c.State()["x"]; ghost {
		t.Errorf("x was deleted, and is kept for ever:\n%s", c.Describe())
	}
}

// Two replicas are at 5. One continues to 7; its subscriber is cut off inside that
// flush, with k at 7 and the id of 5. Then k is deleted, while the other replica is
// without its upstream from 5 to 10, so that it never hears of k.
func TestCutInsideOfAFlushThenAReplicaWithAGap(t *testing.T) {
	a, b := logAt5(t, log.Config{}), logAt5(t, log.Config{})
	h := &streamtest.History{}
	cut, id := follow(h, a, streamtest.Dial{})
	mustCommit(t, a, 7, put("k", 7), put("y", 7))
	cut.CutAfter(1)
	mustReplace(t, b, 10, put("x", 5), put("y", 7))
	c, _ := follow(h, b, streamtest.Dial{From: id, Begin: cut.State()})
	if _, ghost := c.State()["k"]; ghost {
		t.Errorf("k was deleted, and is kept for ever:\n%s", c.Describe())
	}
}

// A resync from 5 to 10 brings a change of 8 in a flush of its own, since it is
// large and more follows. The subscriber holds the state at 10: what was there at 8
// and gone at 10 was never known here.
func TestIDAfterAResyncIsThatOfItsEnd(t *testing.T) {
	l := logAt5(t, log.Config{})
	c, _ := follow(&streamtest.History{}, l, streamtest.Dial{})
	large := put("x", 8)
	large.Value = []byte(`"` + strings.Repeat("x", 100<<10) + `"`)
	mustReplace(t, l, 10, large)
	mustCommit(t, l, 11, put("y", 11))
	c.Step()
	marks := c.Marks()
	if got := marks[len(marks)-1].Position; got.AsOf < 10 || got.Partial() {
		t.Errorf("the id after the resync is %v, want one of 10 or later:\n%s", got, c.Describe())
	}
}

// The newest resource was deleted before a fresh replica took its snapshot, which is
// therefore older than what the other one has given out.
func TestPositionOfWhatWasDeletedBeforeASnapshot(t *testing.T) {
	const epoch = stream.UnnumberedEpoch + "e"
	first, fresh := newLog(log.Config{Watch: "w"}), newLog(log.Config{Watch: "w"})
	mustBegin(t, first, epoch, 1)
	mustCommit(t, first, 5, put("x", 5))
	h := &streamtest.History{}
	_, id := follow(h, first, streamtest.Dial{})
	mustBegin(t, fresh, epoch, 1)
	mustCommit(t, fresh, 7, put("y", 7))
	c, _ := follow(h, fresh, streamtest.Dial{From: id})
	if _, ghost := c.State()["x"]; ghost {
		t.Errorf("x was deleted, and is kept for ever:\n%s", c.Describe())
	}
}
