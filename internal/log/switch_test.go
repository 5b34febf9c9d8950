package log

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// keyed is a part of a log, that has what is selected by key.
type keyed struct {
	*View
	in  func(key string) bool
	seq uint64
}

// keysIn are the keys that hold one of some letters.
func keysIn(letters string) func(string) bool {
	return func(key string) bool { return strings.ContainsAny(key, letters) }
}

func newKeyed(w *Writer, in func(key string) bool) *keyed {
	p := &keyed{View: NewView(w.Log, Config{Watch: "w"}), in: in}
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
	t   *testing.T
	sub *Subscription
}

// newMover returns a client that has all of a part.
func newMover(t *testing.T, l *Log) *mover {
	m := &mover{t: t, client: client{state: map[string]string{}}, sub: l.Subscribe(SubscribeOptions{})}
	t.Cleanup(func() { m.sub.Close() })
	m.drain(m.sub)
	m.take()
	return m
}

// goTo switches to another part.
func (m *mover) goTo(l *Log) {
	next := l.Subscribe(SubscribeOptions{Former: m.sub})
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

// at checks the position of the client.
func (m *mover) at(want string) {
	m.t.Helper()
	if p, _ := m.sub.Position(); p.String() != want {
		m.t.Errorf("the client is at %v, want %s", p, want)
	}
}

// newSwitchLog returns a log with the keys a, b, c and ab.
func newSwitchLog(t *testing.T) *Writer {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 4, upsert("a", 1), upsert("b", 2), upsert("c", 3), upsert("ab", 4))
	inSync(w)
	return w
}

// A reader begins again, wherever it goes.
func TestSwitch(t *testing.T) {
	w := newSwitchLog(t)
	a, none := newKeyed(w, keysIn("a")), newKeyed(w, keysIn(""))
	m := newMover(t, w.Log)
	m.goTo(a.Log())
	m.expect(a.Log(), "reset epoch_changed", "upsert a@1", "upsert ab@4", "end_of_snapshot 4 count=2 resumed=false")
	m.goTo(none.Log())
	m.expect(none.Log(), "reset epoch_changed", "end_of_snapshot 4 count=0 resumed=false")
	m.goTo(a.Log())
	m.goTo(w.Log)
	m.expect(w.Log, "reset epoch_changed", "upsert a@1", "upsert b@2", "upsert c@3", "upsert ab@4", "end_of_snapshot 4 count=4 resumed=false")
	mustCommit(t, w, 5, upsert("ab", 5), remove("a", 5))
	m.expect(w.Log, "upsert ab@5", "delete a@5")
	if m.sub.Outcome() != OutcomeEpochChanged || !m.sub.CaughtUp() {
		t.Errorf("outcome %q, caught up %t", m.sub.Outcome(), m.sub.CaughtUp())
	}
}

// A reader that waits for its new part is sent nothing, and has its former position. So it is told
// there too that the watch is fresh again.
func TestSwitchToAPartInTheMaking(t *testing.T) {
	w := newSwitchLog(t)
	a, b := newKeyed(w, keysIn("a")), newKeyed(w, keysIn("b"))
	unmade := NewView(NewWriter(Config{Watch: "w"}).Log, Config{Watch: "w"})
	m := newMover(t, a.Log())
	a.SetStatus(stream.Status{State: stream.Stale})
	m.expect(a.Log(), "status stale")
	mustCommit(t, w, 5, upsert("ab", 5))
	a.feed(w)
	m.goTo(unmade.Log())
	m.drain(m.sub)
	m.at("w@part-e-4")
	if !m.sub.Replaces() || m.sub.CaughtUp() || slices.ContainsFunc(m.take(), func(line string) bool { return !strings.HasPrefix(line, "status") }) {
		t.Errorf("the client is sent %q", m.take())
	}
	m.goTo(b.Log())
	b.feed(w)
	m.expect(b.Log(), "reset epoch_changed", "upsert b@2", "upsert ab@5", "end_of_snapshot 5 count=2 resumed=false", "status in_sync")
	m.at("w@part-e-5")
}

