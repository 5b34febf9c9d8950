package series

import (
	"errors"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream/memory"
)

const (
	// MaxHours is how many hours are kept in all.
	MaxHours = 2500
	// retryAfter is how long an entry stays without an hour after memory was short.
	retryAfter = 10 * time.Minute
)

const (
	noRoom       = "the memory of the watch has no room for an hour of figures"
	noSharedRoom = "the memory of all watches together has no room for hours of figures"
)

// allot gives hours to the entries that may have one, and takes those whose memory is needed.
func (r *Recorder) allot(now time.Time) {
	if r.crowded() {
		for _, e := range r.entries {
			if e.of != nil {
				r.refuse(e, now, noSharedRoom)
			}
		}
		return
	}
	for _, e := range r.entries {
		switch {
		case e.of != nil && e.of.Full() != nil:
			r.refuse(e, now, noRoom)
		case e.hour != nil && e.charged != e.of: // another watch has the name now
			r.move(e, now)
		case e.hour == nil && !now.Before(e.retry):
			r.give(e, now)
		}
	}
}

// crowded reports whether a watch does not fit into the memory of all watches together.
func (r *Recorder) crowded() bool {
	for _, e := range r.entries {
		if e.of == nil {
			continue
		}
		if why := (*memory.Error)(nil); errors.As(e.of.Full(), &why) && why.Shared {
			return true
		}
	}
	return false
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
	if e.of != nil && !e.of.Reserve(hourBytes) {
		r.refuse(e, now, noRoom)
		return
	}
	e.release()
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
