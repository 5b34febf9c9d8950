package streamtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// The histories of this file are written by hand. One is right, and passes all
// checkers; each of the others breaks one guarantee, and the checker of that
// name must report it: a check that cannot fail is useless.

var epochStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epochStart.Add(time.Duration(seconds) * time.Second) }

// handTruth: a and b at 2 in one transaction; a again at 3; b deleted at 4; c at
// 5; a and c in one transaction at 6.
func handTruth() *Truth {
	t := NewTruth("e", 1)
	put := func(key string, revision uint64, value string) log.Change {
		return log.Change{Resource: stream.Resource{Key: key, Revision: revision, Value: []byte(value)}}
	}
	t.Append(2, put("a", 2, "1"), put("b", 2, "2"))
	t.Append(3, put("a", 3, "3"))
	t.Append(4, log.Change{Resource: stream.Resource{Key: "b", Revision: 4}, Deleted: true})
	t.Append(5, put("c", 5, "5"))
	t.Append(6, put("a", 6, "6"), put("c", 6, "7"))
	return t
}

func reset(reason stream.ResetReason) stream.Event {
	return stream.Event{Type: stream.Reset, Watch: "w", Reason: string(reason)}
}

func upsert(key string, revision uint64, value string) stream.Event {
	return stream.Event{Type: stream.Upsert, Watch: "w", Resource: stream.Resource{Key: key, Revision: revision, Value: []byte(value)}}
}

func remove(key string, revision uint64) stream.Event {
	return stream.Event{Type: stream.Delete, Watch: "w", Resource: stream.Resource{Key: key, Revision: revision}}
}

func end(revision uint64, count int) stream.Event {
	return stream.Event{Type: stream.EndOfSnapshot, Watch: "w", Revision: revision, Count: count}
}

func resumed(revision uint64, count int) stream.Event {
	e := end(revision, count)
	e.Resumed = true
	return e
}

func bookmark(revision, skipped uint64) stream.Event {
	return stream.Event{Type: stream.Bookmark, Watch: "w", Revision: revision, Skipped: skipped}
}

func status(s stream.State) stream.Event {
	return stream.Event{Type: stream.StatusChange, Watch: "w", State: s}
}

// hand builds a connection; a flush is a position ("" for none) and its events.
type hand struct {
	history *History
	c       *Connection
	state   State
	order   *int
}

func newHand() *hand {
	order := 0
	return &hand{order: &order, history: &History{
		Truth: handTruth(), Heartbeat: 5 * time.Second, StaleAfter: time.Second, Settled: true,
		Freshness: map[string][]Freshness{"A": {{At: at(0), Fresh: true}}},
	}}
}

func (h *hand) connect(from *Mark) *hand {
	h.c = &Connection{Client: "c", Replica: "A", Opened: at(1), Read: at(1000), From: from}
	if from != nil {
		h.c.Begin = from.State
	}
	h.state = h.c.Begin.Clone()
	h.history.Add(h.c)
	return h
}

func (h *hand) flush(seconds int, id string, events ...stream.Event) *hand {
	*h.order++
	f := Flush{Order: *h.order, At: at(seconds), Head: 6, Horizon: 2, Events: events}
	for _, e := range events {
		h.state.Apply(e)
	}
	if id != "" {
		p, err := stream.ParsePosition("w@" + id)
		if err != nil {
			panic(err)
		}
		f.Mark = &Mark{Position: p, State: h.state.Clone()}
	}
	h.c.Flushes = append(h.c.Flushes, f)
	return h
}

// cut adds a flush whose rest, including the id, did not arrive.
func (h *hand) cut(seconds int, events ...stream.Event) *hand {
	h.flush(seconds, "", events...).c.Flushes[len(h.c.Flushes)-1].Cut = true
	return h.close(seconds)
}

