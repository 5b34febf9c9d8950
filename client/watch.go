package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

var (
	// ErrRemoved means that a watch no longer exists.
	ErrRemoved = errors.New("the watch was removed")
	// ErrRevoked means that the server has revoked the token, or the access to a watch.
	ErrRevoked = errors.New("the access was revoked")
)

// WatchOption says what of a watch is followed: a [View], a [Counting], [And], [From], [Verifying],
// [MaxRate], [First], [*Mover], or [UntilEndOfSnapshot].
type WatchOption interface{ apply(*follower) }

type watchOption func(*follower)

func (o watchOption) apply(f *follower) { o(f) }

// And adds watches to the same stream.
func And(watches ...string) WatchOption {
	return watchOption(func(f *follower) { f.watches = append(f.watches, watches...) })
}

// From continues from a position: the ID of an event of the same watches and the same View.
// Without one, each watch begins with a snapshot.
func From(position string) WatchOption {
	return watchOption(func(f *follower) { f.id = position })
}

// UntilEndOfSnapshot ends after the end_of_snapshot of each watch.
func UntilEndOfSnapshot() WatchOption {
	return watchOption(func(f *follower) { f.until = true })
}

// MaxRate has changes sent at most so often, such as 2/s or 10/m: of each resource the newest. The server
// takes the next lower rate that it has.
func MaxRate(rate string) WatchOption {
	return watchOption(func(f *follower) { f.maxRate = rate })
}

// First has the resources with these keys sent first, if the watch begins with a snapshot; at most 1,000. They come
// again at their places. It is about the first watch.
func First(keys ...string) WatchOption {
	return watchOption(func(f *follower) { f.first = keys })
}

func (v View) apply(f *follower) { f.view = v }

// Watch follows a watch over as many connections as it takes, each resuming where the previous
// one ended:
//
//	for change, err := range c.Watch(ctx, "services") {
//
// An event of a watch is handed over when the ID that covers it has come, so that what was handed
// over is never undone by what follows a lost connection. Only a status may come before. Hello and
// goodbye are handed over too. When a connection has ended or could not be made, there is a status
// of no watch with the state [Offline], which names the reason and the time until the next attempt.
//
// An error ends the watch that the event beside it names. If others are left, the next iteration
// goes on with them: one of several watches does not exist, or no longer exists, access to it was
// revoked, or the View is invalid for it. If no watch is named, the loop has ended: the error is why
// ctx ended, or why another attempt would be useless: a *Problem that is final, ErrRemoved, or
// ErrRevoked. After UntilEndOfSnapshot the loop ends without an error.
//
// A refusal of a token is final unless Options.Token has another one by then. When a token ends,
// the server ends the stream, and the next connection has the token of then.
func (c *Client) Watch(ctx context.Context, watch string, options ...WatchOption) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{client: c, yield: yield, watches: []string{watch}, unverified: map[string]*unverified{}}
		for _, o := range options {
			o.apply(f)
		}
		if f.counting != nil && len(f.watches) > 1 {
			yield(Event{}, errOneWatch)
			return
		}
		if f.mover != nil && (f.view.Order == "" || f.counting != nil) {
			yield(Event{}, errNoWindow)
			return
		}
		if f.verifying && f.id == "" && f.counting == nil {
			f.verify = (&handed{follower: f, of: map[string]*Replica[struct{}]{}}).verify
		}
		if err := f.follow(ctx); err != nil && !errors.Is(err, errBreak) {
			yield(Event{}, err)
		}
	}
}

// errBreak means that the caller has left the loop: it must not be called again.
var errBreak = errors.New("the loop was left")

// follower is the state that outlives a connection. Owned by one loop over Watch.
type follower struct {
	// Static after construction.
	client    *Client
	yield     func(Event, error) bool
	view      View
	counting  *Counting // nil: resources are followed, and not counts of them
	until     bool      // the end of the snapshot
	maxRate   string
	first     []string // keys that come first
	mover     *Mover   // nil: the window is not moved
	verifying bool     // see Verifying
	// verify is called with each event that an id covers, and hands it over. If that has a digest, it first makes
	// what the client has the state with the digest. It may hand over an event only with the next one that has an id.
	// nil: the stream has no digests.
	verify func(ctx context.Context, e Event, hand func(Event) error) error

	watches  []string // those that were not refused
	failures int      // in a row
	held     []Event  // those that no id covers yet
	bytes    int64    // of held
	id       string   // the newest that was handed over
	revoked  bool     // the last goodbye said that access to one watch, or to all, was revoked
	left     bool     // yield has returned false

	digests    bool                   // the newest request asked for digests
	unverified map[string]*unverified // by watch: what the client has of it could not be verified
}

// unverified is how often in a row what a client has of a watch could not be verified, and how often since the state was gone.
type unverified struct{ failed, gone int }

