package views

import (
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TooManyGroups is why there is no count: it has more groups than it may.
type TooManyGroups struct {
	Field  string // that has the most different values
	Values int    // how many of them were found
	Limit  int    // the most groups
}

// Error names the field.
func (e *TooManyGroups) Error() string {
	return fmt.Sprintf("there are more than %d groups: the field %s has %d values or more; count by a field with fewer, or narrow the watch", e.Limit, e.Field, e.Values)
}

// counted is a watch, or a view, that is counted. One goroutine keeps all counts of it in step.
type counted struct {
	// Static after construction.
	parent
	views *Views
	woken chan struct{}
	run   string // part of the epochs of counts whose positions are of use here only

	counts  map[string]*count // by the ID of the grouping; guarded by the mutex of Views
	leaving []*count          // that were removed, and hold something; guarded by the mutex of Views

	again <-chan time.Time // when to look at stalled counts; owned by the goroutine
}

// count is what is counted of a watch by one grouping: a log whose resources are the groups.
type count struct {
	// Static after construction.
	of       *counted
	grouping *view.Grouping
	client   string // who is charged for it
	derived  *watch.Derived
	account  *memory.Account

	// Atomic.
	removed atomic.Bool
	full    atomic.Bool // it is to give up its tally, since others need the memory
	gone    atomic.Bool // it has given it up

	// Guarded by the mutex of Views.
	started bool // it has had a holder
	idle    idleness

	tallying
}

// tallying is how far a count is in the log of its watch. Owned by the goroutine of counted.
type tallying struct {
	tally  *tally // of the state at base; nil: there is none
	begun  bool   // the log is primed
	primed uint64 // generation of the watch for which it is
	seq    uint64 // of the state that the log has
	origin uint64
	shown  map[string]string // what was written to the log, by key
	base   *log.Pin          // that state
	stale  bool              // the log does not have what the watch had when it was last looked at
	noRoom bool              // for want of memory
	tried  uint64            // number of the state for which that was found

	target   *log.Pin // the state that is being counted as a whole; nil: none
	counting *tally   // of it
	cursor   uint64   // entries up to this seq are in it
	reserved int64    // bytes of the tallies, as the log counts them
}

// Count returns the counts of w, which is a watch or a view that Open has returned, as a watch:
// its resources are the groups. It has the name of w, and lives while it has subscribers, or
// callers that wait for its state, and a while after. The error is a *Refusal if a limit is
// reached. If there are too many groups, watch.Watch.Refused is a *TooManyGroups.
func (v *Views) Count(w *watch.Watch, g *view.Grouping, r Request) (*watch.Watch, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if of := v.counted[w]; of != nil && of.counts[g.ID()] != nil {
		c := of.counts[g.ID()]
		v.touch(c)
		return &c.derived.Watch, nil
	}
	if refused := v.refuses(r.Client, 1); refused != nil {
		return nil, refused
	}
	c := &count{of: v.countedOf(w), grouping: g, client: r.Client, account: memory.NewUnsqueezedAccount(v.memory)}
	c.derived = w.NewDerived(watch.RequestedViewConfig{Account: c.account, InUse: func(bool) { v.heldCount(c) }})
	c.derived.State.SetStatus(w.Status()) // it will be the same once there is a state
	c.of.counts[g.ID()] = c
	v.number++
	v.clients[r.Client]++
	v.touch(c)
	return &c.derived.Watch, nil
}

// SharedGrouping returns the grouping of the counts that Count has returned for g. It equals g, and all requests for
// the counts can share it.
func (v *Views) SharedGrouping(of *watch.Watch, g *view.Grouping) *view.Grouping {
	v.mu.Lock()
	defer v.mu.Unlock()
	if counted := v.counted[of.Of()]; counted != nil && counted.counts[g.ID()] != nil {
		return counted.counts[g.ID()].grouping
	}
	return g // they have been removed since
}

// countedOf returns a watch with its counts, and begins to count if there were none.
func (v *Views) countedOf(w *watch.Watch) *counted {
	if of := v.counted[w]; of != nil {
		return of
	}
	of := &counted{
		parent: parent{of: w, ended: make(chan struct{})}, views: v, woken: make(chan struct{}, 1),
		run: strings.ToLower(rand.Text()), counts: map[string]*count{},
	}
	v.counted[w] = of
	v.goroutines.Go(of.keep)
	return of
}

// heldCount is called when a count gets its first holder or loses its last one.
func (v *Views) heldCount(c *count) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.touch(c)
	if c.inUse() && !c.started && !c.removed.Load() {
		c.started = true
		c.of.wake()
	}
}

