package views

import (
	"math"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// batch is views that are made together from all of their watch: of very many that an index
// finds, each costs little more than its resources.
//
// Owned by a builder.
type batch struct {
	bundle

	// Static after construction.
	parent *parent
	hides  bool // its views do

	begun  bool
	target *log.Pin // the state that they are made from; nil: not begun, or they are whole
	cursor uint64   // entries up to this seq are in them
	lowest uint64   // of the revisions from which they know their deletes
}

// The most views in a batch. Those that no index finds are each asked about every resource.
const (
	mostIndexed = 4096
	mostScanned = 4
)

// accepts reports whether a batch that begins with first can have e too.
func accepts(first, e *entry, n int) bool {
	if first.alone.Load() || e.alone.Load() || first.parent != e.parent || first.hides != e.hides || first.indexed() != e.indexed() {
		return false
	}
	return n < mostScanned || n < mostIndexed && first.indexed()
}

func newBatch(views []*entry) *batch {
	first := views[0]
	b := &batch{bundle: newBundle(first.views, first.indexed()), parent: first.parent, hides: first.hides}
	for _, e := range views {
		b.add(e)
	}
	return b
}

// work continues until a turn ends. It returns true once all views have a state that is
// nearly the newest, or if there is none.
func (b *batch) work(t *turn) (done bool) {
	newest := b.parent.of.Snapshot()
	for e := range b.members {
		e.seen = newest.Number()
		switch {
		case e.removed.Load():
			b.drop(e)
			e.end()
		case e.full.Load():
			b.drop(e)
			e.tooLarge()
			b.parent.feeder(e).ask(suspends, e)
		}
	}
	switch {
	case len(b.members) == 0:
		b.release()
		return true
	case !newest.Primed():
		b.release()
		for e := range b.members {
			e.forget(newest.Status())
		}
		return true
	case !b.begun || b.at.Generation() != newest.Generation() || newest.Forgotten() > b.at.Seq():
		b.begin(newest) // for the first time, or what there is is of no use
	}
	if b.target != nil && !b.make(t) {
		return false
	}
	b.feed(b.parent.of.Snapshot())
	return true
}

// begin begins to make the views from a state.
func (b *batch) begin(s log.Snapshot) {
	b.release()
	b.target, b.at, b.cursor, b.lowest = s.Pin(), s, 0, math.MaxUint64
	b.begun, b.open, b.news = true, nil, nil
	for e := range b.members {
		e.opened, e.changed, e.applied = false, false, 0
		e.begin(s)
		b.lowest = min(b.lowest, e.low)
	}
}

// make adds what there is, until a turn ends.
func (b *batch) make(t *turn) (done bool) {
	if _, held := b.target.Snapshot(); !held {
		b.begin(b.parent.of.Snapshot()) // the memory was needed
	}
	for c := range b.at.Entries(b.cursor) {
		if t.did(entryCosts + b.spent); t.over {
			b.spent = 0
			b.report()
			return false
		}
		b.spent = 0
		b.find(c)
		b.cursor = c.Seq()
		if c.EndsTransaction() {
			b.endTransaction(c)
		}
	}
	b.close()
	for e := range b.members {
		if !e.arrange(t) {
			b.report()
			return false
		}
	}
	b.release()
	for e := range b.members {
		e.publish(b.at)
		e.changed = false
	}
	b.news = b.news[:0]
	return true
}

// report counts the memory so far, and tells readers if they have waited for long.
func (b *batch) report() {
	for e := range b.members {
		e.report()
	}
}

func (b *batch) release() {
	if b.target != nil {
		b.target.Release()
		b.target = nil
	}
}

// find adds an entry of the state to the views that have it, or of which a reader that
// resumes may have it.
func (b *batch) find(c log.Entry) {
	counts, recent := b.at.Counts(c), c.NewerThan(b.lowest)
	if !counts && !(b.hides && recent) {
		return
	}
	r := c.Resource()
	if counts && !c.Deleted() {
		b.candidates(view.Change{New: &r}, func(e *entry, matches bool, err error) {
			e.countFailure(err)
			if matches && e.apply(c, r, true, absent) {
				b.spent += len(r.Value) / projectedBytes
				e.applied = c.Seq()
				b.touch(e)
			}
		})
	}
	switch {
	case !recent:
	case b.hides:
		b.findLeaving(c, r)
	default:
		b.findFormer(c, r)
	}
}

// findLeaving is for views that hide resources. It adds a change, superseded or not, to the
// views that had the resource until then, and have it neither after the change nor in the end.
// Views that may have had it resume no reader from before the change.
func (b *batch) findLeaving(c log.Entry, r stream.Resource) {
	if !b.at.Counts(c) { // the views that still have it get a newer one
		now, ok := b.at.Get(r.Key)
		b.have(c, now, ok)
		b.have(c, r, !c.Deleted())
	}
	before, ok, known := b.at.Before(c)
	switch {
	case c.Conflated() || !known || deletesUnseen(c, before, ok):
		for e := range b.members {
			b.leave(e, c, r, unknown)
		}
	case ok && !before.Deleted():
		old := before.Resource()
		b.candidates(view.Change{Old: &old}, func(e *entry, matches bool, _ error) {
			if matches {
				b.leave(e, c, r, present)
			}
		})
	}
}

// have records that a change does not concern the views that have a resource, if there is one.
func (b *batch) have(c log.Entry, r stream.Resource, ok bool) {
	if !ok {
		return
	}
	b.candidates(view.Change{New: &r}, func(e *entry, matches bool, _ error) {
		if matches {
			e.applied = c.Seq()
		}
	})
}

// leave adds a change with which a resource leaves a view, or may leave it.
func (b *batch) leave(e *entry, c log.Entry, r stream.Resource, was former) {
	if e.applied != c.Seq() && c.NewerThan(e.low) && e.remove(c, r.Key, was) {
		b.touch(e)
	}
}

// findFormer adds the change with which a resource left those views that had it, at the
// revision from which they know their deletes or later. What is no longer known counts.
func (b *batch) findFormer(c log.Entry, r stream.Resource) {
	for at := c; at.NewerThan(b.lowest); {
		left := func(e *entry) {
			if e.applied != c.Seq() && at.NewerThan(e.low) && e.definition.Allows(r.Key) {
				e.applied = c.Seq()
				e.take(c)
				b.touch(e)
			}
		}
		before, ok, known := b.at.Before(at)
		if at.Conflated() || !known || deletesUnseen(at, before, ok) { // it may have been one of any view
			for e := range b.members {
				left(e)
			}
			return
		}
		if !ok {
			return
		}
		if !before.Deleted() {
			old := before.Resource()
			b.candidates(view.Change{Old: &old}, func(e *entry, matches bool, _ error) {
				if matches {
					left(e)
				}
			})
		}
		at = before
	}
}
