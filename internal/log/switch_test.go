package log

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// keyed is a part of a log, that has what is selected by key.
type keyed struct {
	*Part
	in  func(key string) bool
	seq uint64
}

// keysIn are the keys that hold one of some letters.
func keysIn(letters string) func(string) bool {
	return func(key string) bool { return strings.ContainsAny(key, letters) }
}

func newKeyed(w *Writer, in func(key string) bool) *keyed {
	p := &keyed{Part: NewPart(w.Log, Config{Watch: "w"}), in: in}
	p.begin(w)
	return p
}

// begin makes the part from the newest state.
func (p *keyed) begin(w *Writer) {
	s := w.Snapshot()
	p.Begin(s, "part-"+s.Epoch(), s.Revision())
	p.seq = 0
	p.feed(w)
}

// feed brings the part to the newest state.
func (p *keyed) feed(w *Writer) {
	s := w.Snapshot()
	for e := range s.Entries(p.seq) {
		switch {
		case !p.in(e.Resource().Key):
		case !e.Deleted():
			p.Add(e, nil)
		case p.Has(e):
			p.Remove(e)
		}
		if e.EndsTransaction() {
			p.EndTransaction(e)
		}
	}
	p.Publish(s)
	p.seq = s.Seq()
}

// mover is a client that goes from one part to another.
type mover struct {
	client
	t           *testing.T
	differences *Differences
	ceiling     *memory.Ceiling
	sub         *Subscription
}

// newMover returns a client that has all of a part.
func newMover(t *testing.T, l *Log) *mover {
	ceiling := memory.NewCeiling(0)
	m := &mover{t: t, client: client{state: map[string]string{}}, ceiling: ceiling, sub: l.Subscribe(SubscribeOptions{})}
	m.differences = NewDifferences(ceiling, func(time.Duration) {})
	t.Cleanup(func() {
		m.sub.Close()
		m.differences.Close()
		if n := ceiling.Logs(); n != 0 {
			t.Errorf("in the end, differences hold %d bytes", n)
		}
	})
	m.drain(m.sub)
	m.take()
	return m
}

// goTo switches to another part.
func (m *mover) goTo(l *Log) {
	next := l.Subscribe(SubscribeOptions{Holds: m.sub.Holds(m.differences)})
	m.sub.Close()
	m.sub = next
}

// expect reads what there is, and compares it, and the state after it with that of a log.
func (m *mover) expect(l *Log, want ...string) {
	m.t.Helper()
	m.drain(m.sub)
	if got := m.take(); !slices.Equal(got, want) {
		m.t.Errorf("read %q, want %q", got, want)
	}
	if want := stateOf(l.Snapshot()); !maps.Equal(m.state, want) {
		m.t.Errorf("the client has %v, want %v", m.state, want)
	}
}

const (
	switches = "status catching_up"
	switched = "status in_sync"
)

// newSwitchLog returns a log with the keys a, b, c and ab.
func newSwitchLog(t *testing.T) *Writer {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 4, upsert("a", 1), upsert("b", 2), upsert("c", 3), upsert("ab", 4))
	inSync(w)
	return w
}

// A reader at rest is sent what differs, wherever it goes.
func TestSwitch(t *testing.T) {
	w := newSwitchLog(t)
	a, b, none := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b")), newKeyed(w, keysIn(""))
	m := newMover(t, a.Log())
	m.goTo(b.Log())
	m.expect(b.Log(), switches, "delete a@4", "upsert b@2", "bookmark 4 skipped=0", switched)
	m.goTo(w.Log)
	m.expect(w.Log, switches, "upsert a@1", "upsert c@3", "bookmark 4 skipped=0", switched)
	m.goTo(none.Log())
	m.expect(none.Log(), switches, "delete a@4", "delete b@4", "delete c@4", "delete ab@4", "bookmark 4 skipped=0", switched)
	m.goTo(a.Log())
	m.expect(a.Log(), switches, "upsert a@1", "upsert ab@4", "bookmark 4 skipped=0", switched)
	mustCommit(t, w, 5, upsert("ab", 5), remove("a", 5))
	a.feed(w)
	m.expect(a.Log(), "upsert ab@5", "delete a@5")
}

// What has changed since the reader's place is sent as the new part has it, and what it has not
// seen of the former part is not mentioned.
func TestSwitchWithNews(t *testing.T) {
	w := newSwitchLog(t)
	a, b := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	m := newMover(t, a.Log())
	mustCommit(t, w, 5, upsert("ab", 5), upsert("aa", 5), remove("b", 5))
	mustCommit(t, w, 6, upsert("bb", 6), remove("a", 6))
	a.feed(w)
	b.feed(w)
	m.goTo(b.Log())
	m.expect(b.Log(), switches, "delete a@6", "upsert ab@5", "upsert bb@6", "bookmark 6 skipped=0", switched)
}

