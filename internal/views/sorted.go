package views

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/order"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// target is what a view is written to: its log, or an order of which there are windows. See log.View.
type target interface {
	Begin(s log.Snapshot, epoch string, low uint64)
	Add(c log.Entry, projected *stream.Resource)
	Remove(c log.Entry)
	Has(c log.Entry) bool
	Lacks(c log.Entry)
	EndTransaction(last log.Entry)
	Skipped(s log.Snapshot)
	Publish(s log.Snapshot) bool
	Abandon()
	Discard(stream.Status)
	SetStatus(stream.Status)
	FedBy(*log.Fed)
	Awaited() bool
	Count() bool
	Uncounted() int64
}

// sorted is an order of a view: its keys in a tree, which all windows of the order share. The
// resources in the windows are read from the watch.
//
// What several transactions change is written to the windows at once. But a reader that comes from
// another replica may have any state in between, so what was in a window for a moment is deleted where it left.
type sorted struct {
	// Static after construction.
	definition *view.Definition // of any of the windows
	empty      *log.View        // the log of the order, which has its status only
	account    *memory.Account

	look func() // has whoever has the order look whether a window is to be told of

	list atomic.Pointer[[]*window] // written with the mutex of Views held; never modified

	// Owned by the feeder or the builder that has the view.
	adopted   *[]*window // the newest list that was seen
	windows   []*window
	fed       *log.Fed
	begun     bool // the tree has a part of the watch
	whole     bool // and was published
	tree      order.Tree
	builder   *order.Builder // of the tree: it has what was added so far; nil: the tree has
	at        stream.Status  // that was published last
	origin    uint64
	revision  uint64         // of the newest change
	published uint64         // that of the last Publish
	ended     bool           // its transaction has ended
	unordered bool           // changes that have no revision of their own are among those since the last Publish
	moved     bool           // keys have come, gone, or have other places, since the last Publish
	doubt     uint64         // a revision before which the windows may have been others; 0: none
	item, old []byte         // used again
	shown     map[string]int // by key, how many windows have a row of it
	alarm     *time.Timer    // which has a window told at tellAt; nil: none was
	tellAt    time.Time      // zero: all are
}

func newSorted(d *view.Definition, of *log.View, account *memory.Account) *sorted {
	t := &sorted{definition: d, empty: of, account: account, shown: map[string]int{}}
	t.list.Store(new([]*window))
	t.adopted = t.list.Load()
	return t
}

// Begin begins with an empty order, of the state s.
func (t *sorted) Begin(log.Snapshot, string, uint64) {
	t.forget()
	t.begun, t.builder = true, &order.Builder{}
}

func (t *sorted) forget() {
	t.tree, t.builder, t.begun, t.whole, t.revision, t.published, t.doubt = order.Tree{}, nil, false, false, 0, 0, 0
	t.ended, t.unordered, t.moved, t.tellAt = false, false, false, time.Time{}
	for _, w := range t.windows {
		w.forget()
	}
}

// arrange has the tree have all that was added since Begin, before the first change of that, until a turn ends.
func (t *sorted) arrange(turn *turn) (done bool) {
	for t.builder != nil {
		if t.builder.Merge(mergedAtOnce) {
			t.tree, t.builder = t.builder.Tree(), nil
			break
		}
		if turn.did(mergedAtOnce * mergeCosts); turn.over {
			return false
		}
	}
	return true
}

const (
	mergedAtOnce = 256 // keys
	mergeCosts   = 2   // the work that one of them makes
)

// Add gives a resource its place.
func (t *sorted) Add(c log.Entry, projected *stream.Resource) {
	if projected == nil {
		r := c.Resource()
		projected = &r
	}
	t.follow(c)
	t.item = t.definition.AppendSortKey(t.item[:0], *projected)
	n := len(t.item)
	switch {
	case t.builder != nil:
		t.builder.Add(projected.Key, t.item)
		return
	case !t.whole:
		t.tree.Set(projected.Key, t.item)
		return
	}
	had := t.placeOf(projected.Key)
	t.item = append(t.item, projected.Key...)
	switch {
	case !had:
		t.tree.Set(projected.Key, t.item[:n])
		t.moved = true
		t.changes(nil, t.item, n)
	case bytes.Equal(t.old, t.item):
		t.changesAt(t.item, n)
	default:
		t.tree.Set(projected.Key, t.item[:n])
		t.moved = true
		t.changes(t.old, t.item, n)
	}
}

