package views

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// entry is one view. It belongs to one goroutine at a time, a feeder or a builder, which
// hands it over through a mailbox.
type entry struct {
	subject
	holding

	// Atomic.
	removed atomic.Bool
	full    atomic.Bool   // its state did not fit, and is gone
	alone   atomic.Bool   // builders feed it, and no feeder; it stays so
	wanted  atomic.Uint64 // the oldest revision from which clients wanted to resume; MaxUint64: none
	leaving atomic.Int64  // bytes that it will soon not hold any more

	// Owned by the feeder or the builder that has it.
	feeding
	state    target
	begun    bool         // it has a part of the watch, if not all of it
	whole    bool         // and was published
	primed   string       // the epoch of what it had before it was made
	building bool         // it is being made from all of the watch
	opened   bool         // it has some of the transaction that is being read
	changed  bool         // it has something that is not published
	over     bool         // it is declared, and does not fit: what it has is not published any more
	at       log.Snapshot // the state that it has, once it is whole
	seen     uint64       // number of the version of the watch that its last turn was about
}

// subject is what a view is of, and for whom. Static after construction.
type subject struct {
	views      *Views
	parent     *parent
	definition *view.Definition
	client     string // who is charged for it
	watch      *watch.Watch
	declared   *watch.View // nil: clients ask for the view
	close      func()      // tells its readers that it was removed
	end        func()      // frees what it holds then
	account    *memory.Account
	order      *sorted // nil: it is no order
	costly     bool
	hides      bool // no reader may learn of a resource that the view never had
}

// holding is whether a view is in use. Guarded by the mutex of Views.
type holding struct {
	started  bool // a feeder or a builder has it
	idleness idleness
}

// feeding is how far a view is in the log of its watch. Owned by the feeder or the builder that has the view.
type feeding struct {
	matcher *view.Matcher // while it is being fed by a builder
	turn    *turn         // of that builder; nil: no builder has it
	applied uint64        // seq of the last entry that was added to it in a batch
	began   time.Time     // when that began
	target  *log.Pin      // the state up to which it is being fed; nil: none
	base    uint64        // seq of the state of which it was begun
	low     uint64        // the revision from which it knows its deletes
	since   uint64        // entries up to this seq were in it before the target was chosen
	cursor  uint64        // entries up to this seq are in it

	targeted time.Time // when the target was the newest state
	upTo     time.Time // when the state that it has was, of a view that is fed alone
	lags     bool      // its readers were told that it is behind
}

func newEntry(v *Views, p *parent, d *view.Definition, r Request) *entry {
	e := &entry{subject: subject{
		views: v, parent: p, definition: d, client: r.Client, account: memory.NewUnsqueezedAccount(v.memory), costly: d.Costly(), hides: d.Hides(),
	}}
	e.wanted.Store(math.MaxUint64)
	e.alone.Store(e.costly)
	part := p.of.NewRequestedView(watch.RequestedViewConfig{Account: e.account, InUse: func(bool) { v.held(e, e) }})
	e.watch, e.state = &part.Watch, part.State
	part.State.Beside(d.Bytes())
	if _, is := d.Window(); is {
		e.order, e.hides = newSorted(d, part.State, e.account), true
		e.order.look = func() { p.feeder(e).ask(windows, e) }
		e.state = e.order
	}
	e.state.SetStatus(p.of.Status()) // it will be the same once there is a state
	e.close, e.end = part.Close, e.endUnused
	if e.order != nil {
		e.close = func() {
			part.Close()
			e.order.close()
		}
	}
	return e
}

// id is the name of a view among those of its watch.
func (e *entry) id() string {
	if e.declared != nil {
		return e.definition.ID() + " " + e.watch.Name()
	}
	if e.order != nil {
		return e.definition.OrderID()
	}
	return e.definition.ID()
}

// indexed reports whether the index finds the view. One that is declared is asked about every
// change, since it counts those on which its filter fails.
func (e *entry) indexed() bool { return e.declared == nil && e.definition.Indexed() }

// sortsAll reports whether it is an order of all of its watch.
func (e *entry) sortsAll() bool { return e.order != nil && e.definition.SortsAll() }

// feeder returns the feeder that feeds a view, or watches over it.
func (p *parent) feeder(e *entry) *feeder {
	if e.costly || !e.indexed() {
		return p.feeders[1]
	}
	return p.feeders[0]
}

// bytes is how many bytes the view holds.
func (e *entry) bytes() int64 {
	n := e.account.Own().Logs() + e.account.Own().Superseded()
	if e.order != nil {
		n += e.order.bytes()
	}
	return n
}

