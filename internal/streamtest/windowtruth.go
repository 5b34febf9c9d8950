package streamtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Sorting is how a window is sorted, in code that has nothing to do with the windows of a gateway.
type Sorting struct {
	// Part returns what the window is of, as Truth.Narrow wants it; nil: what its definition selects.
	Part func(stream.Resource) (stream.Resource, bool)
	// Compare compares two resources. Those that are equal come in the order of their keys.
	Compare func(a, b stream.Resource) int
	// After is the place behind which the window begins, as a resource; nil: it has an offset.
	After *stream.Resource
}

func (s Sorting) place(a, b stream.Resource) int {
	return cmp.Or(s.Compare(a, b), strings.Compare(a.Key, b.Key))
}

// window is what a window says besides its resources, and what it takes to check them.
//
// Static after construction.
type window struct {
	total, before int
	of            map[string]stream.Resource // of which it is a window
	entered       map[string]uint64          // the revision at which each resource that it has came into it, or changed
}

// TruthOfWindow is TruthOfView for a window. A resource that enters the window is created by the transaction with
// which it does, with its own revision, and one that leaves it is deleted.
func TruthOfWindow(all *Truth, d *view.Definition, by Sorting, served ...string) *Truth {
	now := all.Now()
	out := &Truth{traceless: now.traceless}
	for _, e := range now.epochs {
		made := newEpoch(d.Epoch(e.name), []Transaction{{Revision: e.txns[0].Revision, After: State{}}})
		made.again, made.others = e.again, nil
		for _, other := range served {
			if e.servedAs(other) && other != stream.CanonicalEpoch(e.name) {
				made.others = append(made.others, stream.CanonicalEpoch(d.Epoch(other)))
			}
		}
		for i, txn := range e.txns {
			in, about := windowOf(d, by, txn.resources)
			next := Transaction{Revision: txn.Revision, Vanished: txn.Vanished, Changes: made.last().toward(in, txn.Revision), window: about}
			if i == 0 {
				made = made.beginsWith(next, in)
				out.epochs = append(out.epochs, made)
				continue
			}
			about.enter(made.last(), in, txn.Revision)
			out.add(next)
		}
	}
	return out
}

// beginsWith returns the order with a first transaction, of which only the state counts.
func (e *epoch) beginsWith(txn Transaction, in map[string]stream.Resource) *epoch {
	txn.Changes, txn.After, txn.resources = nil, State{}, in
	for key, r := range in {
		txn.After[key] = versionOf(r)
		txn.newest = max(txn.newest, r.Revision)
	}
	if txn.window != nil {
		txn.window.enter(Transaction{}, in, txn.Revision)
	}
	made := newEpoch(e.name, []Transaction{txn})
	made.again, made.others = e.again, e.others
	return made
}

// windowOf returns the resources of a window of some resources.
func windowOf(d *view.Definition, by Sorting, of map[string]stream.Resource) (map[string]stream.Resource, *window) {
	w := &window{of: map[string]stream.Resource{}, entered: map[string]uint64{}}
	var rows []stream.Resource
	part := by.Part
	if part == nil {
		part = selectedBy(d)
	}
	for _, r := range of {
		if r, in := part(r); in {
			rows = append(rows, r)
			w.of[r.Key] = r
		}
	}
	slices.SortFunc(rows, by.place)
	place, _ := d.Window()
	w.total, w.before = len(rows), min(place.Offset, len(rows))
	if by.After != nil {
		w.before = len(slices.DeleteFunc(slices.Clone(rows), func(r stream.Resource) bool { return by.place(r, *by.After) > 0 }))
	}
	in := map[string]stream.Resource{}
	rows = rows[w.before:]
	for _, r := range rows[:min(place.Limit, len(rows))] {
		in[r.Key] = r
	}
	return in, w
}

