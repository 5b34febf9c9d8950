package log

import (
	"github.com/watchtide/watchtide/internal/storage"
)

// Cohort is a group of readers of one watch that have caught up and have all been sent
// the same. From there on they are sent the same too, so that one cursor reads for all of
// them, and each flush is rendered only once. Each member counts as a subscriber of its
// watch; otherwise the cohort knows only the number of its members.
//
// A reader joins with a subscription for which Admits is true: it closes that and is
// counted by SetMembers. It leaves with a Fork.
//
// A Cohort is nothing but its cursor. Both belong to one goroutine, their pump. So must a
// subscription that is compared with the cohort, or forked off it, at that time.
type Cohort struct{ cursor *Subscription }

// NewCohort returns a cohort without members at the place of a reader that has caught
// up. Close its cursor to give it up.
func NewCohort(s *Subscription) Cohort { return Cohort{s.fork()} }

// CohortOf returns the cohort of a cursor.
func CohortOf(cursor *Subscription) Cohort { return Cohort{cursor} }

// Cursor returns the subscription that reads for all members.
func (c Cohort) Cursor() *Subscription { return c.cursor }

// SetMembers sets how many readers count as subscribers of the watch.
func (c Cohort) SetMembers(n int) { c.cursor.setReaders(n) }

// Admits reports whether a reader could join: it and the members have caught up, are at
// the same place, and have been sent the same status, horizon and total, so that they deliver
// the same from here on.
func (c Cohort) Admits(s *Subscription) bool {
	o := c.cursor
	s.settle()
	o.settle()
	return s.log == o.log && s.options.Digest == o.options.Digest && s.options.Verify == o.options.Verify && s.options.Interval == o.options.Interval && s.generation == o.generation &&
		s.cursor == o.cursor && s.position == o.position && s.origin == o.origin && s.told == o.told && s.CaughtUp() && o.CaughtUp() &&
		storage.SameStatus(s.sentStatus, o.sentStatus)
}

// settle takes a reader that has everything to the newest revision: in a part of another
// log that may rise without an event.
func (s *Subscription) settle() {
	v := s.log.newest()
	if s.begun && !s.walking() && v.Generation == s.generation && v.Seq == s.cursor && v.Complete() == s.origin {
		s.place(v.Revision, v)
	}
}

// NearHead reports whether little is new: changes one by one, and not a snapshot or a
// catch-up.
func (c Cohort) NearHead() bool {
	s, v := c.cursor, c.cursor.log.newest()
	if s.options.Interval > 0 { // all are sent one state
		return v.Generation == s.generation && s.cursor >= v.Forgotten
	}
	return v.Generation == s.generation && (v.Seq == s.cursor || v.Replayable(s.cursor, v.After(s.cursor), storage.ReplaySize))
}

// Fork returns a subscription at the place of the members, also between two flushes of what
// they are being sent. Close it.
func (c Cohort) Fork() *Subscription { return c.cursor.fork() }

func (s *Subscription) fork() *Subscription {
	f := *s
	f.readers = 1
	if s.walking() { // each goes on by itself
		w := *s.walk
		f.walk, f.pin = &w, s.log.pins.Again(s.pin)
	}
	f.log.counted(1, 1)
	return &f
}

func (s *Subscription) setReaders(n int) {
	if s.closed {
		return
	}
	s.log.counted(0, n-s.readers)
	s.readers = n
}
