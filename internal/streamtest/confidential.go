package streamtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeConfidential = errors.New("broke Confidential: no byte of what is hidden from a subscriber is sent to it, and not the key of a resource that it may never have seen")

// CheckConfidential checks that subscribers are sent only what they may see: values as the part
// of the upstream has them, deletes of what the part had at the subscriber's place or since,
// and no marker of anything else in any bytes. It checks histories with Hides.
func CheckConfidential(h *History) error {
	if !h.Hides {
		return nil
	}
	s := newVisibility(h)
	for _, a := range h.answers {
		f := &Flush{Head: a.Revision, markers: markersIn(a.Sent)}
		if err := s.check(f, unmoved(viewpoint{epoch: a.Epoch, deletesTo: a.Revision})); err != nil {
			return fmt.Errorf("%w\n\tan answer with the state at revision %d: %w", errBrokeConfidential, a.Revision, err)
		}
	}
	return h.each(errBrokeConfidential, func(c *Connection) error {
		w := newWalker(c)
		from := viewpoint{} // nothing was sent yet
		if c.From != nil {
			from = viewpointOf(c.From)
		}
		for i := range c.Flushes {
			f := &c.Flushes[i]
			m := unmoved(from)
			if m.reset = slices.IndexFunc(f.Events, isReset); m.reset >= 0 {
				m.after = viewpoint{epoch: w.epochAt(i), deletesTo: f.Head}
			}
			if f.Mark != nil && (m.reset >= 0 || from.epoch != f.Mark.Position.Epoch) {
				m.after = viewpointOf(f.Mark)
			}
			if err := s.check(f, m); err != nil {
				return fmt.Errorf("%v: flush %d: %w", c, f.Order, err)
			}
			if from = m.after; f.Mark != nil {
				from = viewpointOf(f.Mark)
			}
		}
		return nil
	})
}

// Right is what a principal could see: a part of the upstream, as it was at any revision up to one.
// Rules of access apply to versions from before the right was given too.
type Right struct {
	Part *Truth
	To   uint64
}

// Told checks an event that was sent to a principal, whatever the principal says that it has:
// at some time it could see what the event shows. It checks upserts and deletes.
func Told(e stream.Event, rights ...Right) error {
	if e.Type != stream.Upsert && e.Type != stream.Delete {
		return nil
	}
	for _, r := range rights {
		if r.shows(e) {
			return nil
		}
	}
	return fmt.Errorf("%w\n\t%s: there never was a right to see it", errBrokeConfidential, describe(e))
}

func (r Right) shows(e stream.Event) bool {
	r.Part.mu.Lock()
	defer r.Part.mu.Unlock()
	for _, of := range r.Part.epochs {
		for _, txn := range of.txns[:max(1, of.count(r.To))] {
			v, had := txn.After[e.Resource.Key]
			if had && (e.Type == stream.Delete || v == versionOf(e.Resource)) {
				return true
			}
		}
	}
	return false
}

// Marker returns text that is recognised anywhere in the bytes that are sent. In a history that
// hides something, each key and each member of a value has a marker of its own.
func Marker(n int) string { return fmt.Sprintf("Q%dQ", n) }

// Search notes the markers in bytes that were received as a part of the flush.
func (f *Flush) Search(received []byte) { f.markers = append(f.markers, markersIn(received)...) }

