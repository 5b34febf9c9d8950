package streamtest

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeResynchronising = errors.New("broke Resynchronising: when the upstream connection is lost and found again, subscribers see only what really changed meanwhile, deletions included. They never see a half-loaded state")

// CheckResynchronising checks that each change sent to a live subscriber changes
// something, and that for each delete the upstream really deleted. A half-loaded
// snapshot would show as deletes of existing resources.
//
// A resource that was created and deleted during an outage may be known by its
// delete alone, if the upstream keeps nothing else. That delete is sent: a
// subscriber that comes from another replica may hold the resource. In a part, the same
// goes for a resource that may have been in it only during the outage.
func CheckResynchronising(h *History) error {
	return h.each(errBrokeResynchronising, func(c *Connection) error {
		exact, told := h.cameExact(c), c.toldAtFirst()
		return c.walk(func(s *step) error {
			switch {
			case s.event != nil && s.event.Type == stream.Reset:
				exact, told = true, 0
				return nil
			case s.event == nil || !isChange(s.event):
				told = max(told, s.completeTo())
				return nil
			}
			if s.phase == live && exact && !h.deletedSince(told, s, c.OfView) {
				if err := changes(s); err != nil && !h.reentered(s, told, s.flush.after) {
					return err
				}
			}
			return h.reallyDeleted(s)
		})
	})
}

// cameExact reports whether a subscriber came with exactly the state of its id. It
// did not if it was cut off after the id, or if deletes without a revision of their
// own may be before or after the id: then a lagging replica repeats changes that
// the subscriber has.
func (h *History) cameExact(c *Connection) bool {
	if c.From == nil {
		return true
	}
	p := c.From.Position
	claims := h.Truth.claimed(claim{epoch: p.Epoch, revision: p.AsOf, deletesTo: p.DeletesCompleteTo(), mixed: c.mixed()})
	return len(c.firstLead()) == 0 && len(claims) == 1 && len(claims[0].either) == 0
}

// toldAtFirst is the revision up to which a subscriber came with everything.
func (c *Connection) toldAtFirst() uint64 {
	if c.From == nil {
		return 0
	}
	return c.From.Position.AsOf
}

// completeTo is the revision up to which a subscriber has everything after an id or
// an event; 0 if that does not determine it.
func (s *step) completeTo() uint64 {
	switch {
	case s.mark != nil && !s.mark.Position.Partial():
		return s.mark.Position.AsOf
	case s.event != nil && (s.event.Type == stream.EndOfSnapshot || s.event.Type == stream.Bookmark):
		return s.event.Revision
	}
	return 0
}

// deletedSince reports whether an event is a delete that the upstream made after a
// revision. A resource that a snapshot no longer has was deleted there at the
// latest. A delete without a revision of its own may share the revision, and shows
// another. Each replica finds vanished resources by itself. A replica that follows a view
// is sent deletes of resources that only changed. Where values were left out, what was in a window meanwhile is
// not known, nor which groups there were.
func (h *History) deletedSince(revision uint64, s *step, ofView bool) bool {
	r := s.event.Resource
	switch {
	case s.event.Type != stream.Delete:
		return false
	case (h.Window || h.Groups) && s.flush.Horizon > revision:
		return true
	}
	if h.Truth.vanished(s.epoch, r.Key) || h.Truth.unseen(s.epoch, r.Key, revision, r.Revision, h.DeletesUnnumbered, ofView) {
		return true
	}
	versions := h.Truth.Versions(s.epoch, r.Key)
	for at := deletion(versions, 0); at >= 0; at = deletion(versions, at+1) {
		made := versions[at].Revision
		if made > revision && made <= r.Revision || h.DeletesUnnumbered && made >= revision {
			return true
		}
	}
	return false
}

// changes checks that an event makes a difference.
func changes(s *step) error {
	r := s.event.Resource
	held, ok := s.before[r.Key]
	switch {
	case s.event.Type == stream.Delete && !ok:
		return fmt.Errorf("%q is deleted, and was not there", r.Key)
	case s.event.Type == stream.Upsert && ok && held == s.version():
		return fmt.Errorf("%q is sent again at revision %d", r.Key, r.Revision)
	}
	return nil
}

func (h *History) reallyDeleted(s *step) error {
	held, ok := s.before[s.event.Resource.Key]
	if s.event.Type != stream.Delete || !ok || s.epoch == "" {
		return nil
	}
	versions := h.Truth.Versions(s.epoch, s.event.Resource.Key)
	if a, leads := s.lead[s.event.Resource.Key]; leads && a.upTo > s.asOf && a.notOlder(Version{}, versions) {
		return nil // the replica does not know the state held
	}
	if at := place(versions, 0, held); at < 0 || deletion(versions, at) < 0 {
		return fmt.Errorf("%q is deleted, and upstream it never was", s.event.Resource.Key)
	}
	return nil
}
