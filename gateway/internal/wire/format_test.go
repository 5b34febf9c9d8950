package wire

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
)

func TestAcceptedFormat(t *testing.T) {
	const none = frame.Format(0)
	for _, test := range []struct {
		accept      []string
		want        frame.Format
		eventSource bool
	}{
		{nil, frame.SSE, false},
		{[]string{""}, frame.SSE, false},
		{[]string{"*/*"}, frame.SSE, false},
		{[]string{"text/event-stream"}, frame.SSE, true},
		{[]string{"Text/Event-Stream"}, frame.SSE, true},
		{[]string{"text/event-stream, */*;q=0.1"}, frame.SSE, true},
		{[]string{"text/*"}, frame.SSE, false},
		{[]string{"application/x-ndjson"}, frame.NDJSON, false},
		{[]string{"application/x-ndjson; charset=utf-8"}, frame.NDJSON, false},
		{[]string{"application/x-ndjson, */*"}, frame.NDJSON, false},
		{[]string{"application/x-ndjson, text/event-stream"}, frame.SSE, true},
		{[]string{"application/x-ndjson", "text/event-stream;q=0.5"}, frame.NDJSON, true},
		{[]string{"text/html, application/xhtml+xml, */*;q=0.8"}, frame.SSE, false},
		{[]string{"*/*, text/event-stream;q=0, application/*"}, frame.NDJSON, false},
		{[]string{"*/*;q=0"}, none, false},
		{[]string{"text/event-stream;q=0"}, none, false},
		{[]string{"text/event-stream;q=high"}, none, false},
		{[]string{"text/event-stream;q=-1"}, none, false},
		{[]string{"text/event-stream;q=NaN"}, none, false},
		{[]string{"application/json"}, none, false},
		{[]string{"text/html"}, none, false},
		{[]string{"nonsense"}, none, false},
	} {
		got, p := ChooseFormat("", false, test.accept)
		if got != test.want || (p != nil) != (test.want == none) {
			t.Errorf("Accept %q: got format %d, %v; want %d", test.accept, got, p, test.want)
		}
		if p != nil && (p.Status != 406 || p.Parameter != "Accept" || !strings.Contains(p.Detail, TypeSSE)) {
			t.Errorf("Accept %q: got %+v", test.accept, p)
		}
		if got := NamesEventStream(test.accept); got != test.eventSource {
			t.Errorf("Accept %q: names event-stream: %t, want %t", test.accept, got, test.eventSource)
		}
	}
}

func TestFormatParameterWins(t *testing.T) {
	if got, p := ChooseFormat("ndjson", true, []string{"text/html"}); got != frame.NDJSON || p != nil {
		t.Errorf("got %d, %v", got, p)
	}
}
