package streamtest

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeOrdered = errors.New("broke Ordered: a key never goes back to an older value, except after a reset. To a subscriber that keeps up, events come in the upstream's order; in a snapshot or a catch-up, deletes come first, then upserts by rising revision")

// CheckOrdered follows each key through its versions, and each flush through
// its revisions.
func CheckOrdered(h *History) error {
	return h.each(errBrokeOrdered, func(c *Connection) error {
		keys := keyOrder{truth: h.Truth, begin: c.Begin, at: map[string]int{}}
		begin := flushOrder{released: c.Interval > 0, window: h.Window}
		order := begin
		return c.walk(func(s *step) error {
			if s.event == nil {
				if order.released {
					order = begin
				}
				return nil
			}
			switch s.event.Type {
			case stream.Reset:
				clear(keys.at)
				keys.begin = nil
				order = begin
			case stream.Upsert, stream.Delete:
				if err := keys.check(s); err != nil {
					return err
				}
				return order.check(s)
			case stream.EndOfSnapshot, stream.Bookmark, stream.StatusChange:
				order = begin
			}
			return nil
		})
	})
}

// keyOrder is the index of each key among its versions.
type keyOrder struct {
	truth *Truth
	begin State          // the subscriber's state at the start; nil after a reset
	at    map[string]int // one more than the index of the version last delivered
}

// held is the version that the subscriber came with, which must not go back: the one
// at its id, if it holds something newer that the replica did not know yet.
func (o *keyOrder) held(s *step, key string) (Version, bool) {
	v, ok := o.begin[key]
	if a, leads := s.lead[key]; leads && a.upTo > s.asOf {
		v, ok = a.atID, a.atID.Revision > 0
	}
	return v, ok
}

func (o *keyOrder) check(s *step) error {
	if s.epoch == "" {
		return nil
	}
	key := s.event.Resource.Key
	versions := o.truth.Versions(s.epoch, key)
	at, known := o.at[key]
	if held, ok := o.held(s, key); !known && ok {
		at = place(versions, 0, held) + 1
	}
	if s.event.Type == stream.Delete {
		// One that is repeated, since another replica may not have told it, is none
		// of a version that is newer.
		if next := deletion(versions, at); next >= 0 && (next == 0 || versions[next-1].Revision <= s.event.Resource.Revision) {
			at = next + 1
		}
		o.at[key] = at
		return nil
	}
	got := s.version()
	next := place(versions, max(at-1, 0), got)
	if next < 0 {
		if place(versions, 0, got) < 0 {
			return fmt.Errorf("%q never was %.60s at revision %d", key, got.Value, got.Revision)
		}
		return fmt.Errorf("%q went back to revision %d", key, got.Revision)
	}
	o.at[key] = next + 1
	return nil
}

// place returns the first index of a version from an index on, -1 if there is
// none.
func place(versions []Version, from int, v Version) int {
	for i := from; i < len(versions); i++ {
		if versions[i] == v {
			return i
		}
	}
	return -1
}

// deletion returns the index of the first deletion from an index on, -1 if
// there is none.
func deletion(versions []Version, from int) int {
	for i := from; i < len(versions); i++ {
		if versions[i].Value == "" {
			return i
		}
	}
	return -1
}

// flushOrder follows revisions: rising all the way, or, in a snapshot or a
// catch-up, and for a subscriber with an interval between two ids, first deletes and then upserts that rise.
type flushOrder struct {
	revision uint64 // of the previous change
	upserts  uint64 // of the previous upsert
	mixed    bool   // a delete came after an upsert
	falling  bool   // a change was older than the previous one
	released bool   // the subscriber has an interval
	window   bool   // revisions are not those with which resources came into it
}

func (o *flushOrder) check(s *step) error {
	r := s.event.Resource.Revision
	if o.window {
		r = 1
	}
	if s.event.Type == stream.Delete {
		o.mixed = o.mixed || o.upserts > 0
		// A delete without a revision of its own is placed where it happened, and
		// shows where the resource last changed.
		o.revision = max(o.revision, r)
	} else {
		if r < o.upserts {
			return fmt.Errorf("upsert of revision %d after one of %d", r, o.upserts)
		}
		o.falling = o.falling || r < o.revision
		o.revision, o.upserts = max(o.revision, r), r
	}
	switch {
	case s.phase == live && o.released:
		if o.mixed {
			return errors.New("delete after an upsert in a release")
		}
	case s.phase == live && o.falling:
		return fmt.Errorf("revision %d after %d", r, o.revision)
	case s.phase == catchingUp && o.mixed:
		return errors.New("delete after an upsert in a catch-up")
	case s.phase == joining && o.mixed && (o.falling || o.window):
		return errors.New("neither the upstream's order nor deletes first")
	}
	return nil
}
