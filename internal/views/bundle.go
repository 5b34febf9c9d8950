package views

import (
	"slices"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// bundle is views of one watch that all have the same state of it, and are fed together.
//
// Owned by a feeder or a builder.
type bundle struct {
	views   *Views // static after construction
	indexed bool   // static after construction: the index finds its views

	at      log.Snapshot // the state that all have
	index   view.Index[*entry]
	members map[*entry]struct{}
	open    []*entry // have some of the transaction being read
	news    []*entry // have something new
	spent   int      // by asking for candidates, until somebody counts it

	orders  []*entry      // those of all of the watch, which the index does not have
	columns *view.Columns // of orders, in their order; nil: they are others since it was made
}

func newBundle(v *Views, indexed bool) bundle {
	return bundle{views: v, indexed: indexed, members: map[*entry]struct{}{}}
}

func (b *bundle) add(e *entry) {
	b.members[e] = struct{}{}
	if e.sortsAll() {
		b.orders, b.columns = append(b.orders, e), nil
		return
	}
	if b.indexed || e.declared == nil {
		b.index.Add(e, e.definition)
		return
	}
	b.index.AddToAll(e, e.definition)
}

func (b *bundle) drop(e *entry) {
	delete(b.members, e)
	if i := slices.Index(b.orders, e); i >= 0 {
		b.orders, b.columns = slices.Delete(b.orders, i, i+1), nil
		return
	}
	b.index.Remove(e)
}

// feed feeds the views with the entries up to a state, and makes visible what concerns
// them. What concerns all of them is told to all.
func (b *bundle) feed(s log.Snapshot) {
	for c := range s.Entries(b.at.Seq()) {
		b.change(s, c)
		if c.EndsTransaction() {
			b.endTransaction(c)
		}
	}
	b.close() // a transaction after which no id may follow
	if s.Intact() > b.at.Seq() {
		for _, e := range b.news {
			e.state.Skipped(s)
		}
	}
	now, was := s.Status(), b.at.Status()
	if now.State != was.State || now.Reason != was.Reason || s.Origin() != b.at.Origin() {
		for e := range b.members {
			e.show(s)
		}
	}
	b.at = s
	b.publishNews()
}

func (b *bundle) publishNews() {
	for _, e := range b.news {
		e.show(b.at)
		e.changed = false
	}
	clear(b.news)
	b.news = b.news[:0]
}

// endTransaction is called after the last entry of a transaction.
func (b *bundle) endTransaction(last log.Entry) {
	for _, e := range b.open {
		e.state.EndTransaction(last)
	}
	b.close()
}

// close forgets which views have some of a transaction, which has ended.
func (b *bundle) close() {
	for _, e := range b.open {
		e.opened = false
	}
	clear(b.open)
	b.open = b.open[:0]
}

// touch records that a view has something new.
func (b *bundle) touch(e *entry) {
	if !e.opened {
		e.opened = true
		b.open = append(b.open, e)
	}
	if !e.changed {
		e.changed = true
		b.news = append(b.news, e)
	}
}

// candidate is a view that a change can concern.
type candidate = view.Candidate[*entry]

// candidates calls f for each view that a change can concern, with whether it matches, and why that is not known.
func (b *bundle) candidates(c view.Change, f func(e *entry, matches bool, err error)) {
	b.indexedBy(c, func(k candidate, matches bool, err error) { f(k.ID, matches, err) })
	b.spent += len(b.orders)
	for _, e := range b.orders {
		f(e, true, nil)
	}
}

// indexedBy is candidates for the views that the index has.
func (b *bundle) indexedBy(c view.Change, f func(k candidate, matches bool, err error)) {
	b.index.Candidates(c, func(k candidate) {
		ask := k.After
		if c.New == nil {
			ask = k.Before
		}
		matches, err := ask()
		b.views.count.evaluated(err)
		if b.indexed {
			b.views.count.found.Add(1)
		}
		f(k, matches, err)
	})
	b.spent += b.index.Spent()
}

// hadNone reports whether the view certainly did not have the resource before the change. It
// returns false where a look into the view is quicker.
func hadNone(k candidate) bool {
	if !k.Quick() {
		return false
	}
	had, _ := k.Before()
	return !had
}

// change applies one change of the watch to the views that it concerns.
func (b *bundle) change(s log.Snapshot, c log.Entry) {
	r := c.Resource()
	before, had, known := s.Before(c)
	if !known {
		before, had, known = b.at.Before(c)
	}
	if !known || deletesUnseen(c, before, had) {
		// Any view may have it, or a reader of it.
		was := absent
		if known || c.PreviousSeq() > b.at.Seq() {
			was = unknown
		}
		b.changeOfUnknown(c, r, was)
		return
	}
	var change view.Change
	if !c.Deleted() {
		change.New = &r
	}
	if had && !before.Deleted() {
		old := before.Resource()
		change.Old = &old
	}
	deleted := c.Deleted()
	b.indexedBy(change, func(k candidate, matches bool, err error) {
		if change.New != nil {
			k.ID.countFailure(err)
		}
		if !matches && (deleted || hadNone(k)) {
			return
		}
		if k.ID.apply(c, r, matches && !deleted, absent) {
			b.touch(k.ID)
		}
	})
	b.changeOrders(c, r, change)
}

// changeOrders applies a change to the orders of all of the watch. Most changes pass by all of them.
func (b *bundle) changeOrders(c log.Entry, r stream.Resource, change view.Change) {
	if len(b.orders) == 0 {
		return
	}
	if b.columns == nil {
		var of []*view.Definition
		for _, e := range b.orders {
			of = append(of, e.definition)
		}
		b.columns = view.NewColumns(of)
	}
	b.spent++
	updates := change.Old != nil && change.New != nil
	if updates {
		if b.columns.Read(change.Old.Value, change.New.Value); b.columns.AllSame() && len(b.open) == 0 && !b.shows(r.Key) {
			return
		}
	}
	b.spent += len(b.orders)
	for i, e := range b.orders {
		// An order that has some of the transaction is told, since its windows may be others by now.
		if updates && !e.opened && b.columns.Same(i) && !e.order.shows(r.Key) {
			continue
		}
		if e.apply(c, r, !c.Deleted(), absent) {
			b.touch(e)
		}
	}
}

// shows reports whether a window of an order of all of the watch has a row of a key.
func (b *bundle) shows(key string) bool {
	return slices.ContainsFunc(b.orders, func(e *entry) bool { return e.order.shows(key) })
}

// changeOfUnknown handles a change of a resource whose former value is unknown. was says
// whether readers may have the resource although the views do not.
func (b *bundle) changeOfUnknown(c log.Entry, r stream.Resource, was former) {
	for e := range b.members {
		if !e.definition.Allows(r.Key) {
			continue
		}
		matches, err := false, error(nil)
		if !c.Deleted() {
			matches, err = e.definition.Matches(r)
			e.evaluated(err)
		}
		if e.apply(c, r, matches, was) {
			b.touch(e)
		}
	}
}
