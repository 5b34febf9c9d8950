package client

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/r3labs/sse/v2"
)

const (
	// MaxEventBytes is the default limit for the bytes of one event.
	MaxEventBytes = 64 << 20
	// AnswerWithin is the default limit for a server's first response.
	AnswerWithin = 30 * time.Second
	// silentBeats is how many heartbeats may be missing.
	silentBeats = 2.5
)

// Stream is one response: from the request to its end. It serves once.
//
// Owned by the goroutine that calls Run; the r3labs client reads in another one,
// and hands events over to it.
type Stream struct {
	// URL is that of a stream of events, with its query.
	URL string
	// Client makes the request. Its Timeout must be 0: it would end the stream.
	Client *http.Client
	// Header is sent along. nil: nothing is. Without Accept in it, a refusal is a
	// *Problem; with text/event-stream there, overload is a goodbye.
	Header map[string]string
	// LastEventID is where the stream resumes. "": it starts from nothing.
	LastEventID string
	// MaxEventBytes is the most bytes of one event. 0: MaxEventBytes.
	MaxEventBytes int
	// StallAfter is how long nothing may arrive. 0: AnswerWithin, and two and a
	// half heartbeats as soon as hello announces their interval.
	StallAfter time.Duration
	// Held is told how many more bytes are held of an event that has not arrived whole; fewer
	// if negative. It is called by the goroutine that reads, which may end a moment after
	// Run. nil: nobody is told.
	Held func(bytes int)
	// Handle is called for each event, hello and goodbye included. An error ends
	// the stream with it.
	Handle func(Event) error

	greeted time.Time // when hello came
	lastID  []byte    // as the r3labs client holds it, to distinguish ids
	ending  Ending
	failed  error // from Handle, or from an unreadable event
	silence *silence
	cancel  context.CancelCauseFunc
}

// Ending describes how a stream ended.
type Ending struct {
	// Greeted reports whether there was a hello.
	Greeted bool
	// Lasted is the time from the hello to the end, without a silence that ended it.
	Lasted time.Duration
	// Retry is when a disconnected client should reconnect, from the field
	// retry. 0: there was none.
	Retry time.Duration
	// Goodbye was the last event; nil: there was none.
	Goodbye *Event
	// Err is why the stream ended without a goodbye: a *Problem for a refusal,
	// ErrStalled for silence, ErrInvalid for an invalid event, the
	// error of Handle, the cause of the context, or the network's error. nil
	// after a goodbye.
	Err error
}

// errCut ends a stream whose server sent no goodbye.
var errCut = errors.New("the stream ended without a goodbye")

// Run makes the request and reads events until the response ends.
func (s *Stream) Run(ctx context.Context) Ending {
	ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	limit := s.StallAfter
	if limit == 0 {
		limit = AnswerWithin
	}
	s.silence = newSilence(limit, s.stalled)
	defer s.silence.end()
	s.silence.begin()
	err := s.client().SubscribeRawWithContext(ctx, s.receive)
	switch cause := context.Cause(ctx); {
	case s.failed != nil:
		s.ending.Err = s.failed
	case s.ending.Goodbye != nil:
	case cause != nil:
		s.ending.Err = cause
	case err != nil:
		s.ending.Err = err
	default:
		s.ending.Err = errCut
	}
	s.ending.Lasted = s.lasted()
	return s.ending
}

func (s *Stream) lasted() time.Duration {
	if !s.ending.Greeted {
		return 0
	}
	lasted := time.Since(s.greeted)
	if errors.Is(s.ending.Err, ErrStalled) {
		lasted -= s.silence.getLimit()
	}
	return lasted
}

func (s *Stream) stalled() {
	s.cancel(fmt.Errorf("%w: nothing came for %v, not even a heartbeat", ErrStalled, s.silence.getLimit()))
}

// anyType asks for a stream as text/event-stream does, since that is a gateway's default.
// But a refusal is then a problem, which names the limit and the watch, and not a goodbye
// as for an EventSource, which does not.
const anyType = "*/*"

func (s *Stream) client() *sse.Client {
	limit := s.MaxEventBytes
	if limit == 0 {
		limit = MaxEventBytes
	}
	client := sse.NewClient(s.URL, sse.ClientMaxBufferSize(limit+1)) // it needs room behind the event
	connection := *s.Client
	connection.Transport = &transport{stream: s, limit: limit, next: s.Client.Transport}
	client.Connection = &connection
	client.ReconnectStrategy = never{}
	client.ResponseValidator = validate
	client.Headers["Accept"] = anyType
	client.Headers["Incremental"] = "?1" // RFC 10036: nobody on the way is to wait for the whole message
	for name, value := range s.Header {
		client.Headers[name] = value
	}
	if s.LastEventID != "" {
		client.Headers["Last-Event-ID"] = s.LastEventID
	}
	return client
}

// never is a back-off without a second attempt.
type never struct{}

func (never) NextBackOff() time.Duration { return -1 }
func (never) Reset()                     {}

// transport monitors the body of a stream; a refusal is left unchanged.
type transport struct {
	stream *Stream
	limit  int
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	t.stream.silence.end()
	if err == nil && isEventStream(response.Header.Get("Content-Type")) {
		response.Body = newBody(response.Body, t.stream.silence, t.limit, t.stream.Held)
	}
	return response, err
}

// validate rejects responses that are not a stream of events. The r3labs client
// leaves the body of a rejected response open.
func validate(_ *sse.Client, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return ReadProblem(response)
	}
	if !isEventStream(response.Header.Get("Content-Type")) {
		response.Body.Close()
		return &Problem{Status: http.StatusNotAcceptable, Title: "Not a stream of events",
			Detail: fmt.Sprintf("the answer is %q: is this a gateway?", response.Header.Get("Content-Type"))}
	}
	return nil
}

func isEventStream(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "text/event-stream"
}

// receive handles one event from the r3labs client.
func (s *Stream) receive(m *sse.Event) {
	if ms, err := strconv.ParseUint(string(m.Retry), 10, 31); err == nil {
		s.ending.Retry = time.Duration(ms) * time.Millisecond
	}
	if len(m.Data) == 0 || s.failed != nil || s.ending.Goodbye != nil {
		return
	}
	e, err := parseEvent(EventType(m.Event), m.Data)
	if err == nil {
		e.ID = s.ownID(m.ID)
		s.note(&e)
		err = s.Handle(e)
	}
	if err != nil {
		s.failed = err
		s.cancel(err)
	}
}

// ownID returns the id if the event itself has one. The r3labs client gives an
// event without one the slice of the previous event.
func (s *Stream) ownID(id []byte) string {
	if len(id) == 0 || len(s.lastID) > 0 && &s.lastID[0] == &id[0] {
		return ""
	}
	s.lastID = id
	return string(id)
}

// note records the data of an event that concerns the stream as a whole.
func (s *Stream) note(e *Event) {
	switch e.Type {
	case Hello:
		s.ending.Greeted, s.greeted = true, time.Now()
		if e.HeartbeatMS > 0 && s.StallAfter == 0 {
			s.silence.setLimit(time.Duration(silentBeats * float64(e.HeartbeatMS) * float64(time.Millisecond)))
		}
	case Goodbye:
		s.ending.Goodbye = e
	}
}