// placeOf reads the place of a key into old.
func (t *sorted) placeOf(key string) bool {
	sortKey, had := t.tree.SortKey(key)
	t.old = append(append(t.old[:0], sortKey...), key...)
	return had
}

// Remove removes a resource.
func (t *sorted) Remove(c log.Entry) {
	t.follow(c)
	t.unordered = t.unordered || c.Unnumbered()
	key := c.Resource().Key
	if t.placeOf(key) {
		t.tree.Delete(key)
		t.moved = true
		t.changes(t.old, nil, 0)
	}
}

// Has reports whether the order has the resource of an entry.
func (t *sorted) Has(c log.Entry) bool {
	_, had := t.tree.SortKey(c.Resource().Key)
	return had
}

// follow is called before each change. Those of one revision make a step: no reader has some of them.
func (t *sorted) follow(c log.Entry) {
	place := c.Place()
	if t.whole && place <= t.published {
		t.unordered = true // a reader at that revision may have been sent another state
	}
	if place > t.revision || t.ended {
		t.endStep()
		t.revision, t.ended = max(t.revision, place), false
	}
}

// changes tells the windows where a resource was, and where it is; nil: nowhere. n is the length of
// its new sort key.
func (t *sorted) changes(old, now []byte, n int) {
	if !t.whole {
		return
	}
	for _, w := range t.windows {
		if w.begun {
			w.change(old, now, n, t.revision)
		}
	}
}

// changesAt tells the windows that a resource has changed whose place is the same. Most resources are in no
// window, and cost one look-up however many windows there are.
func (t *sorted) changesAt(item []byte, n int) {
	if t.shown[string(item[n:])] > 0 {
		t.changes(item, item, n)
	}
}

// shows reports whether a window has a row of a key.
func (t *sorted) shows(key string) bool { return t.shown[key] > 0 }

// show records that so many more windows have a row of a key.
func (t *sorted) show(key string, n int) {
	if t.shown[key] += n; t.shown[key] == 0 {
		delete(t.shown, key)
	}
}

// endStep reads the windows again that a step has changed.
func (t *sorted) endStep() {
	for _, w := range t.windows {
		if w.dirty {
			w.read(&t.tree, t.revision)
		}
	}
}

// Lacks records that the windows may have had the resource of an entry until then.
func (t *sorted) Lacks(c log.Entry) {
	t.doubt = max(t.doubt, c.Place())
	if c.Unnumbered() {
		t.doubt = max(t.doubt, c.Place()+1)
	}
}

// EndTransaction ends a step.
func (t *sorted) EndTransaction(last log.Entry) {
	t.endStep()
	t.revision, t.ended = max(t.revision, last.Place()), true
}

// Skipped records that changes up to the state s may be missing.
func (t *sorted) Skipped(s log.Snapshot) { t.doubt = max(t.doubt, s.Revision()) }

// Publish writes what has changed to the windows, and makes it visible as of the state s.
func (t *sorted) Publish(s log.Snapshot) (news bool) {
	t.adopt()
	if !t.begun {
		return false
	}
	t.endStep()
	status := s.Status()
	told := status.State != t.at.State || status.Reason != t.at.Reason || s.Origin() != t.origin
	now := time.Now()
	t.tellAt = time.Time{}
	for _, w := range t.windows {
		wrote := t.write(w, s)
		wrote = t.tell(w, s, now) || wrote
		if wrote || told || t.fed == nil || w.state.Awaited() {
			news = w.state.Publish(s) || news
		}
	}
	t.at, t.origin = status, s.Origin()
	t.whole, t.moved, t.doubt, t.unordered = true, false, 0, false
	t.published, t.revision = s.Revision(), max(t.revision, s.Revision())
	t.Count()
	t.setAlarm(now)
	return news
}

// tellEvery is how often readers of a window are told what it says besides its resources, if that goes on
// changing.
const tellEvery = time.Second