// want records, with the mutex of Views held, that a client comes with a position. It can
// resume if the view is not made yet. Once the view is made, nobody makes it again for the
// sake of one client: it gets a reset if its position is too old.
func (e *entry) want(from *stream.Position) {
	if from != nil {
		e.wanted.Store(min(e.wanted.Load(), from.DeletesCompleteTo()))
	}
}

// feed brings the view closer to the newest state of its watch, until its turn ends.
func (e *entry) feed(t *turn) (reached bool) {
	s, ok := e.next()
	if !ok {
		return true // there is nothing to feed it with
	}
	if e.matcher == nil {
		e.matcher = e.definition.Matcher()
	}
	e.begins(t)
	for c := range s.Entries(e.cursor) {
		if t.did(entryCosts); t.over || c.Seq() > e.base && !e.arrange(t) {
			e.report()
			return false
		}
		e.change(s, c)
		e.cursor = c.Seq()
		if c.EndsTransaction() {
			e.state.EndTransaction(c)
		}
	}
	if !e.arrange(t) {
		e.report()
		return false
	}
	if s.Intact() > e.since {
		e.state.Skipped(s)
	}
	e.publish(s)
	return true
}

// arrange has an order sort what it was begun with, until a turn ends.
func (e *entry) arrange(t *turn) (done bool) { return e.order == nil || e.order.arrange(t) }

// report counts the memory so far, and tells readers if they have waited for long.
func (e *entry) report() {
	e.countMemory()
	e.complain()
	if e.whole && !e.lags && e.isBehind(e.upTo) {
		e.lags = true
		e.state.SetStatus(behindSince(e.upTo))
	}
}

// isBehind reports whether a state of a view that is fed alone is to be called stale, which was the newest one at a time.
func (e *entry) isBehind(upTo time.Time) bool {
	return e.alone.Load() && time.Since(upTo) > buildPatience
}

func behindSince(upTo time.Time) stream.Status {
	return stream.Status{State: stream.Stale, Since: upTo, Reason: "the view is behind its watch: the changes since then make too much work"}
}

// complain says that there is no state yet, if that takes long.
func (e *entry) complain() {
	if e.whole || time.Since(e.began) < buildPatience || e.watch.Status().State == stream.Priming {
		return
	}
	e.state.SetStatus(stream.Status{State: stream.Priming, Since: e.began, Reason: "the view is being built"})
}

// buildPatience is how long a view may take to be built, or be behind, before its subscribers are told.
const buildPatience = time.Second

// publish makes the view reflect a state that it was fed up to.
func (e *entry) publish(s log.Snapshot) {
	first, shown := e.building, s
	if e.isBehind(e.targeted) && s.Status().State == stream.InSync && e.parent.of.Snapshot().Number() != s.Number() {
		shown = s.WithStatus(behindSince(e.targeted))
	}
	e.show(shown)
	e.upTo, e.lags = e.targeted, shown != s
	if first && e.declared != nil && !e.over {
		e.declared.Followed(e.began, e.primed != "", e.primed != e.watch.Snapshot().Epoch())
	}
	e.release()
	e.cursor, e.at, e.whole, e.building = s.Seq(), s, true, false
	e.seen = s.Number() // there may be a newer one already
}

// show makes visible what the view has of a state, if it fits.
func (e *entry) show(s log.Snapshot) (news bool) {
	if e.declared != nil {
		e.countMemory()
	}
	return !e.over && e.state.Publish(s)
}

// countMemory counts what a view holds that is not published yet.
func (e *entry) countMemory() {
	larger := e.state.Count()
	if e.declared != nil && larger && !e.over {
		e.over = !e.declared.Fits()
	}
}

// countedEvery is after how many bytes a declared view is asked whether it still fits. So it never
// holds much more than it may, however much there is to add at once.
const countedEvery = 64 << 10

// evaluated counts that it was decided whether the view has the new value of a resource.
func (e *entry) evaluated(err error) {
	e.views.count.evaluated(err)
	e.countFailure(err)
}

// countFailure counts a change on which the filter fails.
func (e *entry) countFailure(err error) {
	if err != nil && e.declared != nil {
		e.declared.Unmatchable()
	}
}

// add adds a change of a resource that the view has.
func (e *entry) add(c log.Entry, projected *stream.Resource) {
	if e.over {
		return
	}
	if e.state.Add(c, projected); e.declared != nil && e.state.Uncounted() >= countedEvery {
		e.countMemory()
	}
	e.received("upsert", c)
}

// take adds a change with which a resource leaves the view.
func (e *entry) take(c log.Entry) {
	if e.over {
		return
	}
	e.state.Remove(c)
	e.received("delete", c)
}

