package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// answer is a server that answers every request with the same body.
type answer struct {
	io.Reader
	status int
	header http.Header
	seen   *http.Request
}

func (a *answer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.seen = r
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(a.Reader), Request: r}, nil
}

func eventsOf(text string) *answer {
	return &answer{strings.NewReader(text), http.StatusOK, http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, nil}
}

// run reads an answer to its end, and returns its events as type and id.
func run(ctx context.Context, a *answer, change func(*Stream)) (events []string, end Ending) {
	s := &Stream{URL: "http://gateway.test/v1/events?watch=w", Client: &http.Client{Transport: a}, Handle: func(e Event) error {
		events = append(events, strings.TrimSpace(string(e.Type)+" "+e.ID))
		return nil
	}}
	if change != nil {
		change(s)
	}
	return events, s.Run(ctx)
}

const (
	helloEvent   = "retry: 2817\n\nevent: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000}\n\n"
	goodbyeEvent = "event: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":\"draining\",\"retry_ms\":4210}\n\n"
)

func bookmarkEvent(id string) string {
	return "event: bookmark\ndata: {\"type\":\"bookmark\",\"watch\":\"w\",\"revision\":\"1\"}\n" + id + "\n"
}

func TestStreamEnding(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Ending // of Goodbye only whether it is set
		err  string
	}{
		"goodbye":       {helloEvent + goodbyeEvent, Ending{Greeted: true, Retry: 2817 * time.Millisecond, Goodbye: &Event{}}, ""},
		"cut":           {helloEvent, Ending{Greeted: true, Retry: 2817 * time.Millisecond}, "without a goodbye"},
		"before hello":  {"retry: 5\n\n", Ending{Retry: 5 * time.Millisecond}, "without a goodbye"},
		"invalid retry": {"retry: soon\n\n" + goodbyeEvent, Ending{Goodbye: &Event{}}, ""},
		"nothing":       {"", Ending{}, "without a goodbye"},
		"no JSON":       {helloEvent + "event: status\ndata: {\n\n", Ending{Greeted: true, Retry: 2817 * time.Millisecond}, "the data of a status event is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, end := run(t.Context(), eventsOf(c.text), nil)
			if end.Greeted != c.want.Greeted || end.Retry != c.want.Retry || (end.Goodbye == nil) != (c.want.Goodbye == nil) {
				t.Errorf("got %+v, want %+v", end, c.want)
			}
			if (end.Err == nil) != (c.err == "") || end.Err != nil && !strings.Contains(end.Err.Error(), c.err) {
				t.Errorf("error %v, want %q", end.Err, c.err)
			}
			if end.Goodbye != nil && end.Goodbye.RetryMS != 4210 {
				t.Errorf("goodbye %+v", end.Goodbye)
			}
		})
	}
}

