package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/reconnect"
)

// FollowOptions specify the watches to follow, and the callbacks.
type FollowOptions struct {
	// Watches are the names of the watches; at least one.
	Watches []string
	// View is which part of each of them is followed. Zero: all of it.
	View View
	// From is the position to continue from: the ID of an event that an earlier Follow of the
	// same watches and the same View received. Empty: each watch begins with a snapshot.
	From string
	// UntilEndOfSnapshot ends after the end_of_snapshot of each watch.
	UntilEndOfSnapshot bool

	// Event is called for each event, hello and goodbye included. An error ends
	// Follow, which returns it.
	Event func(Event) error
	// Refused is called when the server refuses one of several watches for good: it does not
	// exist, or no longer exists, access to it was revoked, or the View is invalid for it. The
	// watch is no longer followed; the others are. If Refused returns an error, Follow ends and
	// returns it. nil: such a refusal ends Follow.
	Refused func(watch string, reason *Problem) error
	// Lost is called when a connection has ended or could not be made, with the
	// reason and the time until the next attempt. nil: it is not reported.
	Lost func(reason error, wait time.Duration)
}

var (
	// ErrRemoved means that a watch no longer exists.
	ErrRemoved = errors.New("the watch was removed")
	// ErrRevoked means that the server has revoked the token, or the access to a watch.
	ErrRevoked = errors.New("the access was revoked")
)

// goodbyeError is the end of a connection that the server announced.
type goodbyeError struct{ reason string }

func (e goodbyeError) Error() string { return "the server ended the stream: " + e.reason }

// Follow follows watches of the server over as many connections as it takes,
// each resuming where the previous one ended. It calls the functions of o from
// one goroutine, and returns nil after UntilEndOfSnapshot, else the error of
// o.Event or o.Refused, why ctx ended, or why another attempt would be useless: a *Problem
// that is final, and does not leave any watch to be followed, ErrRemoved, or ErrRevoked.
// A refusal of a token is final unless ServerOptions.Token has another one by then. When a
// token ends, the server ends the stream, and the next connection has the token of then.
func (s *Server) Follow(ctx context.Context, o FollowOptions) error {
	f := &follower{server: s, options: o, watches: slices.Clone(o.Watches), id: o.From}
	for {
		wait, err := f.attempt(ctx)
		switch wait {
		case stop:
			return err
		case atOnce:
			continue
		}
		if o.Lost != nil {
			o.Lost(err, wait)
		}
		if err := reconnect.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

const (
	// stop is a wait that means that there is no further attempt.
	stop time.Duration = -1
	// atOnce is the wait before a request for fewer watches. Nothing was lost.
	atOnce time.Duration = -2
)

// follower is the state that outlives a connection. Owned by Follow.
type follower struct {
	server  *Server
	options FollowOptions
	watches []string // those that were not refused
	backoff backoff
	id      string // the newest
	revoked bool   // the last goodbye said that access to one watch, or to all, was revoked
	broken  error  // from options.Event
}

// attempt makes one connection and returns why it ended, and how long to wait
// before the next one, or stop or atOnce.
func (f *follower) attempt(ctx context.Context) (time.Duration, error) {
	token, header, err := f.server.credential(ctx)
	switch {
	case ctx.Err() != nil:
		return stop, context.Cause(ctx)
	case err != nil:
		return f.backoff.next(reconnect.End{}), err
	}
	connection := &Stream{URL: f.url(), Client: f.server.client(), LastEventID: f.id, Handle: f.event}
	if header != "" {
		connection.Header = map[string]string{"Authorization": header}
	}
	end := connection.Run(ctx)
	end.Err = withoutToken(end.Err, token)
	var p *Problem
	switch {
	case f.broken != nil:
		return stop, f.broken
	case end.Goodbye != nil:
		return f.afterGoodbye(end)
	case ctx.Err() != nil:
		return stop, context.Cause(ctx)
	case errors.Is(end.Err, ErrUnauthenticated) || errors.Is(end.Err, ErrForbidden):
		return f.unaccepted(ctx, token, end.Err)
	case errors.As(end.Err, &p) && p.Final():
		return f.without(p)
	case p != nil:
		return f.backoff.next(reconnect.End{Asked: p.RetryAfter}), p
	}
	return f.backoff.next(reconnect.End{Lasted: end.Lasted, Asked: end.Retry}), end.Err
}

// unaccepted continues if there is another token by now than the one that was refused.
func (f *follower) unaccepted(ctx context.Context, token string, reason error) (time.Duration, error) {
	another, _, err := f.server.credential(ctx)
	switch {
	case err == nil && another != token:
	case f.revoked:
		return stop, fmt.Errorf("%w: %w", ErrRevoked, reason)
	default:
		return stop, reason
	}
	return f.backoff.next(reconnect.End{}), reason
}

// without continues without the watch that a final refusal is about, if it is about one watch.
func (f *follower) without(p *Problem) (time.Duration, error) {
	at := slices.Index(f.watches, p.Watch)
	aboutOne := p.Status == http.StatusBadRequest || p.Status == http.StatusNotFound || p.Status == http.StatusRequestURITooLong
	if at < 0 || !aboutOne || !f.othersGoOn() {
		return stop, p
	}
	f.watches = slices.Delete(f.watches, at, at+1)
	if err := f.options.Refused(p.Watch, p); err != nil {
		return stop, err
	}
	return atOnce, nil
}

// othersGoOn reports whether other watches are left after the end of one.
func (f *follower) othersGoOn() bool { return f.options.Refused != nil && len(f.watches) > 1 }

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

// afterGoodbye interprets the last event of a stream.
func (f *follower) afterGoodbye(end Ending) (time.Duration, error) {
	e := end.Goodbye
	switch {
	case e.Reason == "complete":
		return stop, nil
	case e.Reason == "watch_removed" && !f.othersGoOn(): // otherwise the next refusal says which
		return stop, ErrRemoved
	case e.Reason == "revoked" && !f.othersGoOn(): // likewise
		return stop, ErrRevoked
	}
	f.revoked = e.Reason == "revoked"
	asked := time.Duration(e.RetryMS) * time.Millisecond
	return f.backoff.next(reconnect.End{Lasted: end.Lasted, Goodbye: e.Reason, Asked: asked}), goodbyeError{e.Reason}
}

func (f *follower) url() string {
	query := url.Values{"watch": f.watches}
	for _, name := range f.watches {
		f.options.View.AddTo(query, name)
	}
	if f.options.UntilEndOfSnapshot {
		query.Set("until", "end_of_snapshot")
	}
	return f.server.url(query, "v1", "events")
}