// A reader that was sent nothing yet begins as it came.
func TestSwitchBeforeTheStart(t *testing.T) {
	w := newSwitchLog(t)
	a := newKeyed(w, keysIn("a"))
	unmade := NewView(NewWriter(Config{Watch: "w"}).Log, Config{Watch: "w"})
	m := newMover(t, a.Log())
	p, _ := m.sub.Position()
	for _, c := range []struct {
		came SubscribeOptions
		want []string
	}{
		{SubscribeOptions{Resume: &p}, []string{"end_of_snapshot 4 count=2 resumed=true"}},
		{SubscribeOptions{Invalid: true}, []string{"reset invalid_position", "upsert a@1", "upsert ab@4", "end_of_snapshot 4 count=2 resumed=false"}},
	} {
		m.sub.Close()
		m.sub = unmade.Log().Subscribe(c.came)
		m.goTo(a.Log())
		m.expect(a.Log(), c.want...)
	}
}

// A reader that can verify what it has finds out itself what it may not have any more.
func TestSwitchIsVerified(t *testing.T) {
	w := newSwitchLog(t)
	a := newKeyed(w, keysIn("a"))
	m := newMover(t, w.Log)
	m.sub.Close()
	p := w.Snapshot().Position()
	m.sub = w.Subscribe(SubscribeOptions{Resume: &p, Verify: true})
	m.expect(w.Log, "end_of_snapshot 4 count=4 resumed=true")
	m.goTo(a.Log())
	m.drain(m.sub)
	if got, want := m.take(), []string{"status catching_up", "end_of_snapshot 4 count=2 resumed=true", "status in_sync"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

// A reader that was sent changes that no position covers has them until a reset, whatever it
// switches to meanwhile.
func TestUncoveredUntilReset(t *testing.T) {
	l, _ := manyDeletes(t)
	unmade := NewView(NewWriter(Config{Watch: "w"}).Log, Config{Watch: "w"})
	m := newMover(t, l.Log)
	deleteMany(t, l)
	var part Batch
	for !m.sub.Uncovered() && m.sub.Next(&part) {
	}
	for _, to := range []*Log{unmade.Log(), unmade.Log(), l.Log} {
		m.goTo(to)
		if !m.sub.Uncovered() {
			t.Error("the client has what no position covers, and may be sent an id")
		}
		m.sub.NextTurn(&part)
	}
	if m.sub.Uncovered() || part.Count(stream.Reset) != 1 || !part.Boundary() {
		t.Errorf("uncovered %t after %d resets, at a boundary %t", m.sub.Uncovered(), part.Count(stream.Reset), part.Boundary())
	}
}

// Everything is taken from a reader, wherever it is, and given again to who comes back with the id
// of that.
func TestWithdraw(t *testing.T) {
	w := newSwitchLog(t)
	a := newKeyed(w, keysIn("a"))
	unmade := NewView(NewWriter(Config{Watch: "w"}).Log, Config{Watch: "w"})
	came := stream.Position{Watch: "w", Epoch: "part-e", Upserts: 4, AsOf: 4}
	for name, prepare := range map[string]func(*mover){
		"at rest":       func(*mover) {},
		"in a switch":   func(m *mover) { m.goTo(unmade.Log()) },
		"in a snapshot": func(m *mover) { m.goTo(a.Log()); m.sub.Next(&Batch{}) },
		"just come":     func(m *mover) { m.sub.Close(); m.sub = unmade.Log().Subscribe(SubscribeOptions{Resume: &came}) },
	} {
		m := newMover(t, a.Log())
		prepare(m)
		var b Batch
		for range 2 {
			if !m.sub.Withdraw(&b) {
				t.Fatalf("%s: nothing is taken", name)
			}
			m.apply(&b)
			if got := m.take(); !slices.Equal(got, []string{"reset epoch_changed"}) || !b.Boundary() || m.sub.Uncovered() {
				t.Errorf("%s: read %q, at a boundary %t", name, got, b.Boundary())
			}
		}
		m.at("w@part-e-0/4")
		p, _ := m.sub.Position()
		m.sub.Close()
		m.sub = a.Log().Subscribe(SubscribeOptions{Resume: &p})
		m.expect(a.Log(), "upsert a@1", "upsert ab@4", "end_of_snapshot 4 count=2 resumed=true")
	}
	s := unmade.Log().Subscribe(SubscribeOptions{})
	defer s.Close()
	if s.Withdraw(&Batch{}) {
		t.Error("a reader that has nothing is sent a reset")
	}
}
