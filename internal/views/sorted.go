package views

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"
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

	own log.Fed // what the windows reflect while builders feed the order

	// Guarded by the mutex of Views.
	list   []*window // that are open
	byID   map[string]*window
	shares map[string]share // of each client

	mu             sync.Mutex // guards the following fields
	opened, closed []*window  // that the feeder or builder of the order does not know of yet

	// Owned by the feeder or the builder that has the view.
	windows   []*window // sorted, see compareWindows
	most      int       // rows that one of them may have
	dirty     []*window // that a step has changed
	touched   []*window // that the next Publish looks at
	untold    []*window // of which readers are to be told at tellAt, or later
	rowBytes  int64     // of all windows
	altered   map[string]struct{}
	fed       *log.Fed
	turn      *turn // of the builder that feeds it alone; nil: none does
	spent     int   // the work that windows have made
	begun     bool  // the tree has a part of the watch
	whole     bool  // and was published
	tree      order.Tree
	builder   *order.Builder // of the tree: it has what was added so far; nil: the tree has
	at        stream.Status  // that was published last
	origin    uint64
	revision  uint64         // of the newest change
	published uint64         // that of the last Publish
	ended     bool           // its transaction has ended
	unordered bool           // changes that have no revision of their own are among those since the last Publish
	resized   bool           // keys have come or gone since the last Publish
	doubt     uint64         // a revision before which the windows may have been others; 0: none
	item, old []byte         // used again
	low       []byte         // used again
	shown     map[string]int // by key, how many windows have a row of it
	alarm     *time.Timer    // which has a window told at tellAt; nil: none was
	tellAt    time.Time      // zero: all are
}

func newSorted(d *view.Definition, of *log.View, account *memory.Account) *sorted {
	t := &sorted{
		definition: d, empty: of, account: account, byID: map[string]*window{}, shares: map[string]share{},
		altered: map[string]struct{}{}, shown: map[string]int{},
	}
	t.fed = &t.own
	return t
}

// Begin begins with an empty order, of the state s.
func (t *sorted) Begin(log.Snapshot, string, uint64) {
	t.forget()
	t.begun, t.builder = true, &order.Builder{}
}

func (t *sorted) forget() {
	t.tree, t.builder, t.begun, t.whole, t.revision, t.published, t.doubt = order.Tree{}, nil, false, false, 0, 0, 0
	t.ended, t.unordered, t.resized, t.tellAt = false, false, false, time.Time{}
	for _, w := range t.windows {
		w.forget()
	}
	t.dirty, t.touched, t.untold = nil, nil, nil
	clear(t.altered)
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
	if len(t.dirty) > 0 && t.shows(projected.Key) {
		t.altered[projected.Key] = struct{}{}
	}
	switch {
	case !had:
		t.tree.Set(projected.Key, t.item[:n])
		t.resized = true
		t.changes(nil, t.item, n, t.rank(t.item), t.tree.Len()-1)
	case bytes.Equal(t.old, t.item):
		t.changesAt(t.item, n)
	default:
		was := t.rank(t.old)
		t.tree.Set(projected.Key, t.item[:n])
		is := t.rank(t.item)
		t.changes(t.old, t.item, n, min(was, is), max(was, is))
	}
}

