package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// event is one line of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`

	held int64 // bytes, to be released once it is applied
}

// The types of events.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
	bookmark = "BOOKMARK"
	failed   = "ERROR"
)

// watchCall is a running watch request. A goroutine of its own reads it, so
// that silence can be noticed; it ends with close.
type watchCall struct {
	// Static after construction.
	ctx    context.Context
	end    context.CancelCauseFunc
	most   int64             // bytes of an event
	hold   func(bytes int64) // see stream.SinkExtension
	events chan event        // closed by read at the end
	opened time.Time
	limit  time.Duration // after which the server ends it

	// Written by read before it closes events.
	err error // the reason of their end; nil: the server ended the watch in good order
}

// lasting is how long a watch lasts: a few minutes, with random variation;
// less over HTTP/1.1, where only its end shows that the server is still alive.
func (c *client) lasting() time.Duration {
	switch {
	case c.config.watchFor > 0:
		return c.config.watchFor
	case c.http2.Load():
		return 4*time.Minute + rand.N(4*time.Minute)
	}
	return 2 * c.config.StallAfter
}

// watch begins a watch with bookmarks.
func (c *client) watch(ctx context.Context, query url.Values) (*watchCall, error) {
	limit := c.lasting()
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	query.Set("timeoutSeconds", strconv.Itoa(int(limit/time.Second)))
	own, end := context.WithCancelCause(ctx)
	overdue := time.AfterFunc(limit+c.config.StallAfter, func() { end(errOverdue) })
	body, err := c.request(own, c.collection(), query)
	if err != nil {
		overdue.Stop()
		end(nil)
		return nil, c.explained(ctx, err)
	}
	w := &watchCall{ctx: own, end: end, most: c.config.maxObject, hold: c.hold, events: make(chan event, 16), opened: time.Now(), limit: limit}
	go func() {
		defer close(w.events)
		defer overdue.Stop()
		defer body.Close()
		w.err = w.read(body)
	}()
	return w, nil
}

func (w *watchCall) read(body io.Reader) error {
	r := &ration{ctx: w.ctx, body: body, most: w.most, hold: w.hold}
	defer func() { w.hold(-r.take()) }()
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			return w.ended(err)
		}
		if r.read > largeEvent { // the decoder would keep its buffer
			d = json.NewDecoder(io.MultiReader(d.Buffered(), r))
		}
		e.held = r.take()
		select {
		case w.events <- e:
		case <-w.ctx.Done():
			w.hold(-e.held)
			return context.Cause(w.ctx)
		}
	}
}

// largeEvent is how many bytes make an event large; most have a few KiB.
const largeEvent = 256 << 10

// ended returns why the decoder stopped.
func (w *watchCall) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	if errors.Is(err, stream.ErrInvalid) {
		return err
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return invalid("the watch sends invalid JSON, at byte %d: %v", syntax.Offset, syntax)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return invalid("the watch sends an invalid event: %v", wrong)
	}
	return because(w.ctx, err)
}

// errQuiet means that next received nothing in time.
var errQuiet = errors.New("nothing came")

// next returns the next event: io.EOF after the last, errQuiet if quiet fires
// before there is one.
func (w *watchCall) next(quiet <-chan time.Time) (event, error) {
	select {
	case e, ok := <-w.events:
		return e, w.over(ok)
	default:
	}
	select {
	case e, ok := <-w.events:
		return e, w.over(ok)
	case <-quiet:
		return event{}, errQuiet
	}
}

func (w *watchCall) over(more bool) error {
	switch {
	case more:
		return nil
	case w.err != nil:
		return w.err
	}
	return io.EOF
}

// close ends the request and waits for its reader.
func (w *watchCall) close() {
	w.end(nil)
	for e := range w.events { // the rest is discarded
		w.hold(-e.held)
	}
}

// ranOut reports whether the watch ended by the server's time limit.
func (w *watchCall) ranOut() bool {
	const early = 5 * time.Second
	return time.Since(w.opened) >= w.limit-early
}
