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

// The faults that a client or a server can have; see TestModelFindsFaults.
const (
	positionFirst = "the client takes the position over before it has verified"
	extraKept     = "the client keeps what the server does not have"
	otherState    = "the keys are those of another state than the table"
	unread        = "what was read is not compared with the digest"
	overwritten   = "what has changed meanwhile is overwritten with what was read"
	unseen        = "the client does not verify after a resume"
)

type model struct {
	rand    *rand.Rand
	mask    Hash
	upTo    *order
	servers []*replica
	fault   string // ""; or what is wrong
	// A client that lies about its position verifies each resume. One that does not can go without.
	lies bool
	live state // changes after the verified state, which have come while it is repaired

	// The client.
	held   state
	at     position
	fooled bool // held was another state than that of a server when it had its digest

	ended, resets, collisions, gone int
	wrong                           int // ends with another state than the server's
	vain                            int // repairs that came to nothing, although nothing was in their way
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
	if m.fault == positionFirst {
		m.held, m.at = staged, position{r.of.name, r.rules, t}
	}
	if !reset && !m.repair(r, staged, t) {
		return false
	}
	m.fooled = m.fooled && !reset
	return m.follow(r, staged, r.head)
}

// resume is the exact catch-up after a position: what has changed since then, and the deletes since then. Of the rows
// that the client should have at the position nothing is said.
func (m *model) resume(r *replica, staged state, t int) bool {
	now := r.state(t)
	for _, c := range r.of.changes[m.at.revision:t] {
		if last, ok := now[c.key]; ok {
			staged.apply(last)
		} else {
			delete(staged, c.key)
		}
	}
	if m.lies && m.fault != unseen && !m.repair(r, staged, t) {
		return false
	}
	return m.follow(r, staged, r.head)
}

// meanwhile may make one change more, which the client is sent while it repairs. The client of a program reads
// it later; the one of a browser knows it at once.
func (m *model) meanwhile(r *replica, staged state) {
	if m.rand.IntN(10) > 0 || r.head == len(r.of.changes) {
		return
	}
	c := r.of.changes[r.head]
	r.head++
	if c.value != "" && !r.shows(c) {
		c.value = ""
	}
	m.live[c.key] = c
	if m.fault == overwritten {
		staged.apply(c)
	}
}

// repair makes staged the state at t, by its digest, table and keys, and then that at the head of the replica, with
// what has changed meanwhile. It reports whether the client may go on.
func (m *model) repair(r *replica, staged state, t int) bool {
	right := r.state(t)
	want := m.digest(right)
	m.live = state{}
	if m.digest(staged) == want {
		m.fooled = !same(staged, right)
		return true
	}
	theirs := m.table(right, want.Count)
	if m.cut() {
		return false
	}
	m.meanwhile(r, staged)
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
	keys := right
	if m.fault == otherState {
		keys = r.state(r.head)
	}
	for key := range staged { // extra ones
		if _, ok := keys[key]; !ok && in[theirs.Bucket(OfKey(key))] && m.fault != extraKept {
			delete(staged, key)
		}
	}
	for key, c := range keys { // missing and other ones
		if mine, ok := staged[key]; !in[theirs.Bucket(OfKey(key))] || ok && m.hash(mine) == m.hash(c) {
			continue
		}
		if m.cut() {
			return false
		}
		m.meanwhile(r, staged)
		// A list has the state of now, which the stream may be behind.
		read, ok := r.state(r.head + m.rand.IntN(min(2, len(r.of.changes)-r.head+1)))[key]
		_, touched := m.live[key]
		switch {
		case touched && m.fault == overwritten && ok:
			staged.apply(c)
		case touched: // what it is now comes as a change; what it was counts in the digest
			staged.apply(c)
		case m.fault == unread && ok:
			staged.apply(read)
		case !ok || m.hash(read) != m.hash(c):
			return false // it has changed, and that was not sent yet
		default:
			staged.apply(read)
		}
	}
	if m.fault != unread && m.fault != overwritten && m.digest(staged) != want {
		m.vain++
		return false
	}
	m.fooled = m.digest(staged) == want && !same(staged, right)
	if m.fault != overwritten {
		for _, c := range m.live {
			staged.apply(c)
		}
	}
	return true
}

// same reports whether two states have the same values.
func same(a, b state) bool {
	return maps.EqualFunc(a, b, func(x, y change) bool { return x.value == y.value })
}

// follow sends changes after t, and ends. From the first id on the client has taken over
// what it holds.
func (m *model) follow(r *replica, staged state, t int) bool {
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
	if same(m.held, right) {
		m.fooled = false
		return
	}
	m.wrong++
	switch {
	case m.fooled: // two states had one digest
		m.collisions++
	case m.fault == "":
		panic(fmt.Sprintf("the client holds %v, its server has %v, and no two states had one digest", m.held, right))
	}
	m.held, m.at, m.fooled = state{}, position{}, false
}

// corrupt is what happens to a client between two streams.
func (m *model) corrupt() {
	switch m.rand.IntN(8) {
	case 0: // rows are evicted
		maps.DeleteFunc(m.held, func(string, change) bool { return m.rand.IntN(3) == 0 })
		m.rowsLost()
	case 1: // rows are there that it was never sent
		m.held["x"] = change{key: "x", value: "9"}
		m.rowsLost()
	case 2: // its position is made up
		m.at = position{order: m.at.order, rules: -1, revision: m.rand.IntN(30)}
	case 3: // the same, and nobody can see it
		if m.lies {
			m.at.revision = m.rand.IntN(30)
		}
	}
}

// rowsLost is called when the rows are not those of the position any more. A client that verifies each resume may keep
// it, and resume exactly with it.
func (m *model) rowsLost() {
	if !m.lies || m.rand.IntN(2) == 0 {
		m.at.rules = -1
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

func play(seed uint64, mask Hash, fault string) *model {
	m := &model{rand: rand.New(rand.NewPCG(seed, 1)), mask: mask, fault: fault, lies: seed%2 == 0, upTo: &order{}, held: state{}}
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
		m := play(seed, ^Hash(0), "")
		if m.vain > 0 {
			t.Fatalf("history %d: %d repairs came to nothing", seed, m.vain)
		}
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
		found += play(seed, 15, "").collisions
	}
	if found == 0 {
		t.Error("the model did not see a collision of hashes of 4 bits")
	}
	t.Logf("%d collisions", found)
}

// TestModelFindsFaults: the model sees each fault, as another state than the server's or as a repair in vain.
func TestModelFindsFaults(t *testing.T) {
	for _, fault := range []string{positionFirst, extraKept, otherState, unread, overwritten, unseen} {
		wrong, vain := 0, 0
		for seed := range uint64(2_000) {
			m := play(seed, ^Hash(0), fault)
			wrong, vain = wrong+m.wrong, vain+m.vain
		}
		t.Logf("%s: %d wrong ends, %d repairs in vain", fault, wrong, vain)
		if wrong+vain == 0 {
			t.Errorf("not seen: %s", fault)
		}
	}
}