// markersIn returns the markers in some bytes, each once.
func markersIn(texts ...[]byte) (out []string) {
	for _, rest := range texts {
		for at := bytes.IndexByte(rest, 'Q'); at >= 0; at = bytes.IndexByte(rest, 'Q') {
			rest = rest[at:]
			end := 1
			for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
				end++
			}
			if end > 1 && end < len(rest) && rest[end] == 'Q' {
				out = append(out, string(rest[:end+1]))
			}
			rest = rest[1:]
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isReset reports whether an event tells the subscriber to forget everything.
func isReset(e stream.Event) bool { return e.Type == stream.Reset }

// viewpoint is the place of a subscriber: it has every delete up to there.
type viewpoint struct {
	epoch     string
	deletesTo uint64
}

func viewpointOf(m *Mark) viewpoint {
	return viewpoint{epoch: m.Position.Epoch, deletesTo: m.Position.DeletesCompleteTo()}
}

// move is where a subscriber is during a flush: at one place before the first reset, and at
// another one after it. Without a reset it is at one place all the time.
type move struct {
	before, after viewpoint
	reset         int // the index of the first reset; -1: none
}

func unmoved(at viewpoint) move { return move{before: at, after: at, reset: -1} }

// at is where the subscriber is when it receives the i-th event.
func (m move) at(i int) viewpoint {
	if i < m.reset {
		return m.before
	}
	return m.after
}

// places returns all places where it is.
func (m move) places() []viewpoint {
	if m.reset > 0 {
		return []viewpoint{m.before, m.after}
	}
	return []viewpoint{m.after}
}

// span is a range of states of a revision order in which something existed: the first and the
// last.
type span struct{ from, to int }

// visibility says what could be seen, and when.
//
// Static after newVisibility.
type visibility struct {
	truth      *Truth
	unnumbered bool // deletes have no revision of their own
	markers    map[*epoch]map[string][]span
	keys       map[*epoch]map[string][]seen
}

// seen is a version of a resource, when it existed, and until when a subscriber may be sent its
// delete. Where deletes have no revision of their own, it is unknown who lacks one, so that is
// not limited.
type seen struct {
	version     Version
	shown, told span
}

func newVisibility(h *History) *visibility {
	s := &visibility{truth: cmp.Or(h.Sees, h.Truth).Now(), unnumbered: h.DeletesUnnumbered, markers: map[*epoch]map[string][]span{}, keys: map[*epoch]map[string][]seen{}}
	for _, e := range s.truth.epochs {
		s.markers[e], s.keys[e] = map[string][]span{}, map[string][]seen{}
		s.add(e)
	}
	return s
}

// add adds one revision order.
func (s *visibility) add(e *epoch) {
	open := map[string]int{} // since which state each resource is as it is
	end := func(key string, before int) {
		from, is := open[key]
		if !is {
			return
		}
		r, at := e.txns[from].resources[key], span{from, before - 1}
		told := at // until when its delete may be sent
		if s.unnumbered {
			told.to = len(e.txns)
		}
		s.keys[e][key] = append(s.keys[e][key], seen{versionOf(r), at, told})
		for _, m := range markersIn(r.Value) {
			s.markers[e][m] = append(s.markers[e][m], at)
		}
		for _, m := range markersIn([]byte(key)) {
			s.markers[e][m] = append(s.markers[e][m], told)
		}
		delete(open, key)
	}
	for key := range e.txns[0].resources {
		open[key] = 0
	}
	for i, txn := range e.txns[1:] {
		for _, c := range txn.Changes {
			if end(c.Key, i+1); !c.Deleted {
				open[c.Key] = i + 1
			}
		}
	}
	for _, key := range sortedKeys(e.last().After) {
		end(key, len(e.txns))
	}
}

// check checks one flush.
func (s *visibility) check(f *Flush, moved move) error {
	for i, e := range f.Events {
		at := moved.at(i)
		switch {
		case e.Type == stream.Upsert && !s.had(f, at, e.Resource.Key, f.version(i)):
			return fmt.Errorf("event %d %s: the subscriber may not see this value", i, describe(e))
		case e.Type == stream.Delete && !s.had(f, at, e.Resource.Key, Version{}):
			return fmt.Errorf("event %d %s: the subscriber was at revision %d, and may not have seen the resource since", i, describe(e), at.deletesTo)
		}
	}
	for _, m := range f.markers {
		if !slices.ContainsFunc(moved.places(), func(at viewpoint) bool { return s.shown(m, f, at) }) {
			return fmt.Errorf("its bytes hold %s, which the subscriber may not see", m)
		}
	}
	return nil
}

// shown reports whether a marker could be seen at some time from a place up to a flush.
func (s *visibility) shown(marker string, f *Flush, at viewpoint) bool {
	return slices.ContainsFunc(s.truth.named(at.epoch), func(e *epoch) bool {
		return s.within(e, s.markers[e][marker], f, at)
	})
}

// had reports whether a version of a resource, or any version, existed at some time from a
// place up to a flush.
func (s *visibility) had(f *Flush, at viewpoint, key string, v Version) bool {
	return slices.ContainsFunc(s.truth.named(at.epoch), func(e *epoch) bool {
		return slices.ContainsFunc(s.keys[e][key], func(k seen) bool {
			if (v == Version{}) {
				return s.within(e, []span{k.told}, f, at)
			}
			return v == k.version && s.within(e, []span{k.shown}, f, at)
		})
	})
}

// within reports whether any of the spans overlaps the time from a viewpoint up to a flush.
// States of one revision cannot be told apart.
func (s *visibility) within(e *epoch, spans []span, f *Flush, at viewpoint) bool {
	first := e.count(at.deletesTo) - 1
	for first > 0 && e.txns[first-1].Revision == e.txns[first].Revision {
		first--
	}
	last := e.count(max(f.Head, f.after))
	return slices.ContainsFunc(spans, func(at span) bool { return at.to >= first && at.from < last })
}