// A part that is behind what the reader has is waited for.
func TestSwitchWaits(t *testing.T) {
	w := newSwitchLog(t)
	a, b := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	mustCommit(t, w, 5, upsert("ab", 5))
	a.feed(w)
	m := newMover(t, a.Log())
	m.goTo(b.Log())
	m.expect(a.Log(), switches)
	changed := m.sub.Changed()
	b.feed(w)
	select {
	case <-changed:
	default:
		t.Error("the reader is not woken")
	}
	m.expect(b.Log(), "delete a@5", "upsert b@2", "bookmark 5 skipped=0", switched)
}

// A reader that waits goes somewhere else from where it was, also back.
func TestSwitchAgain(t *testing.T) {
	w := newSwitchLog(t)
	a, b := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	unmade := NewPart(NewWriter(Config{Watch: "w"}).Log, Config{Watch: "w"})
	m := newMover(t, a.Log())
	m.goTo(unmade.Log())
	m.expect(a.Log(), switches)
	m.goTo(a.Log())
	m.expect(a.Log(), switches, "bookmark 4 skipped=0", switched)
	m.goTo(unmade.Log())
	m.goTo(b.Log())
	m.expect(b.Log(), switches, "delete a@4", "upsert b@2", "bookmark 4 skipped=0", switched)
}

// Parts of different revision orders have nothing in common.
func TestSwitchToAnotherOrder(t *testing.T) {
	w := newSwitchLog(t)
	a, b := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	m := newMover(t, a.Log())
	mustReplace(t, w, "f", 4, upsert("a", 1), upsert("b", 2), upsert("c", 3), upsert("ab", 4))
	b.begin(w)
	m.goTo(b.Log())
	m.expect(b.Log(), switches, "reset epoch_changed", "upsert b@2", "upsert ab@4", "end_of_snapshot 4 count=2 resumed=false", switched)
}

// Who is not at rest, or in the middle of a difference, begins again.
func TestSwitchOfWhoIsNotAtRest(t *testing.T) {
	w := newSwitchLog(t)
	var all []Change
	for i := range 100 {
		all = append(all, large(fmt.Sprintf("c%d", i), 5, 4000))
	}
	mustCommit(t, w, 5, all...)
	a, c := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("ac"))
	begins := []string{"reset epoch_changed", "upsert a@1", "upsert ab@4", "end_of_snapshot 5 count=2 resumed=false", switched}

	m := newMover(t, a.Log())
	m.goTo(c.Log())
	var part Batch
	if m.sub.Next(&part); part.Count(stream.StatusChange) != 1 || part.Count(stream.Delete)+part.Count(stream.Upsert) != 0 || !part.Boundary() {
		t.Fatalf("a switch does not begin with a status alone, with an id: %d upserts", part.Count(stream.Upsert))
	}
	m.sub.Next(&part)
	m.apply(&part)
	if part.Boundary() || part.Count(stream.Upsert) == 0 || m.ceiling.Logs() == 0 {
		t.Fatalf("%d upserts, at a boundary %t, %d bytes counted", part.Count(stream.Upsert), part.Boundary(), m.ceiling.Logs())
	}
	if n, whole := m.sub.Pending(1 << 20); n < 250_000 || whole {
		t.Errorf("%d bytes are pending", n)
	}
	m.take()
	m.goTo(a.Log())
	m.expect(a.Log(), append([]string{switches}, begins...)...)

	m = newMover(t, a.Log())
	m.sub.Close()
	m.sub = c.Log().Subscribe(SubscribeOptions{})
	for range 2 { // the reset, and some of the snapshot
		m.sub.Next(&part)
	}
	m.goTo(a.Log())
	m.expect(a.Log(), append([]string{switches}, begins...)...)

	m.sub.Close()
	m.sub = c.Log().Subscribe(SubscribeOptions{})
	if m.sub.Holds(m.differences) != nil {
		t.Error("who was sent nothing holds something")
	}
}

