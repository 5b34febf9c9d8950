package digest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

var histories = flag.Int("histories", 20_000, "how many histories the model plays")

// The model of resuming by digest: what a server and a client do, without a network, a log or
// a format. Each history ends with the client holding exactly what its server has, unless two
// states had one digest.

// change is one change of the upstream; an empty value is a delete.
type change struct {
	key, value string
	revision   int
}

// state is keys and values, with the revisions at which they changed.
type state map[string]change

func (s state) apply(c change) {
	if c.value == "" {
		delete(s, c.key)
		return
	}
	s[c.key] = c
}

// order is one epoch: changes from a first state on.
type order struct {
	name    int
	changes []change // the i-th has the revision i+1
}

func (o *order) at(revision int) state {
	s := state{}
	for _, c := range o.changes[:revision] {
		s.apply(c)
	}
	return s
}

// replica serves an order. It knows deletes after a horizon alone.
type replica struct {
	of            *order
	horizon, head int
	shows         func(change) bool // its view: the rules of now
	rules         int
}

func (r *replica) state(revision int) state {
	s := r.of.at(revision)
	maps.DeleteFunc(s, func(_ string, c change) bool { return !r.shows(c) })
	return s
}

// position is where a client claims to be.
type position struct{ order, rules, revision int }

type model struct {
	rand    *rand.Rand
	mask    Hash
	upTo    *order
	servers []*replica

	// The client.
	held state
	at   position

	ended, resets, collisions, gone int
}

func (m *model) hash(c change) Hash {
	h := Of(c.key, []byte(c.value), "")
	return h & m.mask
}

func (m *model) digest(s state) Digest {
	var d Digest
	for _, c := range s {
		d = d.Add(m.hash(c))
	}
	return d
}

func (m *model) table(s state, buckets uint64) Table {
	t := NewTable(buckets)
	for _, c := range s {
		k := OfKey(c.key)
		t.Add(k, m.hash(c))
	}
	return t
}

// cut reports whether the connection ends here.
func (m *model) cut() bool { return m.rand.IntN(12) == 0 }

// connect is one stream of the client, which may be cut off at any event. It reports
// whether the client was told that it is consistent.
func (m *model) connect(r *replica, reset bool) bool {
	for i := m.rand.IntN(4); i > 0 && r.head < len(r.of.changes); i-- {
		r.head++
	}
	staged := maps.Clone(m.held)
	from := m.at
	sameOrder := from.order == r.of.name && from.rules == r.rules && from.revision <= r.head
	t := r.head
	switch {
	case reset:
		m.resets++
		staged = r.state(t)
	case sameOrder && from.revision >= r.horizon:
		return m.resume(r, staged, t)
	case sameOrder: // what has changed is sent, what was deleted is not known
		for _, c := range r.state(t) {
			if c.revision <= from.revision {
				continue
			}
			if m.cut() {
				return false
			}
			staged.apply(c)
		}
	}
	if m.cut() {
		return false
	}
	if !reset && !m.repair(r, staged, t) {
		return false
	}
	return m.live(r, staged, t)
}

// resume is the exact catch-up after a position; deletes are known.
func (m *model) resume(r *replica, staged state, t int) bool {
	now := r.state(t)
	for key := range staged {
		if _, ok := now[key]; !ok {
			delete(staged, key)
		}
	}
	for key, c := range now {
		if c.revision > m.at.revision || staged[key].value == "" && m.at.revision == 0 {
			staged.apply(c)
		}
	}
	return m.live(r, staged, t)
}

// repair makes staged the state at t, by its digest, table and keys. It reports whether the
// client may go on.
func (m *model) repair(r *replica, staged state, t int) bool {
	right := r.state(t)
	want := m.digest(right)
	if m.digest(staged) == want {
		return true
	}
	theirs := m.table(right, want.Count)
	if m.cut() {
		return false
	}
	differing, err := m.table(staged, want.Count).Differing(theirs.Bytes())
	if err != nil {
		panic(err)
	}
	if m.rand.IntN(10) == 0 { // the server has given up t
		m.gone++
		return false
	}
	in := map[int]bool{}
	for _, b := range differing {
		in[b] = true
	}
	bucket := func(key string) int {
		k := OfKey(key)
		return theirs.Bucket(k)
	}
	for key := range staged { // extra ones
		if _, ok := right[key]; !ok && in[bucket(key)] {
			delete(staged, key)
		}
	}
	for key, c := range right { // missing and other ones
		if mine, ok := staged[key]; in[bucket(key)] && (!ok || m.hash(mine) != m.hash(c)) {
			if m.cut() {
				return false
			}
			staged.apply(c)
		}
	}
	return m.digest(staged) == want
}