func (c *count) inUse() bool         { return c.derived.InUse() }
func (c *count) chargedTo() string   { return c.client }
func (c *count) idleness() *idleness { return &c.idle }

// drop ends a count.
func (c *count) drop() {
	v := c.of.views
	c.removed.Store(true)
	c.derived.Close()
	delete(c.of.counts, c.grouping.ID())
	v.uncharge(c)
	if c.started {
		c.of.leaving = append(c.of.leaving, c)
	} else {
		c.end() // nobody else has it
	}
	if len(c.of.counts) == 0 {
		delete(v.counted, c.of.of)
		close(c.of.ended)
		return
	}
	c.of.wake()
}

// removeCounts ends the counts of a watch that was removed.
func (v *Views) removeCounts(of *counted) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range of.counts {
		c.drop()
	}
}

// takeCounts returns the counts that have had a holder, and ends those that were removed.
func (of *counted) takeCounts() (all []*count) {
	of.views.mu.Lock()
	defer of.views.mu.Unlock()
	for _, c := range of.leaving {
		c.end()
	}
	of.leaving = nil
	for _, c := range of.counts {
		if c.started {
			all = append(all, c)
		}
	}
	return all
}

func (of *counted) wake() {
	select {
	case of.woken <- struct{}{}:
	default:
	}
}

