package views

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/order"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// window is a window of an order.
type window struct {
	// Static after construction.
	definition *view.Definition
	view.Window
	of      *entry // its order
	client  string // who is charged for it
	watch   *watch.RequestedView
	state   *log.View
	account *memory.Account

	// Guarded by the mutex of Views.
	idle idleness
	at   int // in the list of its order

	// Owned by who owns the order.
	begun   bool
	over    bool              // it was closed
	touched bool              // it is in the list of those that the next Publish looks at
	waits   bool              // it is in the list of those of which readers are to be told later
	dirty   bool              // a step has changed which resources it has, or their order
	moved   bool              // and so has one since the last Publish
	rows    []row             // that it has, in order
	shown   []row             // as of the last Publish
	changed map[string]uint64 // keys in it that have changed since then, and at which revision last
	came    map[string]uint64 // keys that came into it, or have another place in it, and at which revision last
	left    map[string]uint64 // keys that it did not have for a moment, or not any more, and since which revision
	about   storage.Window
	untold  bool      // readers have not been told of it
	toldAt  time.Time // when they were last
	size    int64     // about how much memory the rows take
}

// row is a resource in a window.
type row struct {
	item    string // its sort key, and its key
	sortKey int    // the length of the sort key
}

// rowBytes is what a row takes besides its item, with its place among the keys that the windows of its order show.
const rowBytes = 24 + 48

func (r row) key() string { return r.item[r.sortKey:] }

func (w *window) forget() {
	for _, r := range w.rows {
		w.of.order.show(r.key(), -1)
	}
	w.of.order.rowBytes -= w.size
	w.begun, w.dirty, w.moved, w.rows, w.shown, w.about, w.untold, w.size = false, false, false, nil, nil, storage.Window{}, false, 0
	w.touched, w.waits = false, false
	clear(w.changed)
	clear(w.came)
	clear(w.left)
}

// change records where a resource was, and where it is since a revision.
func (w *window) change(old, now []byte, n int, revision uint64) {
	if old != nil && now != nil && len(w.rows) > 0 && !w.precedes(old) && w.reaches(old) && w.has(old) {
		w.changed[string(now[n:])] = revision
		w.of.order.touch(w)
	}
	switch {
	case bytes.Equal(old, now):
	case w.precedes(old) && w.precedes(now): // as many as before come first
	case w.After != "" && (old == nil || w.precedes(old)) && (now == nil || w.precedes(now)):
	case !w.reaches(old) && !w.reaches(now):
	case !w.dirty:
		w.dirty = true
		w.of.order.dirty = append(w.of.order.dirty, w)
		w.of.order.touch(w)
	}
}

// has reports whether it had a resource at a place after the last step.
func (w *window) has(item []byte) bool {
	i := sort.Search(len(w.rows), func(i int) bool { return w.rows[i].item >= string(item) })
	return i < len(w.rows) && w.rows[i].item == string(item)
}

// precedes reports whether a place comes before the window.
func (w *window) precedes(item []byte) bool {
	switch {
	case item == nil:
		return false
	case w.After != "":
		return string(item) <= w.After
	}
	return len(w.rows) > 0 && string(item) < w.rows[0].item
}

// reaches reports whether a place does not come after the window.
func (w *window) reaches(item []byte) bool {
	return item != nil && (len(w.rows) < w.Limit || string(item) <= w.rows[len(w.rows)-1].item)
}

// read reads which resources it has after a step, which was at a revision.
func (w *window) read(tree *order.Tree, revision uint64) {
	before := w.rows
	first := w.first(tree)
	rows := make([]row, 0, min(w.Limit, tree.Len()-first))
	for sortKey, key := range tree.From(first) {
		if len(rows) == w.Limit {
			break
		}
		for len(before) > 0 && compareItem(before[0], sortKey, key) < 0 {
			w.leave(before[0], revision)
			before = before[1:]
		}
		if len(before) > 0 && compareItem(before[0], sortKey, key) == 0 {
			rows = append(rows, before[0])
			if _, altered := w.of.order.altered[string(key)]; altered {
				w.changed[before[0].key()] = revision
			}
			before = before[1:]
			continue
		}
		came := row{string(sortKey) + string(key), len(sortKey)}
		rows = append(rows, came)
		w.came[came.key()] = revision
		w.of.order.show(came.key(), 1)
	}
	for _, r := range before {
		w.leave(r, revision)
	}
	w.rows, w.dirty, w.moved = rows, false, true
}