const (
	// stop is a wait that means that there is no further attempt.
	stop time.Duration = -1
	// atOnce is the wait before a request for fewer watches, or for another window. Nothing was lost.
	atOnce time.Duration = -2
)

// follow makes one connection after the other.
func (f *follower) follow(ctx context.Context) error {
	for {
		wait, err := f.attempt(ctx)
		switch wait {
		case stop:
			return err
		case atOnce:
			continue
		}
		lost := Event{Type: Status, State: Offline, Since: time.Now(), Reason: Reason(err.Error()), RetryMS: wait.Milliseconds(), Err: err, Wait: wait}
		if err := f.hand(lost, nil); err != nil {
			return err
		}
		if err := Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// attempt makes one connection and returns why it ended, and how long to wait
// before the next one, or stop or atOnce.
func (f *follower) attempt(ctx context.Context) (time.Duration, error) {
	token, header, err := f.client.credential(ctx)
	switch {
	case ctx.Err() != nil:
		return stop, context.Cause(ctx)
	case err != nil:
		return f.back(End{}), err
	}
	f.held, f.bytes = nil, 0 // it will be sent again
	connected, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	f.mover.connects(f.client, f.watches[0], cut)
	defer f.mover.ended()
	connection := &Stream{URL: f.url(), Client: f.client.http(), LastEventID: f.from()}
	connection.Handle = func(e Event) error { return f.event(ctx, e) }
	if header != "" {
		connection.Header = map[string]string{"Authorization": header}
	}
	end := connection.Run(connected)
	end.Err = withoutToken(end.Err, token)
	var p *Problem
	switch {
	case f.left:
		return stop, errBreak
	case errors.Is(context.Cause(connected), errMoved) && ctx.Err() == nil:
		return atOnce, nil
	case end.Goodbye != nil:
		return f.afterGoodbye(end)
	case ctx.Err() != nil:
		return stop, context.Cause(ctx)
	case errors.Is(end.Err, ErrUnauthenticated) || errors.Is(end.Err, ErrForbidden):
		return f.unaccepted(ctx, token, end.Err)
	case errors.As(end.Err, &p) && p.Final():
		return f.without(p)
	case p != nil:
		return f.back(End{Lasted: end.Lasted, Asked: p.RetryAfter}), end.Err
	}
	return f.back(End{Lasted: end.Lasted, Asked: end.Retry}), end.Err
}

// back returns the wait after a connection.
func (f *follower) back(e End) time.Duration {
	f.failures = Failures(f.failures, e)
	return Backoff(e, f.failures, rand.Float64())
}

// unaccepted continues if there is another token by now than the one that was refused.
func (f *follower) unaccepted(ctx context.Context, token string, reason error) (time.Duration, error) {
	another, _, err := f.client.credential(ctx)
	switch {
	case err == nil && another != token:
	case f.revoked:
		return stop, fmt.Errorf("%w: %w", ErrRevoked, reason)
	default:
		return stop, reason
	}
	return f.back(End{}), reason
}

// without continues without the watch that a final refusal is about, if it is about one of several.
func (f *follower) without(p *Problem) (time.Duration, error) {
	at := slices.Index(f.watches, p.Watch)
	if p.Status == http.StatusBadRequest && (p.Parameter == "digest" || p.Parameter == "resume") && f.digests {
		f.client.refusedDigests.Store(time.Now().UnixNano()) // an older server, or one without digests
		return atOnce, p
	}
	aboutOne := p.Status == http.StatusBadRequest || p.Status == http.StatusNotFound || p.Status == http.StatusRequestURITooLong
	if at < 0 || !aboutOne || len(f.watches) == 1 {
		return stop, p
	}
	f.watches = slices.Delete(f.watches, at, at+1)
	if err := f.hand(Event{Watch: p.Watch}, p); err != nil {
		return stop, err
	}
	return atOnce, nil
}

// eventCost is what an event takes, about, besides its key and its value.
const eventCost = 256

// cost returns about how many bytes an event takes.
func (e *Event) cost() int64 { return eventCost + int64(len(e.Key)+len(e.Value)) }

// mostBytes returns how many bytes of events are held at most.
func (f *follower) mostBytes() int64 { return cmp.Or(f.client.options.MaxUncommittedBytes, 1<<30) }

// event handles an event of a connection: it is handed over now, or when an id covers it.
func (f *follower) event(ctx context.Context, e Event) error {
	early := e.ID == "" && e.Type == Status && !slices.ContainsFunc(f.held, func(h Event) bool { return h.Watch == e.Watch })
	if e.Type == Hello {
		f.mover.greeted(e.Stream)
	}
	if e.Watch == "" || early {
		return f.hand(e, nil)
	}
	f.held, f.bytes = append(f.held, e), f.bytes+e.cost()
	if most := f.mostBytes(); f.bytes > most {
		return fmt.Errorf("%w: more than %d bytes of events, and no ID covers them", ErrInvalid, most)
	}
	if e.ID == "" {
		return nil
	}
	covered := f.held
	f.held, f.bytes = nil, 0
	hand := func(e Event) error { return f.hand(e, nil) }
	for _, e := range covered {
		if err := f.verified(ctx, e, hand); err != nil {
			return err
		}
	}
	f.id = e.ID
	return nil
}

// mostGone is how often in a row a client comes back since a state was gone: a replica that does not have it keeps states
// that the others have too from then on.
const mostGone = 5

// from returns the position from which the next stream is to continue. For a watch whose state was gone that is a place
// that does not exist, for which each server sends the digest of a state that it keeps. Where the position can be resumed it would
// send that of the newest one, which is soon gone.
func (f *follower) from() string {
	id := f.id
	for watch, of := range f.unverified {
		if of.gone > 0 && placeOf(id, watch) != "" {
			id = replacePlace(id, watch, watch+"@none-0")
		}
	}
	return id
}

// placeOf returns the part of an id that is about a watch; empty: none is.
func placeOf(id, watch string) string {
	for place := range strings.SplitSeq(id, ",") {
		if strings.HasPrefix(place, watch+"@") {
			return place
		}
	}
	return ""
}

// replacePlace replaces the part of an id that is about a watch, or drops it if there is no other.
func replacePlace(id, watch, place string) string {
	var places []string
	for one := range strings.SplitSeq(id, ",") {
		if one != "" && !strings.HasPrefix(one, watch+"@") {
			places = append(places, one)
		}
	}
	if place != "" {
		places = append(places, place)
	}
	return strings.Join(places, ",")
}

// mostUnverified is how often in a row a client fails to verify what it has of a watch before it begins again
// from nothing. If that fails as well, it goes on without digests: another snapshot would not help.
const mostUnverified = 2

// verified verifies what the client has at an event with a digest, and hands the event over. If that fails, the client keeps
// its position, or begins again from nothing with this watch. It is no failure if there was no answer.
func (f *follower) verified(ctx context.Context, e Event, hand func(Event) error) error {
	if f.verify == nil {
		return hand(e)
	}
	err := f.verify(ctx, e, hand)
	switch {
	case err == nil && e.Digest != "":
		delete(f.unverified, e.Watch)
		return nil
	case err == nil, f.left, errors.Is(err, ErrUnavailable):
		return err
	}
	of := f.unverified[e.Watch]
	if of == nil {
		of = &unverified{}
		f.unverified[e.Watch] = of
	}
	switch {
	case errors.Is(err, errStateGone):
		if of.gone++; of.gone <= mostGone {
			return err
		}
	case errors.Is(err, ErrTooDifferent):
		of.failed = max(of.failed, mostUnverified-1) // a second attempt would find the same
	}
	if of.failed++; of.failed < mostUnverified {
		return err
	}
	f.id, of.gone = replacePlace(f.id, e.Watch, ""), 0
	if of.failed > mostUnverified {
		f.verify = nil
	}
	return err
}

// hand hands an event over.
func (f *follower) hand(e Event, err error) error {
	if !f.yield(e, err) {
		f.left = true
		return errBreak
	}
	return nil
}

// goodbyeError is the end of a connection that the server announced.
type goodbyeError struct{ reason Reason }

func (e goodbyeError) Error() string { return "the server ended the stream: " + string(e.reason) }

// afterGoodbye interprets the last event of a stream.
func (f *follower) afterGoodbye(end Ending) (time.Duration, error) {
	e := end.Goodbye
	one := len(f.watches) == 1 // otherwise the next refusal says which
	switch {
	case e.Reason == GoodbyeComplete:
		return stop, nil
	case e.Reason == GoodbyeWatchRemoved && one:
		return stop, ErrRemoved
	case e.Reason == GoodbyeRevoked && one:
		return stop, ErrRevoked
	}
	f.revoked = e.Reason == GoodbyeRevoked
	asked := time.Duration(e.RetryMS) * time.Millisecond
	return f.back(End{Lasted: end.Lasted, Goodbye: string(e.Reason), Asked: asked}), goodbyeError{e.Reason}
}

func (f *follower) url() string {
	query := url.Values{}
	if f.counting != nil {
		f.counting.addTo(query)
	} else {
		query["watch"] = f.watches
		for _, name := range f.watches {
			f.mover.of(f.view, name).AddTo(query, name)
		}
	}
	if f.until {
		query.Set("until", "end_of_snapshot")
	}
	if f.maxRate != "" {
		query.Set("max_rate", f.maxRate)
	}
	if len(f.first) > 0 && f.counting == nil && placeOf(f.id, f.watches[0]) == "" {
		query.Set("first."+f.watches[0], listOf(f.first))
	}
	if f.digests = f.verify != nil && f.client.digests(); f.digests {
		query.Set("digest", "1")
		query.Set("resume", "digest")
	}
	if f.counting != nil {
		return f.client.url(query, "v1", "watches", f.watches[0], "counts", "events")
	}
	return f.client.url(query, "v1", "events")
}