// keep keeps the counts in step until there are none.
func (of *counted) keep() {
	defer of.takeCounts()
	number := of.of.Snapshot().Number()
	for {
		changed := of.of.Changed()
		if now := of.of.Snapshot().Number(); now != number {
			number = now
			of.changes()
		}
		done := of.work()
		of.views.relieve()
		if !done {
			changed = closedChannel
		}
		select {
		case <-of.ended:
			return
		case <-of.of.Done():
			of.views.removeCounts(of)
			return
		default:
		}
		select {
		case <-changed:
		case <-of.again:
			of.again = nil
		case <-of.woken:
		case <-of.ended:
			return
		case <-of.of.Done():
			of.views.removeCounts(of)
			return
		}
	}
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// work gives each count a turn. It returns false if one has more to do.
func (of *counted) work() (done bool) {
	done = true
	for _, c := range of.takeCounts() {
		t := newTurn(&of.parent)
		done = c.work(t) && done
		if c.stale && of.again == nil {
			of.again = time.After(retryEvery)
		}
	}
	return done
}

// work brings a count closer to the newest state of its watch. It returns false if there is more to
// do.
func (c *count) work(t *turn) (done bool) {
	newest := c.of.of.Snapshot()
	switch {
	case c.removed.Load():
		return true
	case !newest.Primed():
		c.forget(newest.Status())
		return true
	case c.full.Load():
		c.stall(newest, errNoRoom)
		return true
	case c.stale && !c.retries(newest):
		return true
	case c.target == nil && c.begun && !c.stale && c.derived.State.Reflects(newest):
		return true
	case c.target != nil && !c.valid(newest), c.target == nil && !c.follows(newest):
		c.countAll(newest)
	case c.target == nil:
		c.feed(newest, t)
		if c.target == nil {
			return true
		}
	}
	return c.build(t)
}

// retries reports whether it is worth looking again at what is stale.
func (c *count) retries(newest log.Snapshot) bool {
	switch {
	case c.target != nil:
		return true // it is being counted
	case c.of.again != nil:
		return false
	case c.noRoom:
		return c.of.views.hasRoom()
	}
	return newest.Number() != c.tried
}

// valid reports whether the state that is being counted is of use.
func (c *count) valid(newest log.Snapshot) bool {
	s, held := c.target.Snapshot()
	return held && s.Generation() == newest.Generation()
}

// follows reports whether what there is can be brought to a state by its changes.
func (c *count) follows(newest log.Snapshot) bool {
	return c.begun && !c.stale && c.primed == newest.Generation() && newest.Forgotten() <= c.seq
}

// countAll begins to count all resources of a state.
func (c *count) countAll(s log.Snapshot) {
	c.release()
	c.target, c.cursor = s.Pin(), 0
	c.counting = newTally(c.grouping, c.of.views.limits().MaxGroups)
	c.of.views.count.builds.Add(1)
}

// build goes on with counting all resources, until its turn ends.
func (c *count) build(t *turn) (done bool) {
	s, held := c.target.Snapshot()
	if !held {
		c.release() // the memory was needed
		return false
	}
	for e := range s.Entries(c.cursor) {
		if t.did(entryCosts); t.over {
			return c.givesUp(s)
		}
		c.cursor = e.Seq()
		if !s.Counts(e) || e.Deleted() {
			continue
		}
		r := e.Resource()
		t.did(len(r.Value) / projectedBytes)
		c.counting.add(r, 1)
		if why := c.counting.overflows(); why != nil {
			c.stall(s, why)
			return true
		}
	}
	c.showAll(s)
	return s.Number() == c.of.of.Snapshot().Number()
}

// givesUp counts the memory of what is being counted. It is given up if there is too little.
func (c *count) givesUp(s log.Snapshot) bool {
	before := int64(0)
	if c.tally != nil {
		before = c.tally.bytes()
	}
	if c.reserve(before + c.counting.bytes()) {
		return false
	}
	c.stall(s, errNoRoom)
	return true
}

// showAll writes what was counted of a state as a whole: as a new generation, or as one transaction
// with all that differs.
func (c *count) showAll(s log.Snapshot) {
	state, revision := c.derived.State, s.DerivedRevision()
	again := c.begun && c.primed == s.Generation()
	if again {
		c.counting.gone(c.shown)
	} else {
		state.Begin(s, c.epoch(s))
		c.shown = map[string]string{}
	}
	c.tally, c.counting = c.counting, nil
	c.write(revision, again)
	c.reach(s)
}

// epoch returns the name of the revision order. Where that is of this process, so is the name.
func (c *count) epoch(s log.Snapshot) string {
	if strings.HasPrefix(s.Epoch(), stream.UnnumberedEpoch) {
		return c.grouping.Epoch(fmt.Sprintf("%s %s %d", s.Epoch(), c.of.run, s.Generation()))
	}
	return c.grouping.Epoch(s.Epoch())
}

// feed brings the count to a state by its changes, each transaction in turn. If values were left out
// before it could read them, or by the watch, it goes there in one step.
func (c *count) feed(s log.Snapshot, t *turn) {
	base, held := c.base.Snapshot()
	oneStep := s.Intact() > c.seq || s.Origin() != c.origin
	lacks, first := oneStep, uint64(0)
	for e := range s.Entries(c.seq) {
		t.did(entryCosts)
		if oneStep && !s.Counts(e) {
			continue
		}
		before, doubtful, known := c.before(s, base, held, e, oneStep)
		if !known || c.tally.bursts() {
			c.countAll(s)
			return
		}
		c.change(before, e)
		if first == 0 {
			first = e.Revision()
		}
		// Where a transaction ends is not known of all: two may be taken for one.
		lacks = lacks || doubtful || e.Conflated() || e.Revision() != first
		if !oneStep && e.EndsTransaction() {
			if !c.commit(s, s.DerivedRevisionOf(e), lacks) {
				return
			}
			lacks, first = false, 0
		}
	}
	if (lacks || len(c.tally.touched) > 0) && !c.commit(s, s.DerivedRevision(), lacks) {
		return
	}
	c.reach(s)
}

// before returns the resource of an entry as it was before it; nil: there was none. It is doubtful
// if another replica may have had one. It is not known if it is no longer there.
func (c *count) before(s, base log.Snapshot, held bool, e log.Entry, oneStep bool) (r *stream.Resource, doubtful, known bool) {
	if !oneStep {
		if before, ok, known := s.Before(e); known {
			if ok && !before.Deleted() {
				r := before.Resource()
				return &r, false, true
			}
			return nil, deletesUnseen(e, before, ok), true
		}
		if e.PreviousSeq() > c.seq {
			return nil, false, false
		}
	}
	if !held {
		return nil, false, false
	}
	was, ok := base.Get(e.Resource().Key)
	if !ok {
		return nil, e.Deleted(), true
	}
	return &was, false, true
}

// change applies one change of the watch.
func (c *count) change(before *stream.Resource, e log.Entry) {
	if before != nil {
		c.tally.add(*before, -1)
	}
	if !e.Deleted() {
		c.tally.add(e.Resource(), 1)
	}
}

// commit writes a transaction, unless there are too many groups.
func (c *count) commit(s log.Snapshot, revision uint64, lacks bool) bool {
	if why := c.tally.overflows(); why != nil {
		c.stall(s, why)
		return false
	}
	c.write(revision, lacks)
	return true
}

// write writes the groups that have changed, as one transaction. lacks says that there were
// states before it that readers from elsewhere may have seen.
func (c *count) write(revision uint64, lacks bool) {
	state := c.derived.State
	for _, g := range c.tally.changes() {
		if g.count == 0 {
			if c.shown[g.key] != "" {
				delete(c.shown, g.key)
				state.Delete(g.key, revision)
			}
			continue
		}
		if now := c.tally.value(g); now != c.shown[g.key] {
			c.shown[g.key] = now
			state.Upsert(stream.Resource{Key: g.key, Revision: revision, Value: []byte(now)})
		}
	}
	if lacks {
		state.Lacks(revision)
	}
	state.EndTransaction()
}

// reach publishes what was written, as what the watch has in a state.
func (c *count) reach(s log.Snapshot) {
	if !c.reserve(c.tally.bytes()) {
		c.stall(s, errNoRoom)
		return
	}
	if c.stale {
		c.stale = false
		c.derived.Refuse(nil)
	}
	c.gone.Store(false)
	c.release()
	c.releaseBase()
	c.base = s.Pin()
	c.begun, c.primed, c.seq, c.origin = true, s.Generation(), s.Seq(), s.Origin()
	c.derived.State.Publish(s)
}

// errNoRoom is why there is no count.
var errNoRoom = errors.New(noRoom)

// reserve counts the memory of the tally. It returns false if there is too little.
func (c *count) reserve(n int64) bool {
	if more := n - c.reserved; more != 0 {
		c.reserved = n
		c.derived.State.Beside(n)
		return more < 0 || !c.of.views.exceeds()
	}
	return true
}

// stall gives the tally up. The log keeps the state that it has, if any, and says why it is stale.
func (c *count) stall(s log.Snapshot, why error) {
	c.release()
	c.releaseBase()
	c.tally = nil
	c.reserve(0)
	c.derived.Refuse(why)
	if !c.stale {
		c.derived.State.Stall(stream.Status{State: stream.Stale, Since: time.Now(), Reason: why.Error()})
	}
	c.stale, c.noRoom, c.tried = true, why == errNoRoom, s.Number()
	c.full.Store(false)
	c.gone.Store(true)
}

// forget gives up what there is, since the watch has no state.
func (c *count) forget(why stream.Status) {
	now := c.derived.Status()
	had := c.begun || c.target != nil || c.stale
	c.lose()
	c.derived.Refuse(nil)
	if had || now.State != why.State || now.Reason != why.Reason {
		c.derived.State.Discard(why)
	}
}

// lose gives up what there is.
func (c *count) lose() {
	c.release()
	c.releaseBase()
	c.reserve(0)
	c.tallying = tallying{}
}

// release gives up the state that is being counted.
func (c *count) release() {
	if c.target != nil {
		c.target.Release()
		c.target, c.counting = nil, nil
	}
}

func (c *count) releaseBase() {
	if c.base != nil {
		c.base.Release()
		c.base = nil
	}
}

// end frees what a count holds, once it was removed.
func (c *count) end() {
	c.lose()
	c.full.Store(false)
	c.derived.State.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: "the count was not used"})
	c.account.Leave()
}

// countsHolding are the counts that have a state; none if one is giving up its own.
func (v *Views) countsHolding() iter.Seq[*count] {
	var all []*count
	for _, of := range v.counted {
		for _, c := range of.counts {
			if c.full.Load() {
				return slices.Values[[]*count](nil)
			}
			if c.started && !c.gone.Load() {
				all = append(all, c)
			}
		}
	}
	return slices.Values(all)
}
