package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// FollowOptions specify the watches to follow, and the callbacks.
type FollowOptions struct {
	// Watches are the names of the watches; at least one.
	Watches []string
	// View is which part of each of them is followed. Zero: all of it.
	View View
	// UntilEndOfSnapshot ends after the end_of_snapshot of each watch.
	UntilEndOfSnapshot bool

	// Event is called for each event, hello and goodbye included. An error ends
	// Follow, which returns it.
	Event func(Event) error
	// Lost is called when a connection has ended or could not be made, with the
	// reason and the time until the next attempt. nil: it is not reported.
	Lost func(reason error, wait time.Duration)
}

// ErrRemoved means that a watch no longer exists.
var ErrRemoved = errors.New("the watch was removed")

// goodbyeError is the end of a connection that the server announced.
type goodbyeError struct{ reason string }

func (e goodbyeError) Error() string { return "the server ended the stream: " + e.reason }

// Follow follows watches of the server over as many connections as it takes,
// each resuming where the previous one ended. It calls the functions of o from
// one goroutine, and returns nil after UntilEndOfSnapshot, else the error of
// o.Event, why ctx ended, or why another attempt would be useless: a *Problem
// that is final, or ErrRemoved.
func (s *Server) Follow(ctx context.Context, o FollowOptions) error {
	f := &follower{server: s, options: o, backoff: backoff{base: defaultRetry}}
	for {
		wait, err := f.attempt(ctx)
		if wait == stop {
			return err
		}
		if o.Lost != nil {
			o.Lost(err, wait)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// stop is the wait that means no further attempt.
const stop time.Duration = -1

// follower is the state that outlives a connection. Owned by Follow.
type follower struct {
	server  *Server
	options FollowOptions
	backoff backoff
	id      string // the newest
	broken  error  // from options.Event
}

// attempt makes one connection and returns why it ended, and how long to wait
// before the next one, or stop.
func (f *follower) attempt(ctx context.Context) (time.Duration, error) {
	connection := &Stream{
		URL: f.url(), Client: &http.Client{Transport: f.server.transport}, LastEventID: f.id, Handle: f.event,
	}
	end := connection.Run(ctx)
	if end.Retry > 0 {
		f.backoff.base = end.Retry
	}
	if end.Greeted {
		f.backoff.succeeded()
	}
	var p *Problem
	switch {
	case f.broken != nil:
		return stop, f.broken
	case end.Goodbye != nil:
		return f.afterGoodbye(end.Goodbye)
	case ctx.Err() != nil:
		return stop, context.Cause(ctx)
	case errors.As(end.Err, &p) && p.Final():
		return stop, p
	case p != nil:
		return max(p.RetryAfter, f.backoff.next()), p
	}
	return f.backoff.next(), end.Err
}

// event passes an event on, and then stores its id.
func (f *follower) event(e Event) error {
	if err := f.options.Event(e); err != nil {
		f.broken = err
		return err
	}
	if e.ID != "" {
		f.id = e.ID
	}
	return nil
}

// afterGoodbye interprets the last event of a stream. The server has
// already jittered the time.
func (f *follower) afterGoodbye(e *Event) (time.Duration, error) {
	switch e.Reason {
	case "complete":
		return stop, nil
	case "watch_removed":
		return stop, ErrRemoved
	case "revoked":
		return stop, goodbyeError{e.Reason}
	}
	if e.RetryMS <= 0 {
		return f.backoff.next(), goodbyeError{e.Reason}
	}
	return time.Duration(e.RetryMS) * time.Millisecond, goodbyeError{e.Reason}
}

func (f *follower) url() string {
	query := url.Values{"watch": f.options.Watches}
	for _, name := range f.options.Watches {
		f.options.View.AddTo(query, name)
	}
	if f.options.UntilEndOfSnapshot {
		query.Set("until", "end_of_snapshot")
	}
	return f.server.url(query, "v1", "events")
}

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