func (e *entry) received(event string, c log.Entry) {
	if e.declared != nil {
		e.declared.Received(event, c.Seq() > e.base)
	}
}

// matches reports whether the view has a resource. A view that was removed has none any more.
func (e *entry) matches(r stream.Resource) (bool, error) {
	if e.matcher == nil {
		return e.definition.Matches(r)
	}
	if e.removed.Load() {
		return false, nil
	}
	matches, err := e.matcher.Matches(r)
	e.turn.did(e.matcher.Spent())
	return matches, err
}

// begins records in which turn of a builder the view is fed; nil: in none.
func (e *entry) begins(t *turn) {
	if e.turn = t; e.order != nil {
		e.order.turn = t
	}
}

// release gives up the state up to which the view was being fed, and what reads it.
func (e *entry) release() {
	e.matcher = nil
	e.begins(nil)
	if e.target != nil {
		e.target.Release()
		e.target = nil
	}
}

// next returns the state up to which the view is fed in this turn. It starts over if what
// the view has is of no use.
func (e *entry) next() (log.Snapshot, bool) {
	newest := e.parent.of.Snapshot()
	e.seen = newest.Number()
	if !newest.Primed() {
		e.forget(newest.Status())
		return newest, false
	}
	if e.begun && e.outdated(newest) {
		e.begun = false
		e.release()
	}
	if e.target != nil {
		if s, ok := e.target.Snapshot(); ok {
			return s, true
		}
		e.release() // the memory was needed
	}
	e.target, e.since, e.targeted = newest.Pin(), e.cursor, time.Now()
	if !e.begun {
		e.begin(newest)
	}
	return newest, true
}

// outdated reports whether what the view has so far is of no use.
func (e *entry) outdated(newest log.Snapshot) bool {
	return e.at.Generation() != newest.Generation() || newest.Forgotten() > max(e.cursor, e.base)
}

// lowest returns the revision from which the view should know its deletes: since the watch
// knows what each change was about, and before that for clients that have asked by now. A view
// that hides resources must not guess: it knows deletes from the revision on as of which
// nothing is in doubt.
func (e *entry) lowest(s log.Snapshot) uint64 {
	switch {
	case e.order != nil:
		return math.MaxUint64 // who resumes needs to know what was in the window, not in the view
	case e.hides:
		return max(e.parent.exactFrom(s), s.Since())
	}
	horizon, _ := s.Horizon()
	return max(min(s.DeletesCompleteTo(), s.Understood(), e.wanted.Load()), horizon, s.Since())
}

// begin makes the view from a state of the watch.
func (e *entry) begin(s log.Snapshot) {
	e.low = e.lowest(s)
	e.primed = e.watch.Snapshot().Epoch()
	e.state.Begin(s, e.definition.Epoch(s.Epoch()), e.low)
	e.views.count.builds.Add(1)
	e.begun, e.whole, e.building, e.began = true, false, true, time.Now()
	e.base, e.since, e.cursor, e.at = s.Seq(), s.Seq(), 0, s
}

// forget gives up the state of the view, since its watch has none.
func (e *entry) forget(why stream.Status) {
	e.release()
	now := e.watch.Status()
	switch {
	case !e.begun && now.State == why.State && now.Reason == why.Reason:
	case !e.begun && e.watch.Snapshot().Primed():
		e.state.SetStatus(stream.Status{State: stream.Resyncing, Since: now.Since, Reason: why.Reason, Detail: why.Detail})
	default:
		e.state.Discard(why)
	}
	e.lose()
}

// lose is called when the view has no state any more.
func (e *entry) lose() {
	e.begun, e.whole, e.building, e.at = false, false, false, log.Snapshot{}
}

// change applies one change of the watch.
func (e *entry) change(s log.Snapshot, c log.Entry) {
	if c.Seq() <= e.base {
		e.found(s, c)
		return
	}
	r := c.Resource()
	matches, err := false, error(nil)
	if !c.Deleted() {
		matches, err = e.matches(r)
		e.evaluated(err)
	}
	e.apply(c, r, matches, e.formerOf(s, c))
}

// former says whether a reader of a view may have a resource before a change, although the view
// has not.
type former uint8

const (
	absent  former = iota // none has
	present               // the view had it, at the revision from which it knows its deletes or later
	unknown               // what the resource was is no longer known
)

// formerOf says whether a reader of the view may have the resource of c.
func (e *entry) formerOf(s log.Snapshot, c log.Entry) former {
	if e.building {
		return e.hadSince(s, c)
	}
	before, had, known := s.Before(c)
	if !known && c.PreviousSeq() > e.since || known && deletesUnseen(c, before, had) {
		return unknown
	}
	return absent
}