// live sends changes after t, and ends. From the first id on the client has taken over
// what it holds.
func (m *model) live(r *replica, staged state, t int) bool {
	m.held, m.at = staged, position{r.of.name, r.rules, t}
	for r.head = t; r.head < len(r.of.changes) && !m.cut(); {
		c := r.of.changes[r.head]
		r.head++
		if _, held := m.held[c.key]; c.value != "" && !r.shows(c) {
			if c.value = ""; !held {
				m.at.revision = r.head
				continue
			}
		}
		m.held.apply(c)
		m.at.revision = r.head
	}
	m.ended++
	m.check(r)
	return true
}

// check compares what the client shows with what its server has.
func (m *model) check(r *replica) {
	right := r.state(m.at.revision)
	same := len(right) == len(m.held)
	for key, c := range right {
		same = same && m.held[key].value == c.value
	}
	if same {
		return
	}
	if m.mask == ^Hash(0) {
		panic(fmt.Sprintf("the client holds %v, its server has %v", m.held, right))
	}
	m.collisions++
	m.held, m.at = state{}, position{}
}

// corrupt is what happens to a client between two streams.
func (m *model) corrupt() {
	switch m.rand.IntN(8) {
	case 0: // rows are evicted
		maps.DeleteFunc(m.held, func(string, change) bool { return m.rand.IntN(3) == 0 })
		m.at.rules = -1
	case 1: // rows are there that it was never sent
		m.held["x"] = change{key: "x", value: "9"}
		m.at.rules = -1
	case 2: // its position is made up
		m.at = position{order: m.at.order, rules: -1, revision: m.rand.IntN(30)}
	}
}

// step is something that happens to the upstream, or to a replica.
func (m *model) step() {
	r := m.servers[m.rand.IntN(len(m.servers))]
	switch m.rand.IntN(12) {
	case 0: // a replica starts again, and knows no delete
		r.of, r.head, r.horizon = m.upTo, len(m.upTo.changes), len(m.upTo.changes)
	case 1: // the upstream is restored
		restored := &order{name: m.upTo.name + 1, changes: m.upTo.changes[:m.rand.IntN(len(m.upTo.changes)+1)]}
		m.upTo = &order{name: restored.name, changes: append([]change(nil), restored.changes...)}
		for _, r := range m.servers {
			r.of, r.head, r.horizon = m.upTo, len(m.upTo.changes), len(m.upTo.changes)
		}
	case 2: // the rules change
		least := string(rune('a' + m.rand.IntN(4)))
		r.rules++
		r.shows = func(c change) bool { return c.key >= least }
		r.horizon = r.head
		for _, o := range m.servers {
			o.rules, o.shows, o.horizon = r.rules, r.shows, o.head
		}
	default:
		c := change{key: string(rune('a' + m.rand.IntN(8))), revision: len(m.upTo.changes) + 1}
		if m.rand.IntN(3) > 0 {
			c.value = fmt.Sprint(m.rand.IntN(4))
		}
		m.upTo.changes = append(m.upTo.changes, c)
	}
}

func play(seed uint64, mask Hash) *model {
	m := &model{rand: rand.New(rand.NewPCG(seed, 1)), mask: mask, upTo: &order{}, held: state{}}
	for range 3 {
		m.servers = append(m.servers, &replica{of: m.upTo, shows: func(change) bool { return true }})
	}
	failures := 0
	for range 40 {
		for range m.rand.IntN(5) {
			m.step()
		}
		m.corrupt()
		if m.connect(m.servers[m.rand.IntN(len(m.servers))], failures >= 2) {
			failures = 0
			continue
		}
		failures++
	}
	return m
}

// TestModel: no history ends with another state than the server's.
func TestModel(t *testing.T) {
	var ended, resets int
	for seed := range uint64(*histories) {
		m := play(seed, ^Hash(0))
		ended, resets = ended+m.ended, resets+m.resets
	}
	t.Logf("%d histories: %d streams ended consistent, %d with a reset", *histories, ended, resets)
	if ended < *histories {
		t.Errorf("only %d streams of %d histories ended", ended, *histories)
	}
}

// TestModelFindsCollisions: with a hash of 4 bits the model sees the states that only have the
// same digest.
func TestModelFindsCollisions(t *testing.T) {
	found := 0
	for seed := range uint64(*histories / 4) {
		found += play(seed, 15).collisions
	}
	if found == 0 {
		t.Error("the model did not see a collision of hashes of 4 bits")
	}
	t.Logf("%d collisions", found)
}
