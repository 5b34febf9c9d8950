package introspection

import (
	"fmt"
	"time"
)

const (
	// MaxHours is how many hours are kept in all.
	MaxHours = 2500
	// retryAfter is how long an entry stays without an hour after there was no room for one.
	retryAfter = 10 * time.Minute
)

const noRoom = "there is no room for an hour of figures in the hundredth that is for such things of the memory ceiling of the watch, or of all watches together"

// allot gives hours to the entries that have none, if there is room.
func (r *Recorder) allot(now time.Time) {
	for _, e := range r.entries {
		switch {
		case e.hour != nil && e.charged != e.of: // another watch has the name now
			r.move(e, now)
		case e.hour == nil && !now.Before(e.retry):
			r.give(e, now)
		}
	}
}

// give gives an entry its hour. That of a template counts for no watch.
func (r *Recorder) give(e *entry, now time.Time) {
	switch {
	case r.hours >= MaxHours:
		r.refuse(e, now, fmt.Sprintf("%d watches have an hour of figures, which is the most that are kept", r.hours))
	case e.of != nil && !e.of.Reserve(hourBytes):
		r.refuse(e, now, noRoom)
	default:
		e.hour, e.charged, e.why = &hour{}, e.of, ""
		r.hours++
	}
}

// move charges an hour to the watch that has the name now.
func (r *Recorder) move(e *entry, now time.Time) {
	e.release()
	if e.of != nil && !e.of.Reserve(hourBytes) {
		r.refuse(e, now, noRoom)
		return
	}
	e.charged = e.of
}

func (r *Recorder) refuse(e *entry, now time.Time, why string) {
	r.take(e, why)
	e.retry = now.Add(retryAfter)
}

// take takes the hour of an entry, if it has one.
func (r *Recorder) take(e *entry, why string) {
	e.why = why
	if e.hour == nil {
		return
	}
	e.release()
	e.hour = nil
	r.hours--
}

func (e *entry) release() {
	if e.charged != nil {
		e.charged.Return(hourBytes)
		e.charged = nil
	}
}