// rank returns how many keys come before a place, if a window needs to know.
func (t *sorted) rank(item []byte) (rank int) {
	if len(t.windows) > 0 {
		rank, _ = t.tree.Rank(item)
	}
	return rank
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
		was := t.rank(t.old)
		t.tree.Delete(key)
		t.resized = true
		t.changes(t.old, nil, 0, was, t.tree.Len())
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
// its new sort key. Only keys from one rank to another one have others at their ranks by now, or have changed. So of the
// windows that begin at a rank those are told that have one of these, and of those that begin after a place those that
// begin before the resource, and not so far before it that they end there.
func (t *sorted) changes(old, now []byte, n, from, to int) {
	if !t.whole || len(t.windows) == 0 {
		return
	}
	after := t.search(func(w *window) bool { return w.After != "" })
	first := t.search(func(w *window) bool { return w.After != "" || w.Offset > from-t.most })
	for _, w := range t.windows[first:after] {
		if w.Offset > to {
			break
		}
		t.change(w, old, now, n)
	}
	if after == len(t.windows) {
		return
	}
	low, high := t.placeAt(from-t.most), old
	if bytes.Compare(now, high) > 0 {
		high = now
	}
	first = t.search(func(w *window) bool { return w.After != "" && w.After >= string(low) })
	for _, w := range t.windows[first:] {
		if w.After >= string(high) {
			break
		}
		t.change(w, old, now, n)
	}
}

func (t *sorted) change(w *window, old, now []byte, n int) {
	if t.spend(1); w.begun {
		w.change(old, now, n, t.revision)
	}
}

// search returns the index of the first window for which is is true. It is true for all after that one.
func (t *sorted) search(is func(*window) bool) int {
	return sort.Search(len(t.windows), func(i int) bool { return is(t.windows[i]) })
}

// placeAt returns the place of the key at a rank; nil if that is less than 0.
func (t *sorted) placeAt(rank int) []byte {
	t.low = t.low[:0]
	if rank < 0 {
		return nil
	}
	for sortKey, key := range t.tree.From(rank) {
		t.low = append(append(t.low, sortKey...), key...)
		break
	}
	return t.low
}

// changesAt tells the windows that a resource has changed whose place is the same. Most resources are in no
// window, and cost one look-up however many windows there are.
func (t *sorted) changesAt(item []byte, n int) {
	if t.shown[string(item[n:])] > 0 {
		rank := t.rank(item)
		t.changes(item, item, n, rank, rank)
	}
}

// The work that windows make, in the units of the costs of filters: to read one, and to write what has changed in it. Each row
// that is read makes one more.
const (
	readCosts  = 20
	writeCosts = 50
)

// spend counts work. If a builder feeds the order, it may pause.
func (t *sorted) spend(work int) {
	if t.spent += work; t.turn != nil {
		t.turn.did(work)
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
	for _, w := range t.dirty {
		if w.dirty {
			w.read(&t.tree, t.revision)
			t.spend(readCosts + len(w.rows))
		}
	}
	clear(t.dirty)
	t.dirty = t.dirty[:0]
	clear(t.altered)
}

// touch has the next Publish look at a window.
func (t *sorted) touch(w *window) {
	if !w.touched {
		w.touched = true
		t.touched = append(t.touched, w)
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
	t.touchUntold(now)
	touched := t.touched
	t.touched = nil
	if told || t.doubt > 0 || t.resized || !t.whole { // it concerns all
		touched = t.windows
	}
	for _, w := range touched {
		w.touched = false
		if w.over {
			continue
		}
		t.spend(1)
		wrote := t.write(w, s)
		wrote = t.tell(w, s, now) || wrote
		if wrote || told || w.state.Awaited() {
			t.spend(writeCosts)
			news = w.state.Publish(s) || news
		}
	}
	t.at, t.origin = status, s.Origin()
	t.whole, t.resized, t.doubt, t.unordered = true, false, 0, false
	t.published, t.revision = s.Revision(), max(t.revision, s.Revision())
	if t.fed == &t.own && t.own.Set(s) {
		t.publishAwaited(s)
	}
	t.Count()
	t.setAlarm(now)
	return news
}

// publishAwaited wakes the readers of windows that wait for any newer state.
func (t *sorted) publishAwaited(s log.Snapshot) {
	for _, w := range t.windows {
		if w.state.Awaited() {
			w.state.Publish(s)
		}
	}
}

// touchUntold has Publish look at the windows of which it is time to tell the readers.
func (t *sorted) touchUntold(now time.Time) {
	if t.tellAt.IsZero() || now.Before(t.tellAt) {
		return
	}
	untold := t.untold
	t.untold, t.tellAt = nil, time.Time{}
	for _, w := range untold {
		if w.waits = false; w.untold && !w.over {
			t.touch(w)
		}
	}
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
		if !w.waits {
			w.waits = true
			t.untold = append(t.untold, w)
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
	if !t.resized && !moved {
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
	t.mu.Lock()
	opened, closed := t.opened, t.closed
	t.opened, t.closed = nil, nil
	t.mu.Unlock()
	for _, w := range opened {
		t.spend(1)
		at, _ := slices.BinarySearchFunc(t.windows, w, compareWindows)
		t.windows = slices.Insert(t.windows, at, w)
		t.most = max(t.most, w.Limit)
		w.state.FedBy(t.fed)
		t.touch(w)
	}
	for _, w := range closed {
		t.spend(1)
		if at, is := slices.BinarySearchFunc(t.windows, w, compareWindows); is {
			t.windows = slices.Delete(t.windows, at, at+1)
		}
		w.end()
	}
}

// compareWindows sorts the windows of an order: those that begin at a rank come first, by their ranks, and then those that begin
// after a place. No two are equal.
func compareWindows(a, b *window) int {
	return cmp.Or(strings.Compare(a.After, b.After), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Limit, b.Limit))
}

// stirs reports whether Publish has something to do for a window, although no change has come.
func (t *sorted) stirs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.touched)+len(t.opened)+len(t.closed) > 0 || !t.tellAt.IsZero() && !time.Now().Before(t.tellAt)
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
	if t.fed = f; f == nil {
		t.fed = &t.own
	}
	for _, w := range t.windows {
		w.state.FedBy(t.fed)
	}
}

// Awaited reports whether a reader of a window waits for any newer state, or Publish has something else to do.
func (t *sorted) Awaited() bool {
	if t.begun {
		for _, w := range t.windows {
			if w.state.Awaited() {
				t.touch(w)
			}
		}
	}
	return t.stirs()
}

// Count counts the memory of the order. That of the windows is counted when they are published.
func (t *sorted) Count() bool {
	n := t.tree.Bytes() + t.definition.Bytes()
	if t.builder != nil {
		n += t.builder.Bytes()
	}
	n += t.rowBytes
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