// An id belongs to the event that has it, even if the next one has the same.
func TestStreamDistinguishesIDs(t *testing.T) {
	id := "id: w@e-1\n"
	got, _ := run(t.Context(), eventsOf(bookmarkEvent(id)+": heartbeat\n\n"+bookmarkEvent("")+bookmarkEvent(id)), nil)
	if want := "[bookmark w@e-1 bookmark bookmark w@e-1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Lines may end with any of the three ends of lines, whatever is on the way.
func TestStreamTakesAllEndsOfLines(t *testing.T) {
	text := helloEvent + bookmarkEvent("id: w@e-1\n") + goodbyeEvent
	for _, end := range []string{"\n", "\r\n", "\r"} {
		for name, pieces := range map[string]func(io.Reader) io.Reader{"byte by byte": iotest.OneByteReader, "in halves": iotest.HalfReader} {
			a := eventsOf("")
			a.Reader = pieces(strings.NewReader(strings.ReplaceAll(text, "\n", end)))
			got, ending := run(t.Context(), a, nil)
			if fmt.Sprint(got) != "[hello bookmark w@e-1 goodbye]" || ending.Err != nil || ending.Retry != 2817*time.Millisecond {
				t.Errorf("%q, %s: got %v, %+v", end, name, got, ending)
			}
		}
	}
}

// Data is one line, also if it came in several fields.
func TestStreamJoinsTheLinesOfData(t *testing.T) {
	const text = "event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"w\",\"key\":\"k\",\"revision\":\"7\",\ndata: \"value\":{\"a\":\ndata: 1.0}}\n\n"
	for _, end := range []string{"\n", "\r\n", "\r"} {
		var got Event
		_, ending := run(t.Context(), eventsOf(strings.ReplaceAll(text, "\n", end)+goodbyeEvent), func(s *Stream) {
			s.Handle = func(e Event) error {
				if e.Type == Upsert {
					got = e
				}
				return nil
			}
		})
		if want := `{"type":"upsert","watch":"w","key":"k","revision":"7","value":{"a":1.0}}`; string(got.Data) != want || string(got.Value) != `{"a":1.0}` || ending.Err != nil {
			t.Errorf("%q: data %q, value %q, %v, want %q", end, got.Data, got.Value, ending.Err, want)
		}
	}
}

// Events after a goodbye are ignored.
func TestStreamEndsWithGoodbye(t *testing.T) {
	got, end := run(t.Context(), eventsOf(goodbyeEvent+bookmarkEvent("")+"event: x\ndata: {\n\n"), nil)
	if fmt.Sprint(got) != "[goodbye]" || end.Err != nil {
		t.Errorf("got %v, %v", got, end.Err)
	}
}

func TestStreamRefusesLargeEvents(t *testing.T) {
	large := "event: bookmark\ndata: {\"type\":\"bookmark\",\"watch\":\"" + strings.Repeat("x", 70_000) + "\"}\n\n"
	for limit, ok := range map[int]bool{0: true, len(large): true, len(large) - 1: false} {
		got, end := run(t.Context(), eventsOf(large+goodbyeEvent), func(s *Stream) { s.MaxEventBytes = limit })
		if ok != (end.Err == nil) || ok != (len(got) == 2) || !ok && !errors.Is(end.Err, ErrInvalid) {
			t.Errorf("limit %d: got %d events, %v", limit, len(got), end.Err)
		}
	}
}

func TestStreamEndsWithItsCaller(t *testing.T) {
	broken := errors.New("broken")
	_, end := run(t.Context(), eventsOf(helloEvent+goodbyeEvent), func(s *Stream) { s.Handle = func(Event) error { return broken } })
	if !errors.Is(end.Err, broken) {
		t.Errorf("error %v, want that of Handle", end.Err)
	}
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, end := run(ctx, eventsOf(helloEvent), nil); !errors.Is(end.Err, over) {
		t.Errorf("error %v, want the cause of the context", end.Err)
	}
}

func TestStreamSendsItsHeader(t *testing.T) {
	a := eventsOf(goodbyeEvent)
	_, _ = run(t.Context(), a, func(s *Stream) { s.LastEventID, s.Header = "w@e-1", map[string]string{"x-team": "blue"} })
	for name, want := range map[string]string{"Last-Event-ID": "w@e-1", "X-Team": "blue", "Accept": "*/*"} {
		if got := a.seen.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestStreamIsRefused(t *testing.T) {
	a := &answer{strings.NewReader(`{"title":"Not Found","status":404,"detail":"none","watch":"w"}`), http.StatusNotFound,
		http.Header{"Content-Type": {"application/problem+json"}, "Retry-After": {"3"}}, nil}
	_, end := run(t.Context(), a, nil)
	var p *Problem
	if !errors.As(end.Err, &p) || *p != (Problem{Status: 404, Title: "Not Found", Detail: "none", Watch: "w", RetryAfter: 3 * time.Second}) {
		t.Errorf("error %#v", end.Err)
	}
}
