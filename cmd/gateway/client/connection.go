package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/r3labs/sse/v2"
)

// MaxEventBytes is the most bytes of one event.
const MaxEventBytes = 64 << 20

// silentBeats is how many heartbeats may be missing.
const silentBeats = 2.5

// connection is one response: from the request to its end. Made anew for each
// attempt, since the r3labs client keeps state.
//
// Owned by the goroutine that calls run; the r3labs client reads in another
// one, and hands events over to it.
type connection struct {
	// Static after construction.
	server *Server
	url    string
	handle func(Event) error

	// Owned by run.
	lastID  []byte        // as the r3labs client holds it, to tell ids apart
	retry   time.Duration // from retry:, 0: none
	goodbye *Event        // nil: none yet
	failed  error         // from handle, or from an event that cannot be read
	greeted bool          // hello came
	silence *silence
	cancel  context.CancelCauseFunc
}

// run reads events until the response ends, and says why it ended: nil after a
// goodbye, else what went wrong. resumeID may be empty.
func (c *connection) run(ctx context.Context, resumeID string) error {
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	c.silence = newSilence(answerWithin, func() { c.cancel(errSilent) })
	defer c.silence.end()

	err := c.client(resumeID).SubscribeRawWithContext(ctx, c.receive)
	switch {
	case c.failed != nil:
		return c.failed
	case c.goodbye != nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return errors.New("the stream ended without a goodbye")
}

func (c *connection) client(resumeID string) *sse.Client {
	client := sse.NewClient(c.url, sse.ClientMaxBufferSize(MaxEventBytes))
	client.Connection = &http.Client{Transport: c}
	client.ReconnectStrategy = never{}
	client.ResponseValidator = validate
	if resumeID != "" {
		client.Headers["Last-Event-ID"] = resumeID
	}
	return client
}

// never is a back-off without a second attempt.
type never struct{}

func (never) NextBackOff() time.Duration { return -1 }
func (never) Reset()                     {}

// RoundTrip puts the watch on the body of a stream; a refusal stays as it is.
func (c *connection) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.server.transport.RoundTrip(r)
	if err == nil && isEventStream(response.Header.Get("Content-Type")) {
		response.Body = &watchedBody{ReadCloser: response.Body, silence: c.silence}
	}
	return response, err
}

// validate refuses what is not a stream of events. The r3labs client leaves the
// body of a refused response open.
func validate(_ *sse.Client, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return readProblem(response)
	}
	if !isEventStream(response.Header.Get("Content-Type")) {
		response.Body.Close()
		return &Problem{Status: http.StatusNotAcceptable, Title: "Not a stream of events",
			Detail: fmt.Sprintf("the answer is %q: is this a gateway?", response.Header.Get("Content-Type"))}
	}
	return nil
}

// receive takes one event from the r3labs client.
func (c *connection) receive(m *sse.Event) {
	if ms, err := strconv.ParseUint(string(m.Retry), 10, 31); err == nil {
		c.retry = time.Duration(ms) * time.Millisecond
	}
	name := string(m.Event)
	if len(m.Data) == 0 || name == cutEvent || c.failed != nil || c.goodbye != nil {
		return
	}
	e, err := parseEvent(name, m.Data)
	if err == nil {
		e.ID = c.ownID(m.ID)
		c.note(&e)
		err = c.handle(e)
	}
	if err != nil {
		c.failed = err
		c.cancel(err)
	}
}

// ownID returns the id if the event brought it along. The r3labs client gives
// an event without one the very slice of the event before.
func (c *connection) ownID(id []byte) string {
	if len(id) == 0 || len(c.lastID) > 0 && &c.lastID[0] == &id[0] {
		return ""
	}
	c.lastID = id
	return string(id)
}

// note takes from an event what concerns the connection.
func (c *connection) note(e *Event) {
	switch e.Type {
	case "hello":
		c.greeted = true
		if e.HeartbeatMS > 0 {
			c.silence.limit.Store(time.Duration(silentBeats * float64(e.HeartbeatMS) * float64(time.Millisecond)))
		}
	case "goodbye":
		c.goodbye = e
	}
}