// toward returns the changes with which a state becomes another one.
func (txn Transaction) toward(in map[string]stream.Resource, revision uint64) (changes []log.Change) {
	for _, key := range sortedKeys(txn.After) {
		if _, still := in[key]; !still {
			changes = append(changes, log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
		}
	}
	for key, r := range in {
		if txn.After[key] != versionOf(r) {
			changes = append(changes, log.Change{Resource: r})
		}
	}
	slices.SortFunc(changes, func(a, b log.Change) int { return strings.Compare(a.Key, b.Key) })
	return changes
}

// enter notes at which revision each resource came into the window.
func (w *window) enter(before Transaction, in map[string]stream.Resource, revision uint64) {
	for key, r := range in {
		if w.entered[key] = revision; before.After[key] == versionOf(r) {
			w.entered[key] = before.window.entered[key]
		}
	}
}

// enteredAt is the revision at which a version came into the part of which the state is.
func (c claimed) enteredAt(key string, v Version) uint64 {
	if c.window == nil {
		return v.Revision
	}
	return c.window.entered[key]
}

// saysTrue checks what an event says of a window besides its resources.
func (h *History) saysTrue(c *Connection, s *step) error {
	e := s.event
	switch {
	case e.Window && !h.Window:
		return fmt.Errorf("a total of %d, although it is no window", e.Total)
	case !e.Window && h.Window && e.Type == stream.EndOfSnapshot:
		return fmt.Errorf("a window without its total")
	case !e.Window || s.epoch == "":
		return nil
	}
	var wants []string
	for _, claimed := range h.claimedAt(c, s, e.Revision, s.deletesTo(e.Revision)) {
		w := claimed.window
		more := w.before+len(claimed.state) < w.total
		if e.Total == w.total && e.Before == w.before && (e.Next != "") == more {
			return nil
		}
		wants = append(wants, fmt.Sprintf("%d after %d (more: %t)", w.total, w.before, more))
	}
	return fmt.Errorf("the window says %d after %d (more: %t), want one of %q", e.Total, e.Before, e.Next != "", wants)
}

// saysWhy checks whether a delete says that the resource is still there. One of a catch-up does not: what is sent is a later
// state than that in which the resource left.
func (h *History) saysWhy(c *Connection, s *step) error {
	switch {
	case c.Interval == 0 && s.phase == live:
	case c.Interval > 0, s.phase == joining, s.phase == snapshot, s.phase == catchingUp:
		if s.event.Left {
			return fmt.Errorf("%q has left the window only, says a catch-up", s.event.Resource.Key)
		}
		return nil
	case !s.event.Left:
		return nil // after a catch-up, it may be of another one
	}
	return h.hasLeft(s)
}

// hasLeft checks whether it was so what a delete says, or does not say, of the view.
func (h *History) hasLeft(s *step) error {
	if s.event.Type != stream.Delete || s.epoch == "" || h.DeletesUnnumbered {
		return nil
	}
	if !h.Window {
		if s.event.Left {
			return fmt.Errorf("%q has left, although it is no window", s.event.Resource.Key)
		}
		return nil
	}
	// What left the window may leave the view before that is told.
	key, from := s.event.Resource.Key, s.event.Resource.Revision
	to := max(from, s.flush.Head, s.flush.after) // the replica of a remote subscriber may have begun again since
	for _, e := range h.Truth.named(s.epoch) {
		for _, txn := range e.txns[max(0, e.count(from)-1):max(1, e.count(to))] {
			if _, there := txn.window.of[key]; there == s.event.Left {
				return nil
			}
		}
	}
	return fmt.Errorf("%q: left is %t, and from revision %d on it is not so", key, s.event.Left, from)
}

// reentered reports whether a resource left the window after a revision, up to another one, and came back. Where
// values were left out, or deletes have no revision, a transaction is taken in as several steps.
func (h *History) reentered(s *step, after, upTo uint64) bool {
	if !h.Window || s.flush.Horizon > after {
		return h.Window
	}
	return slices.ContainsFunc(h.Truth.Versions(s.epoch, s.event.Resource.Key), func(v Version) bool {
		return v.Value == "" && after < v.Revision && v.Revision <= upTo
	})
}