// tell has the readers of a window told of what it says by now, unless that was done lately: then it is done
// later. It reports whether they are to be told.
func (t *sorted) tell(w *window, s log.Snapshot, now time.Time) bool {
	if !w.untold {
		return false
	}
	if at := w.toldAt.Add(tellEvery); now.Before(at) {
		if t.tellAt.IsZero() || at.Before(t.tellAt) {
			t.tellAt = at
		}
		return false
	}
	w.untold, w.toldAt = false, now
	w.about.Told++
	w.state.SetWindow(s, w.about)
	return true
}

// setAlarm has the order looked at when the next window is to be told of.
func (t *sorted) setAlarm(now time.Time) {
	switch {
	case t.tellAt.IsZero():
	case t.alarm == nil:
		t.alarm = time.AfterFunc(t.tellAt.Sub(now), t.look)
	default:
		t.alarm.Reset(t.tellAt.Sub(now))
	}
}

// write writes to a window what has changed in it. It reports whether there is something to publish.
func (t *sorted) write(w *window, s log.Snapshot) (wrote bool) {
	began := !w.begun // its readers are told at the end of their snapshots
	moved := w.moved || began
	switch {
	case began:
		w.read(&t.tree, t.revision)
		w.state.BeginWindow(s, w.definition.Epoch(s.Epoch()))
		for _, r := range w.rows {
			w.enter(t, s, r, s.Revision())
		}
		w.state.CloseTransaction(true)
		w.published()
		w.begun, wrote = true, true
	case w.moved || len(w.changed) > 0:
		wrote = w.write(t, s)
		if t.unordered && wrote {
			w.state.Ambiguous(t.revision)
		}
	}
	if t.doubt > 0 && t.whole {
		w.state.Doubt(t.doubt)
		wrote = true
	}
	if !t.moved && !moved {
		return wrote
	}
	if about := w.say(&t.tree, moved); about != w.about {
		w.state.SetWindow(s, about)
		w.about, w.untold = about, !began
	}
	return wrote
}

// adopt takes over the windows that were opened, and ends those that were closed.
func (t *sorted) adopt() {
	list := t.list.Load()
	if list == t.adopted {
		return
	}
	t.adopted = list
	for _, w := range t.windows {
		if !slices.Contains(*list, w) {
			w.end()
		}
	}
	for _, w := range *list {
		if !slices.Contains(t.windows, w) {
			w.state.FedBy(t.fed)
		}
	}
	t.windows = slices.Clone(*list)
}

// Abandon does nothing: no window is declared.
func (t *sorted) Abandon() {}

// Discard forgets everything.
func (t *sorted) Discard(why stream.Status) {
	t.adopt()
	t.forget()
	t.empty.Discard(why)
	for _, w := range t.windows {
		w.state.Discard(why)
	}
	t.Count()
}

// SetStatus publishes the freshness of the windows.
func (t *sorted) SetStatus(status stream.Status) {
	t.adopt()
	t.empty.SetStatus(status)
	for _, w := range t.windows {
		w.state.SetStatus(status)
	}
	t.at = status
}

// FedBy makes the windows reflect whatever f says, when they are read.
func (t *sorted) FedBy(f *log.Fed) {
	t.fed = f
	for _, w := range t.windows {
		w.state.FedBy(f)
	}
}

// Awaited reports whether a reader of a window waits for any newer state, or a window for its first, or for its
// readers to be told of it.
func (t *sorted) Awaited() bool {
	if !t.tellAt.IsZero() && !time.Now().Before(t.tellAt) {
		return true
	}
	return t.list.Load() != t.adopted || slices.ContainsFunc(t.windows, func(w *window) bool { return w.state.Awaited() })
}

// Count counts the memory of the order. That of the windows is counted when they are published.
func (t *sorted) Count() bool {
	n := t.tree.Bytes() + t.definition.Bytes()
	if t.builder != nil {
		n += t.builder.Bytes()
	}
	for _, w := range t.windows {
		n += w.size
	}
	t.account.SetLog(n, 0)
	return false
}

// Uncounted is 0: no window is declared.
func (t *sorted) Uncounted() int64 { return 0 }

// end frees what the order and its windows hold.
func (t *sorted) end() {
	t.adopt()
	t.forget()
	if t.alarm != nil {
		t.alarm.Stop()
	}
	for _, w := range t.windows {
		w.end()
	}
	t.windows = nil
	t.Count()
}