// again connects with the newest id. holds: the subscriber has dropped the
// events after it.
func (h *hand) again(holds bool) *hand {
	held, ahead := h.state, uint64(0)
	h.connect(h.newest())
	if !holds {
		for _, v := range held {
			ahead = max(ahead, v.Revision)
		}
		h.c.Begin, h.c.Ahead, h.state = held, ahead, held.Clone()
	}
	return h
}

// newest is the newest id.
func (h *hand) newest() *Mark {
	for i := len(h.c.Flushes) - 1; ; i-- {
		if m := h.c.Flushes[i].Mark; m != nil {
			return m
		}
	}
}

// at sets the revision of the replica that sent the newest flush.
func (h *hand) at(head uint64) *hand {
	h.c.Flushes[len(h.c.Flushes)-1].Head = head
	return h
}

func (h *hand) close(seconds int) *hand {
	h.c.Closed = at(seconds)
	return h
}

// mark returns the id of the n-th flush.
func (h *hand) mark(n int) *Mark { return h.c.Flushes[n].Mark }

// toThree is a connection that took a snapshot at 3.
func (h *hand) toThree() *hand {
	return h.connect(nil).flush(1, "e-3", reset(stream.ResetInitial), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2))
}

// toTwo is a connection that took a snapshot at 2.
func (h *hand) toTwo() *hand {
	return h.connect(nil).flush(1, "e-2", reset(stream.ResetInitial), upsert("a", 2, "1"), upsert("b", 2, "2"), end(2, 2))
}

func (h *hand) toFive() *hand {
	return h.toThree().flush(2, "e-4", remove("b", 4)).flush(2, "e-5", upsert("c", 5, "5"))
}