// A difference that has more bytes than the new part gives way to a snapshot, unless it is
// small. So does one for which there is no memory.
func TestSwitchWithoutDifference(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	var all []Change
	for i := range uint64(3000) {
		all = append(all, upsert(fmt.Sprintf("a%d", i), i+1))
	}
	mustReplace(t, w, "e", 3001, append(all, upsert("b", 3001))...)
	inSync(w)
	a, b := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	begins := []string{switches, "reset epoch_changed", "upsert b@3001", "end_of_snapshot 3001 count=1 resumed=false", switched}
	m := newMover(t, a.Log())
	m.goTo(b.Log())
	m.expect(b.Log(), begins...)

	w = newSwitchLog(t)
	a, b = newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	m = newMover(t, a.Log())
	m.ceiling.SetBytes(1)
	m.goTo(b.Log())
	m.expect(b.Log(), switches, "reset epoch_changed", "upsert b@2", "upsert ab@4", "end_of_snapshot 4 count=2 resumed=false", switched)
}

// The difference to nothing has a delete of all that the reader has.
func TestWithdraw(t *testing.T) {
	w := newSwitchLog(t)
	a := newKeyed(w, keysIn("a"))
	m := newMover(t, a.Log())
	mustCommit(t, w, 5, upsert("aa", 5), remove("a", 5))
	a.feed(w)
	holds := m.sub.Holds(m.differences)
	defer holds.Release()
	var b Batch
	var boundaries []bool
	holds.Withdraw(&b, func() {
		m.apply(&b)
		boundaries = append(boundaries, b.Boundary())
	})
	if got, want := m.take(), []string{switches, "delete a@5", "delete ab@5"}; !slices.Equal(got, want) || !slices.Equal(boundaries, []bool{true, false}) {
		t.Errorf("read %q, at boundaries %t", got, boundaries)
	}
}

// A difference is made once for all who go the same way, and its bytes are the same.
func TestDifferenceIsShared(t *testing.T) {
	w := newSwitchLog(t)
	a, b := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	m := newMover(t, a.Log())
	other := a.Log().Subscribe(SubscribeOptions{})
	m.drain(other)
	var texts [][]byte
	for _, s := range []*Subscription{m.sub, other} {
		next := b.Log().Subscribe(SubscribeOptions{Holds: s.Holds(m.differences)})
		defer next.Close()
		s.Close()
		var batch Batch
		next.Next(&batch) // the status
		next.Next(&batch)
		for _, text := range batch.Append(nil, frame.SSE, nil) {
			if strings.HasPrefix(string(text), "event: delete") {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) != 2 || &texts[0][0] != &texts[1][0] {
		t.Errorf("%q are apart", texts)
	}
	if held := m.ceiling.Logs(); held == 0 || held > int64(storage.FlushSize) {
		t.Errorf("%d bytes are counted", held)
	}
}

// A reader that was sent some of a difference has it until a reset, whatever it switches to
// meanwhile, and whatever becomes of that part.
func TestUncoveredUntilReset(t *testing.T) {
	w := newSwitchLog(t)
	var all []Change
	for i := range 100 {
		all = append(all, large(fmt.Sprintf("c%d", i), 5, 4000))
	}
	mustCommit(t, w, 5, all...)
	a, c := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("ac"))
	unmade := NewPart(NewWriter(Config{Watch: "w"}).Log, Config{Watch: "w"})
	m := newMover(t, a.Log())
	var part Batch
	uncovered := func(want bool) {
		t.Helper()
		m.sub.NextTurn(&part)
		if got := m.sub.Uncovered(); got != want {
			t.Errorf("uncovered: %t, want %t", got, want)
		}
	}
	m.goTo(c.Log())
	uncovered(false) // the status
	uncovered(true)
	m.goTo(unmade.Log())
	uncovered(true)
	m.goTo(a.Log())
	uncovered(true)
	uncovered(false)
	m.drain(m.sub)
	m.goTo(c.Log())
	uncovered(false)
	uncovered(true)
	c.Discard(stream.Status{State: stream.Stale})
	uncovered(true)
	c.begin(w)
	uncovered(false)
}

// Of whom it is not known what they have, everything is taken.
func TestWithdrawUnknown(t *testing.T) {
	w := newSwitchLog(t)
	mustCommit(t, w, 5, large("d", 5, 100_000), large("e", 5, 100_000))
	m := newMover(t, w.Log)
	m.sub.Close()
	m.sub = w.Subscribe(SubscribeOptions{})
	var b Batch
	for range 2 { // the reset, and some of the snapshot
		m.sub.Next(&b)
		m.apply(&b)
	}
	m.take()
	for _, holds := range []*Holding{m.sub.Holds(m.differences), w.HoldsUnknown()} {
		holds.Withdraw(&b, func() { m.apply(&b) })
		if got, want := m.take(), []string{"reset epoch_changed"}; !slices.Equal(got, want) || !b.Boundary() || len(m.state) > 0 {
			t.Errorf("read %q, at a boundary %t", got, b.Boundary())
		}
		holds.Release()
	}
}
