package history

import (
	"iter"
	"math"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Query says which changes are wanted.
type Query struct {
	Key    *string          // of the only resource; nil: all
	After  *stream.Position // what is not newer is not wanted; nil: everything is
	Before *Cursor          // where to go on; nil: at the newest change
	Limit  int              // changes
	// Bytes is how many bytes of keys and values are enough. The last change may exceed it.
	Bytes int64
	// Entries is how many entries of the log are read, give or take a block.
	Entries int
}

// Change is one version of a resource, or the end of one.
type Change struct {
	stream.Resource           // without a value if it is Deleted; it aliases the log
	Deleted         bool      // the resource was deleted, or is not in the view any more
	At              time.Time // when it became visible, or up to a second before; zero: not known
	Conflated       bool      // values before it may have been left out by the upstream
	Projected       bool      // Value is what a view has of it
}

// Page is some changes, newest first.
type Page struct {
	Changes []Change
	Bytes   int64   // of their keys and values
	Next    *Cursor // of what is older; nil: there is nothing more
	// Since is the least revision after which, as far back as the page reaches, nothing is
	// missing.
	Since uint64
	// SinceAt is when the watch was there; zero: not known.
	SinceAt time.Time
	// TooCostly: the filter has cost so much that there is no page. It would do so again.
	TooCostly bool
}

// mostAsked is what the filter may cost for a page, in units of about 100 ns: some half a
// second. The page can end only at a block of entries, so a block may not cost more.
const mostAsked = 5 * view.FilterWorkLimit

// Read reads a page of the changes of a watch: of all of it, or of the view that d selects. It
// ends early if more returns false, which it asks now and then.
func Read(s log.Snapshot, d *view.Definition, q Query, more func() bool) Page {
	r := reader{s: s, q: q, more: more, low: lowOf(q.After)}
	r.before = Cursor{Revision: math.MaxUint64}
	if q.Before != nil {
		r.before = *q.Before
	}
	r.evaluator = evaluator{s: s, d: d, whole: d == nil}
	if d != nil {
		r.evaluator.matcher, r.hides = d.Matcher(), d.Hides()
	}
	r.page.Since = r.base()
	r.read()
	r.page.SinceAt, _ = s.CommittedBy(r.page.Since)
	return r.page
}

// reader reads one page.
//
// Owned by one goroutine.
type reader struct {
	// Static after construction.
	s         log.Snapshot
	q         Query
	evaluator evaluator
	hides     bool // the view does, so that nothing may depend on what it hides
	low       uint64
	before    Cursor
	more      func() bool

	revision uint64 // of the last entry walked
	walked   uint64 // entries of that revision
	shown    uint64 // changes of the current block of them
	examined int
	page     Page
}

// lowOf is the least revision of which something may be wanted.
func lowOf(after *stream.Position) uint64 {
	if after == nil {
		return 0
	}
	return after.DeletesCompleteTo()
}

// base is where the answer is complete from, whatever the resources are. Of a view that hides
// some, the whole watch decides, so that the answer tells nothing of them.
func (r *reader) base() uint64 {
	switch {
	case r.hides:
		return r.s.Exact()
	case r.q.Key != nil:
		return r.s.Known()
	}
	return max(r.s.Known(), r.s.Kept())
}

// entries are those that may be wanted, newest first.
func (r *reader) entries() iter.Seq[log.Entry] {
	if r.q.Key != nil {
		return r.s.Versions(*r.q.Key)
	}
	return r.s.Newest(r.before.Revision)
}

func (r *reader) read() {
	for e := range r.entries() {
		if !e.NewerThan(r.low) && r.low > 0 {
			return
		}
		r.step(e)
		if !r.discreet() && r.pauses() {
			r.end()
		} else {
			r.visit(e)
		}
		if r.evaluator.asked > mostAsked {
			r.page = Page{TooCostly: true}
			return
		}
		if r.page.Next != nil {
			return
		}
	}
}

// discreet reports whether even the number of entries that are passed over would tell something:
// of a key, all of which may be hidden. The page then ends only before a change that is shown, so
// that all versions of the key may have to be read for it.
func (r *reader) discreet() bool { return r.hides && r.q.Key != nil }

// end ends the page before the next entry.
func (r *reader) end() {
	r.page.Next = &Cursor{Revision: r.revision, Passed: r.walked - r.walked%block, Shown: r.shown}
}

// full reports whether the page has all that is wanted of it.
func (r *reader) full() bool {
	return len(r.page.Changes) >= r.q.Limit || len(r.page.Changes) > 0 && r.page.Bytes >= r.q.Bytes
}

// step moves the place of the reader to before an entry.
func (r *reader) step(e log.Entry) {
	if e.Place() != r.revision || r.walked%block == 0 {
		r.shown = 0
	}
	if e.Place() != r.revision {
		r.revision, r.walked = e.Place(), 0
	}
}

// pauses reports whether the page ends before the next entry.
func (r *reader) pauses() bool {
	switch {
	case r.full():
		return true
	case r.walked%block != 0:
		return false
	}
	return r.examined >= r.q.Entries || r.examined > 0 && !r.more()
}

// visit goes past an entry, and adds its change, if there is one that is wanted.
func (r *reader) visit(e log.Entry) {
	if e.Place() > r.before.Revision || r.isBefore() && r.walked < r.before.Passed {
		r.walked++
		return
	}
	r.examined++
	c, is := r.change(e)
	switch {
	case !is:
	case r.isBefore() && r.walked < r.before.Passed+block && r.shown < r.before.Shown || !r.wanted(e):
		r.shown++
	case r.discreet() && r.full():
		r.end()
	default:
		r.shown++
		r.page.Changes = append(r.page.Changes, c)
		r.page.Bytes += int64(len(c.Key) + len(c.Value))
	}
	r.walked++
}

// isBefore reports whether the reader is at the revision at which the page before ended.
func (r *reader) isBefore() bool { return r.revision == r.before.Revision }

// wanted reports whether an entry is newer than what the client has, or may be.
func (r *reader) wanted(e log.Entry) bool {
	return r.q.After == nil || e.Place() > r.q.After.AsOf || e.Unnumbered()
}

// change returns the change of an entry, if there is one to show.
func (r *reader) change(e log.Entry) (Change, bool) {
	now := r.evaluator.of(e)
	before, had, known := r.s.Before(e)
	if now.deleted && !r.evaluator.whole && !r.left(e, now, before, had, known) {
		return Change{}, false
	}
	if r.q.Key != nil && !known {
		r.raise(e) // versions before it are not there any more
	}
	c := Change{Resource: now.Resource, Deleted: now.deleted, Conflated: e.Conflated(), Projected: now.projected}
	c.At, _ = r.s.CommittedAt(e)
	return c, true
}

// left reports whether a resource left the view with an entry that the view does not have.
func (r *reader) left(e log.Entry, now shown, before log.Entry, had, known bool) bool {
	if known {
		return had && !r.evaluator.of(before).deleted
	}
	if r.evaluator.d.Allows(now.Key) {
		r.raise(e) // a delete may be missing
	}
	return false
}

// raise records that something may be missing at an entry or before it. What a view hides is
// counted already; see base.
func (r *reader) raise(e log.Entry) {
	if !r.hides {
		r.page.Since = max(r.page.Since, e.Place())
	}
}