func (h *hand) toSix() *hand {
	return h.toFive().flush(2, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"))
}

func TestCheckersAcceptCorrectHistories(t *testing.T) {
	right := map[string]*hand{
		"live": newHand().toSix(),
		"resumed by changes": func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-6", remove("b", 4), upsert("c", 5, "5"), upsert("a", 6, "6"), upsert("c", 6, "7"), resumed(6, 2))
		}(),
		"resumed, and reset while it catches up": resetMeanwhile(true),
		"resumed in mid-snapshot": func() *hand {
			h := newHand().connect(nil).flush(1, "e-2/3", reset(stream.ResetInitial), upsert("b", 2, "2")).close(2)
			return h.connect(h.mark(0)).flush(3, "e-2/6", remove("b", 4)).flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"), resumed(6, 2))
		}(),
		"continued with a newer state": newHand().connect(nil).
			flush(1, "e-2/3", reset(stream.ResetInitial), upsert("b", 2, "2")).
			flush(2, "e-2/5", status(stream.CatchingUp), remove("b", 4)).
			flush(2, "e-5", upsert("a", 3, "3"), upsert("c", 5, "5"), resumed(5, 2), status(stream.InSync)).
			flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7")),
		"continued with a newer state twice": newHand().connect(nil).
			flush(1, "e-3/5", reset(stream.ResetInitial), upsert("a", 3, "3")).
			flush(2, "e-5/6", status(stream.CatchingUp), upsert("c", 5, "5")).
			flush(2, "e-6", status(stream.CatchingUp), upsert("a", 6, "6"), upsert("c", 6, "7"), resumed(6, 2), status(stream.InSync)),
		"caught up, with a newer state": newHand().toThree().
			flush(2, "", status(stream.CatchingUp), remove("b", 4)).
			flush(2, "", upsert("c", 5, "5")).
			flush(2, "e-6", status(stream.CatchingUp), upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 0), status(stream.InSync)),
		"caught up": newHand().toThree().
			flush(2, "e-3", status(stream.CatchingUp)).flush(2, "", remove("b", 4)).
			flush(2, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 1), status(stream.InSync)),
		"caught up, as its id says before the bookmark": newHand().toThree().
			flush(2, "e-6", status(stream.CatchingUp), remove("b", 4), upsert("a", 6, "6"), upsert("c", 6, "7")).
			flush(2, "e-6", bookmark(6, 1), status(stream.InSync)),
		"falls behind in the middle of a flush": newHand().toTwo().
			flush(2, "", upsert("a", 3, "3"), status(stream.CatchingUp), remove("b", 4)).
			flush(2, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 0), status(stream.InSync)),
		"says that it is consistent, and where": newHand().toThree().says(true, 3).
			flush(2, "e-3", status(stream.CatchingUp)).flush(2, "e-3/6", remove("b", 4)).
			flush(2, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 1), status(stream.InSync)).says(true, 6),
		"gives up the state that it is too slow for": newHand().slowly(1000).
			flush(1, "e-2/3", reset(stream.ResetInitial), upsert("b", 2, "2")).newer(2, 5).
			flush(60, "e-2/5", status(stream.CatchingUp), remove("b", 4)).
			flush(120, "e-5", upsert("a", 3, "3"), upsert("c", 5, "5"), resumed(5, 2), status(stream.InSync)).
			flush(120, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7")),
		"cut off, and resumed at a replica that is behind": newHand().toTwo().cut(2, upsert("a", 3, "3"), remove("b", 4), upsert("c", 5, "5")).
			again(false).flush(3, "e-2", resumed(2, 2)).at(2).
			flush(3, "e-3", upsert("a", 3, "3")).flush(3, "e-4", remove("b", 4)).flush(3, "e-5", upsert("c", 5, "5")).
			flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7")),
		"cut off, and goes back": newHand().toTwo().cut(2, upsert("a", 3, "3"), remove("b", 4), upsert("c", 5, "5"), upsert("a", 6, "6")).
			again(false).flush(3, "e-2", resumed(2, 2)).at(2).
			flush(3, "e-3", upsert("a", 3, "3")).flush(3, "e-4", remove("b", 4)).flush(3, "e-5", upsert("c", 5, "5")).
			flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7")),
		"cut off, drops it, and comes to a replica that is behind": newHand().toTwo().cut(2, upsert("a", 3, "3"), remove("b", 4), upsert("c", 5, "5")).
			again(true).flush(3, "e-2", resumed(2, 2)).at(2).
			flush(3, "e-3", upsert("a", 3, "3")).flush(3, "e-4", remove("b", 4)).flush(3, "e-5", upsert("c", 5, "5")).
			flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7")),
	}
	for name, h := range right {
		if err := CheckAll(h.history); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// resetMeanwhile is a subscriber that is reset while it catches up with a replica that gave it
// its id.
func resetMeanwhile(viewsBounded bool) *hand {
	h := newHand().toThree().close(2)
	h.history.ViewsBounded = viewsBounded
	return h.connect(h.mark(0)).flush(3, "e-2/6", remove("b", 4)).
		flush(4, "e-6", reset(stream.ResetExpired), upsert("a", 6, "6"), upsert("c", 6, "7"), end(6, 2))
}

// newHiding is newHand for a part of the upstream: b is hidden, c until 6, and d, which is
// there from the beginning, from 4 on.
func newHiding() *hand {
	h := newHand()
	t := handTruth()
	d := t.epochs[0]
	d.txns[0].resources = map[string]stream.Resource{"d": {Key: "d", Revision: 1, Value: []byte("1")}}
	d.txns[3].Changes = append(d.txns[3].Changes, log.Change{Resource: stream.Resource{Key: "d", Revision: 4, Value: []byte("4")}})
	h.history.Hides = true
	h.history.Truth = t.Narrow(func(epoch string) string { return epoch }, func(r stream.Resource) (stream.Resource, bool) {
		return r, r.Key != "b" && (r.Key != "c" || r.Revision > 5) && (r.Key != "d" || r.Revision < 4)
	})
	return h
}

// partAtThree is a connection that took a snapshot of that part at 3.
func (h *hand) partAtThree() *hand {
	return h.connect(nil).flush(1, "e-3", reset(stream.ResetInitial), upsert("d", 1, "1"), upsert("a", 3, "3"), end(3, 2))
}

// skipsInPart catches up with that part from 3 to 6, which has three changes.
func (h *hand) skipsInPart(skipped uint64) *hand {
	return h.partAtThree().flush(2, "e-6", status(stream.CatchingUp), remove("d", 4), upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, skipped))
}