// deletesUnseen reports whether c deletes a resource that the watch has not seen: it had
// none of the key before, or only the delete of an earlier one. Another replica may have
// seen it, and so may a reader that comes from there.
func deletesUnseen(c, before log.Entry, had bool) bool {
	return c.Deleted() && (!had || before.Deleted())
}

// apply applies a change of a resource that the view has, or has not, after it. It reports
// whether there is something to publish.
func (e *entry) apply(c log.Entry, r stream.Resource, matches bool, was former) bool {
	if matches {
		projected, err := e.project(r)
		if err == nil {
			e.add(c, projected)
			return true
		}
		e.views.count.evaluated(view.NotJSON)
	}
	return e.remove(c, r.Key, was)
}

// remove applies a change after which the view does not have the resource. A needless delete
// would reveal a key that may be hidden from readers, so none is sent: readers from before it
// do not resume.
func (e *entry) remove(c log.Entry, key string, was former) bool {
	if !e.definition.Allows(key) {
		was = absent
	}
	lacks := e.hides && was == unknown
	if lacks {
		e.state.Lacks(c)
		was = absent
	}
	if was == absent && !e.state.Has(c) {
		return lacks
	}
	e.take(c)
	return true
}

// project returns what the view has of a resource; nil: all of it.
func (e *entry) project(r stream.Resource) (*stream.Resource, error) {
	if !e.definition.Projects() {
		return nil, nil
	}
	if e.turn != nil {
		e.turn.did(len(r.Value) / projectedBytes)
	}
	projected, err := e.definition.Project(r)
	return &projected, err
}

// projectedBytes is how many bytes of a value are projected in a unit of work.
const projectedBytes = 20

// found applies an entry of the state with which the view began: a resource, or one that
// a client which resumes may still have.
func (e *entry) found(s log.Snapshot, c log.Entry) {
	recent := c.NewerThan(e.low)
	if !s.Counts(c) && !(e.hides && recent) {
		return
	}
	r := c.Resource()
	if !e.definition.Allows(r.Key) || !s.Counts(c) && e.hasNow(s, r.Key) {
		return
	}
	if !c.Deleted() {
		matches, err := e.matches(r)
		e.views.count.evaluated(err)
		if s.Counts(c) {
			e.countFailure(err)
		}
		if matches {
			if s.Counts(c) {
				e.apply(c, r, true, absent)
			}
			return
		}
	}
	if recent {
		e.remove(c, r.Key, e.hadSince(s, c))
	}
}

// hasNow reports whether the view has the resource in the end. If so, superseded changes of it
// do not matter.
func (e *entry) hasNow(s log.Snapshot, key string) bool {
	r, ok := s.Get(key)
	if !ok {
		return false
	}
	matches, _ := e.matches(r)
	return matches
}

// hadSince says whether the view had the resource of c, before c, at low or later. A view that
// hides resources deletes each of them at the very change with which it leaves: a reader from
// after that change may never have had it. So only the last value before c counts in such a
// view.
func (e *entry) hadSince(s log.Snapshot, c log.Entry) former {
	for {
		before, ok, known := s.Before(c)
		if c.Conflated() || !known || deletesUnseen(c, before, ok) {
			return unknown // it may have been one of this view
		}
		if !ok {
			return absent
		}
		if !before.Deleted() {
			if matches, _ := e.matches(before.Resource()); matches {
				return present
			}
		}
		if e.hides || !before.NewerThan(e.low) {
			return absent
		}
		c = before
	}
}

// tooLarge gives up the state of a view that does not fit.
func (e *entry) tooLarge() {
	e.release()
	began := e.begun
	e.lose()
	if began || e.watch.Status().Reason != noRoom {
		e.state.Discard(stream.Status{State: stream.Stale, Since: time.Now(), Reason: noRoom})
	}
	e.left()
}

// noRoom is the reason for which a view has no state.
const noRoom = "the views that clients ask for have no room for it"

// leaves counts that the view will soon hold nothing.
func (e *entry) leaves() {
	n := e.bytes()
	e.views.leaving.Add(n - e.leaving.Swap(n))
}

// left is called once it holds nothing.
func (e *entry) left() { e.views.leaving.Add(-e.leaving.Swap(0)) }

// unused is why a view that was removed has no state.
const unused = "the view was not used"

// endUnused frees what a view that clients asked for holds, once it was removed.
func (e *entry) endUnused() {
	e.release()
	e.state.FedBy(nil)
	e.state.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: unused})
	if e.order != nil {
		e.order.end()
	}
	e.account.Leave()
	e.left()
}