// leave records that a row is not in it any more, or has another place.
func (w *window) leave(r row, revision uint64) {
	w.left[r.key()] = revision
	w.of.order.show(r.key(), -1)
}

// first returns how many resources come before the window.
func (w *window) first(tree *order.Tree) int {
	if w.After == "" {
		return min(w.Offset, tree.Len())
	}
	rank, found := tree.Rank([]byte(w.After))
	if found {
		rank++
	}
	return rank
}

// say returns what the window says besides its resources. moved says whether these are others.
func (w *window) say(tree *order.Tree, moved bool) storage.Window {
	about := storage.Window{Is: true, Total: tree.Len(), Before: w.first(tree), Told: w.about.Told}
	if n := len(w.rows); n > 0 && about.Before+n < about.Total {
		if about.Next = w.about.Next; moved || about.Next == "" {
			about.Next = w.definition.Cursor(w.rows[n-1].item)
		}
	}
	return about
}

// compareItem compares the place of a row with another one.
func compareItem(r row, sortKey, key []byte) int {
	n := min(len(sortKey), len(r.item))
	switch first, rest := r.item[:n], r.item[n:]; {
	case first < string(sortKey), first == string(sortKey) && rest < string(key):
		return -1
	case first == string(sortKey) && rest == string(key):
		return 0
	}
	return 1
}

// write writes what has changed since the last Publish, at the revisions at which it did.
func (w *window) write(t *sorted, s log.Snapshot) (wrote bool) {
	for _, c := range w.changes(t) {
		_, exists := t.tree.SortKey(c.key)
		switch {
		case c.row != nil:
			w.enter(t, s, *c.row, c.at)
		case exists:
			w.state.Leave(c.key, c.at)
		default:
			w.state.Delete(c.key, c.at)
		}
		wrote = true
	}
	w.state.CloseTransaction(t.ended)
	w.published()
	return wrote
}

// windowChange is a change of a window: a row that has entered, has another place or has changed, or a key that has left.
type windowChange struct {
	at  uint64 // the revision; the same at all replicas
	key string
	row *row // nil: it has left
}

// changes returns what has changed since the last Publish, in the order of the log. Each change has the revision at which
// it was made, however many were taken in since. So a position means the same everywhere, and who has come since what
// left may never have seen it, and is not told.
func (w *window) changes(t *sorted) (out []windowChange) {
	for _, key := range w.gone() {
		out = append(out, windowChange{at: w.left[key], key: key})
	}
	shown := w.shown
	for i, r := range w.rows {
		for len(shown) > 0 && shown[0].item < r.item {
			shown = shown[1:]
		}
		known := len(shown) > 0 && shown[0].item == r.item
		at, changed := w.changed[r.key()]
		if known && !changed && !w.returned(r) {
			continue
		}
		out = append(out, windowChange{max(at, w.came[r.key()]), r.key(), &w.rows[i]})
	}
	for i := range out {
		out[i].at = max(out[i].at, t.published) // the log goes on from there
	}
	slices.SortStableFunc(out, func(a, b windowChange) int { return cmp.Compare(a.at, b.at) })
	return out
}

// gone returns the keys that it had since the last Publish, and has not any more.
func (w *window) gone() []string {
	has := make(map[string]struct{}, len(w.rows))
	for _, r := range w.rows {
		has[r.key()] = struct{}{}
	}
	gone := slices.Sorted(maps.Keys(w.left))
	return slices.DeleteFunc(gone, func(key string) bool {
		_, still := has[key]
		return still
	})
}

// returned reports whether it did not have a resource for a moment.
func (w *window) returned(r row) bool {
	_, was := w.left[r.key()]
	return was
}

// enter writes a resource as it is in the state s.
func (w *window) enter(t *sorted, s log.Snapshot, r row, revision uint64) {
	found, ok := s.Get(r.key())
	if !ok {
		return
	}
	if t.definition.Projects() {
		projected, err := t.definition.Project(found)
		if err != nil {
			return
		}
		found = projected
	}
	w.state.Enter(found, revision)
}

func (w *window) published() {
	if w.moved {
		size := int64(0)
		for _, r := range w.rows {
			size += int64(len(r.item)) + rowBytes
		}
		w.of.order.rowBytes += size - w.size
		w.size = size
	}
	w.shown, w.moved = w.rows, false
	clear(w.changed)
	clear(w.came)
	clear(w.left)
}

// end frees what it holds, once it was closed.
func (w *window) end() {
	w.forget()
	w.over = true
	w.state.FedBy(nil)
	w.state.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: unused})
	w.account.Leave()
}