// hidingNothing makes it a part that may have deletes of what was never in it.
func (h *hand) hidingNothing() *hand {
	h.history.Hides = false
	return h
}

// TestSkippedInAPart: a replica that does not know whether a resource was in a part before its
// last change has a delete of it, which counts.
func TestSkippedInAPart(t *testing.T) {
	if err := CheckConflating(newHiding().hidingNothing().skipsInPart(6).history); err != nil {
		t.Error(err)
	}
}

// overhears adds markers to the bytes of the newest flush.
func (h *hand) overhears(markers ...string) *hand {
	h.c.Flushes[len(h.c.Flushes)-1].markers = markers
	return h
}

// TestNothingHiddenIsSent: a subscriber may learn that something has left what it sees, and
// see what has entered it. A snapshot that it is in the middle of goes on with older values,
// also where a reset follows at once.
func TestNothingHiddenIsSent(t *testing.T) {
	for name, h := range map[string]*hand{
		"live": newHiding().partAtThree().
			flush(2, "e-4", remove("d", 4)).
			flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7")),
		"rest of a snapshot, and a reset": newHiding().connect(nil).
			flush(1, "e-1/3", reset(stream.ResetInitial), upsert("d", 1, "1")).
			flush(2, "e-6", append([]stream.Event{upsert("a", 3, "3"), end(3, 2)}, partAtSix()...)...),
	} {
		if err := CheckAll(h.history); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// partAtSix is a snapshot of that part at 6, for a subscriber that has an older one.
func partAtSix() []stream.Event {
	return []stream.Event{reset(stream.ResetExpired), upsert("a", 6, "6"), upsert("c", 6, "7"), end(6, 2)}
}

// says sets what the client says at the newest id.
func (h *hand) says(consistent bool, revision uint64) *hand {
	m := h.newest()
	m.Consistent, m.Revision = consistent, revision
	return h
}

// slowly is a connection that must take so many bytes a second.
func (h *hand) slowly(rate int64) *hand {
	h.connect(nil)
	h.c.Slow, h.c.MinRate = true, rate
	return h
}

// newer makes the replica have another revision from some time on.
func (h *hand) newer(seconds int, revision uint64) *hand {
	h.c.heads = append(h.c.heads, head{revision, "", at(seconds)})
	return h
}

// TestToldToAPrincipal: what a principal is told is only what it could see at some time, whatever
// it says that it has.
func TestToldToAPrincipal(t *testing.T) {
	first := Right{Part: handTruth().Narrow(func(epoch string) string { return epoch }, func(r stream.Resource) (stream.Resource, bool) {
		return r, r.Key != "c"
	}), To: 4}
	second := Right{Part: handTruth().Narrow(func(epoch string) string { return epoch }, func(r stream.Resource) (stream.Resource, bool) {
		return r, r.Key == "c"
	}), To: 1 << 63}
	for name, c := range map[string]struct {
		e    stream.Event
		told bool
	}{
		"a value that it may see":            {upsert("c", 6, "7"), true},
		"a value from before the right":      {upsert("c", 5, "5"), true},
		"a value of its former right":        {upsert("b", 2, "2"), true},
		"one from before its former right":   {upsert("a", 2, "1"), true},
		"one from after its former right":    {upsert("a", 6, "6"), false},
		"a delete of what it could see":      {remove("b", 9), true},
		"a delete of what it never could":    {remove("d", 4), false},
		"what is neither upsert nor delete":  {bookmark(2, 0), true},
		"a delete of what was in its former": {remove("a", 6), true},
	} {
		if err := Told(c.e, first, second); (err == nil) != c.told {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMarkers: they are found wherever they are.
func TestMarkers(t *testing.T) {
	got := markersIn([]byte("data: "+Marker(12)+Marker(3)+"\n"), []byte("Q,"+Marker(12)))
	if want := []string{"Q12Q", "Q3Q"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestCheckersRejectBrokenHistories(t *testing.T) {
	broken := []struct {
		guarantee, name string
		history         *hand
		says            string
	}{
		{"Consistent", "key missing", newHand().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), upsert("a", 3, "3"), end(3, 1)), `"b" is missing`},
		{"Consistent", "key extra", newHand().connect(nil).
			flush(1, "e-4", reset(stream.ResetInitial), upsert("b", 2, "2"), upsert("a", 3, "3"), end(4, 2)), `"b" is extra`},
		{"Consistent", "key twice", newHand().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), upsert("b", 2, "2"), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2)), `"b" twice`},
		{"Consistent", "older value", newHand().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), upsert("a", 2, "1"), upsert("b", 2, "2"), end(3, 2)), `"a" is 1 of revision 2`},
		{"Consistent", "newer value", newHand().connect(nil).
			flush(1, "e-2", reset(stream.ResetInitial), upsert("b", 2, "2"), upsert("a", 3, "3"), end(2, 2)), `"a" is 3 of revision 3`},
		{"Consistent", "wrong count", newHand().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 3)), "count is 3"},
		{"Consistent", "delete in a snapshot", newHand().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), remove("c", 3), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2)), "inside of a snapshot"},
		{"Consistent", "key twice, and not newer", newHand().connect(nil).
			flush(1, "e-2/3", reset(stream.ResetInitial), upsert("b", 2, "2")).
			flush(2, "e-3", status(stream.CatchingUp), upsert("b", 2, "2"), upsert("a", 3, "3"), resumed(3, 2)), `"b" twice`},
		{"Consistent", "newer state, and not resumed", newHand().connect(nil).
			flush(1, "e-2/3", reset(stream.ResetInitial), upsert("b", 2, "2")).
			flush(2, "e-3", status(stream.CatchingUp), upsert("a", 3, "3"), end(3, 2)), "resumed is false"},
		{"Conflating", "key twice in a catch-up with a newer state, and not newer", newHand().toThree().
			flush(2, "e-3", status(stream.CatchingUp), remove("b", 4), upsert("c", 5, "5")).
			flush(2, "e-6", status(stream.CatchingUp), upsert("c", 5, "5"), upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 0)), `"c" twice`},
		{"Consistent", "resumed, and was not", newHand().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), upsert("b", 2, "2"), upsert("a", 3, "3"), resumed(3, 2)), "resumed is true"},

		{"Gapless", "change lost", newHand().toThree().
			flush(2, "e-4", remove("b", 4)).flush(2, "e-6", upsert("a", 6, "6")), `"c" is missing`},
		{"Gapless", "delete lost", newHand().toThree().flush(2, "e-5", upsert("c", 5, "5")), `"b" is extra`},
		{"Gapless", "lost before a bookmark", newHand().toThree().flush(2, "", bookmark(4, 0)), `"b" is extra`},
		{"Gapless", "end never reached", newHand().toFive(), "at the end"},
		{"Gapless", "events after the id are kept", newHand().toTwo().cut(2, upsert("a", 3, "3"), remove("b", 4), upsert("c", 5, "5")).
			again(false).flush(3, "e-2", resumed(2, 2)).at(2).
			flush(3, "e-6", upsert("a", 3, "3"), remove("b", 4), upsert("a", 6, "6")), `"c" is 5`},

		{"Ordered", "key goes back", newHand().toThree().flush(2, "", upsert("a", 2, "1")).flush(2, "e-4", remove("b", 4)), "went back to revision 2"},
		{"Ordered", "value that never was", newHand().toThree().flush(2, "e-4", upsert("a", 4, "99")), "never was"},
		{"Ordered", "value of before its deletion", newHand().toFive().flush(2, "e-5", upsert("b", 2, "2")), "went back to revision 2"},
		{"Ordered", "snapshot falls", newHand().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), upsert("a", 3, "3"), upsert("b", 2, "2"), end(3, 2)), "after one of 3"},
		{"Ordered", "live falls", newHand().toThree().flush(2, "e-5", upsert("c", 5, "5"), remove("b", 4), upsert("a", 3, "3")), ""},
		{"Ordered", "catch-up mixes", newHand().toThree().
			flush(2, "e-5", status(stream.CatchingUp), upsert("c", 5, "5"), remove("b", 4), bookmark(5, 0)), "delete after an upsert"},

		{"Ordered", "goes back to before the id", newHand().toThree().cut(2, remove("b", 4), upsert("c", 5, "5"), upsert("a", 6, "6")).
			again(false).flush(3, "e-3", resumed(3, 2)).at(3).flush(3, "", upsert("a", 2, "1")).flush(3, "e-4", remove("b", 4)), "went back to revision 2"},
		{"Ordered", "goes back at a replica that is not behind", newHand().toTwo().cut(2, upsert("a", 3, "3"), remove("b", 4), upsert("c", 5, "5"), upsert("a", 6, "6")).
			again(false).flush(3, "e-6", remove("b", 4), upsert("c", 5, "5"), upsert("a", 3, "3"), resumed(6, 2)), "went back to revision 3"},
		{"Ordered", "goes back after the replica has passed", newHand().toTwo().cut(2, upsert("a", 3, "3")).
			again(false).flush(3, "e-2", resumed(2, 2)).at(2).flush(3, "e-3", upsert("a", 3, "3")).
			flush(3, "e-4", upsert("a", 2, "1"), remove("b", 4)), "went back to revision 2"},
		{"Ordered", "goes back, and has dropped what came after the id", newHand().toThree().cut(2, remove("b", 4)).
			again(true).flush(3, "e-4", upsert("a", 2, "1"), remove("b", 4), resumed(4, 1)).at(3), "went back to revision 2"},

		{"Atomic", "id inside of a transaction", newHand().toFive().
			flush(2, "e-6", upsert("a", 6, "6")).flush(2, "e-6", upsert("c", 6, "7")), `"c" is 5`},
		{"Atomic", "flush ends inside of a transaction", newHand().toFive().
			flush(2, "", upsert("a", 6, "6")).flush(2, "e-6", upsert("c", 6, "7")), "no id was sent"},
		{"Atomic", "id from before the deletes of a catch-up", newHand().toThree().
			flush(2, "e-3", status(stream.CatchingUp), remove("b", 4)).
			flush(2, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 1)), `"b" is missing`},
		{"Atomic", "id from before the deletes of a resume", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-3", remove("b", 4)).flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"), resumed(6, 2))
		}(), `"b" is missing`},
		{"Atomic", "id of another watch, while half of a transaction was received", newHand().toFive().
			flush(2, "e-5", upsert("a", 6, "6")).flush(3, "e-6", upsert("c", 6, "7")), `"a" is 6`},
		{"Atomic", "answer with half of a transaction", func() *hand {
			h := newHand().toFive().close(2)
			return h.connect(h.mark(2)).flush(3, "e-5", resumed(5, 2), upsert("a", 6, "6")).close(3)
		}(), `"a" is 6`},
		{"Atomic", "id in the middle of a catch-up, with a delete to come", newHand().toThree().
			flush(2, "e-3/6", status(stream.CatchingUp)), `"b" is extra`},
		{"Atomic", "id in the middle of a catch-up, with an upsert to come", newHand().toTwo().
			flush(2, "e-3/5", status(stream.CatchingUp), remove("b", 4)), `"a" is 1`},
		{"Consistent", "says that it is consistent in the middle of a resume", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-3/6", bookmark(3, 0), remove("b", 4)).says(true, 3)
		}(), "in the middle"},
		{"Consistent", "says that it is consistent, and is not", newHand().toFive().
			flush(2, "e-6", upsert("a", 6, "6")).says(true, 6), `"c" is 5`},
		{"Monotonic", "names an older revision", newHand().toThree().says(true, 3).
			flush(2, "e-4", remove("b", 4)).says(true, 2), "names revision 2 after 3"},
		{"Conflating", "keeps a state that it is too slow for", newHand().slowly(1000).
			flush(1, "e-2/3", reset(stream.ResetInitial), upsert("b", 2, "2")).newer(2, 5).
			flush(60, "e-2/3"), "keeps the state at revision 3"},
		{"Conflating", "skipped less than nothing", newHand().toThree().
			flush(2, "e-6", status(stream.CatchingUp), remove("b", 4), upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 1<<64-3)), "changes were skipped"},
		{"Atomic", "partial id while live", newHand().toFive().flush(2, "e-5/6", upsert("a", 6, "6")), "partial id"},

		{"Resumable", "silent gap", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-6", upsert("a", 6, "6"), upsert("c", 6, "7"), resumed(6, 2))
		}(), "a silent gap"},
		{"Resumable", "state was cleared, and the id was old", func() *hand {
			h := newHand().toThree().close(2)
			m := &Mark{Position: h.mark(0).Position, State: State{}}
			return h.connect(m).flush(3, "e-6", remove("b", 4), upsert("c", 5, "5"), resumed(5, 1))
		}(), "a silent gap"},
		{"Resumable", "reset in the middle of a catch-up, without need", resetMeanwhile(false), "remembers all"},
		{"Resumable", "reset for nothing", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-3", reset(stream.ResetExpired), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2))
		}(), "remembers all since 2"},
		{"Resumable", "not ahead", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-3", reset(stream.ResetAhead), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2))
		}(), "the replica is at 6"},
		{"Resumable", "epoch did not change", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-3", reset(stream.ResetEpochChanged), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2))
		}(), "it is the same"},
		{"Resumable", "good id, and invalid", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "e-3", reset(stream.ResetInvalidPosition), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2))
		}(), "there was a good id"},
		{"Resumable", "epoch changed in silence", func() *hand {
			h := newHand().toThree().close(2)
			return h.connect(h.mark(0)).flush(3, "f-6", resumed(6, 2))
		}(), "without a reset"},

		{"Conflating", "key twice in a catch-up", newHand().toThree().
			flush(2, "e-6", status(stream.CatchingUp), remove("b", 4), upsert("c", 5, "5"), upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 0)), `"c" twice`},
		{"Conflating", "not the newest value", newHand().toThree().
			flush(2, "e-6", status(stream.CatchingUp), remove("b", 4), upsert("c", 5, "5"), upsert("a", 6, "6"), bookmark(6, 1)), `"c" is 5`},
		{"Conflating", "skipped without a status", newHand().toThree().flush(2, "e-3", bookmark(3, 7)), "without a status"},
		{"Conflating", "skipped more than there was", newHand().toThree().
			flush(2, "e-6", status(stream.CatchingUp), remove("b", 4), upsert("a", 6, "6"), upsert("c", 6, "7"), bookmark(6, 9)), "9 changes were skipped"},
		{"Conflating", "skipped what is hidden", newHiding().skipsInPart(5), "5 changes were skipped"},
		{"Conflating", "skipped more than there was in a part", newHiding().hidingNothing().skipsInPart(7), "7 changes were skipped"},

		{"Resynchronising", "sent again", newHand().toThree().flush(2, "e-4", upsert("a", 3, "3"), remove("b", 4)), "sent again"},
		{"Resynchronising", "deleted, and was not there", newHand().toThree().flush(2, "e-4", remove("b", 4), remove("c", 4)), "was not there"},
		{"Resynchronising", "half-loaded", newHand().toThree().flush(2, "e-4", remove("a", 4), remove("b", 4)), "upstream it never was"},

		{"Fresh", "stale without a status", func() *hand {
			h := newHand().toSix()
			h.history.Freshness["A"] = []Freshness{{At: at(0), Fresh: true}, {At: at(20)}}
			return h
		}(), "at 00:00:26.000 the upstream is not fresh"},
		{"Fresh", "fresh without a status", newHand().toSix().flush(20, "", status(stream.Stale)), "has the status stale"},
		{"Fresh", "still stale", func() *hand {
			h := newHand().toSix().flush(21, "", status(stream.Stale))
			h.history.Freshness["A"] = []Freshness{{At: at(0), Fresh: true}, {At: at(20)}, {At: at(30), Fresh: true}}
			return h
		}(), "at 00:00:35.000 the upstream is fresh"},
		{"Fresh", "stale since a moment that was later", func() *hand {
			s := status(stream.Stale)
			s.Since = at(22)
			h := newHand().toSix().flush(23, "", s)
			h.history.Freshness["A"] = []Freshness{{At: at(0), Fresh: true}, {At: at(20)}}
			return h
		}(), "stale since"},

		{"Monotonic", "id falls", newHand().toFive().flush(2, "e-4", bookmark(5, 0)), "revision 4 after 5"},
		{"Atomic", "id of a change that was left out before a catch-up", newHand().toTwo().
			flush(2, "e-3", status(stream.CatchingUp), remove("b", 4)), `"a" is 1`},
		{"Monotonic", "bookmark falls", newHand().toFive().flush(2, "", bookmark(4, 0)), "revision 4 after 5"},
		{"Monotonic", "epoch changes without a reset", newHand().toFive().flush(2, "f-6", bookmark(6, 0)), "without a reset"},
		{"Monotonic", "resumed before the id", func() *hand {
			h := newHand().toFive().close(2)
			return h.connect(h.mark(2)).flush(3, "e-4", resumed(4, 2))
		}(), "revision 4 after 5"},

		{"Confidential", "delete of a hidden resource", newHiding().partAtThree().flush(2, "e-4", remove("b", 4)), `"b"`},
		{"Confidential", "delete of what was hidden before", newHiding().connect(nil).
			flush(1, "e-4", reset(stream.ResetInitial), upsert("a", 3, "3"), end(4, 1)).
			flush(2, "e-6", remove("d", 6), upsert("a", 6, "6"), upsert("c", 6, "7")), "was at revision 4"},
		{"Confidential", "hidden resource", newHiding().connect(nil).
			flush(1, "e-3", reset(stream.ResetInitial), upsert("b", 2, "2"), upsert("a", 3, "3"), end(3, 2)), "may not see this value"},
		{"Confidential", "value that was hidden", newHiding().partAtThree().flush(2, "e-5", upsert("c", 5, "5")), "may not see this value"},
		{"Confidential", "value that was hidden, after a reset", newHiding().partAtThree().
			flush(2, "e-6", append(partAtSix(), upsert("d", 1, "1"))...), "may not see this value"},
		{"Confidential", "hidden bytes", newHiding().partAtThree().overhears("Q7Q"), "hold Q7Q"},
	}
	covered := map[string]int{}
	for _, b := range broken {
		t.Run(b.guarantee+"/"+b.name, func(t *testing.T) {
			covered[b.guarantee]++
			err := checkNamed(b.guarantee, b.history.history)
			if err == nil {
				t.Fatal("the checker found nothing wrong")
			}
			if !strings.HasPrefix(err.Error(), "broke "+b.guarantee+": ") {
				t.Errorf("the error does not begin with the guarantee: %v", err)
			}
			if !strings.Contains(err.Error(), b.says) {
				t.Errorf("the error does not contain %q:\n%v", b.says, err)
			}
		})
	}
	for _, c := range Checks {
		if covered[c.Name] < 3 {
			t.Errorf("%s is broken by %d histories, want 3 at least", c.Name, covered[c.Name])
		}
	}
}

func checkNamed(name string, h *History) error {
	for _, c := range Checks {
		if c.Name == name {
			return c.Check(h)
		}
	}
	return nil
}
