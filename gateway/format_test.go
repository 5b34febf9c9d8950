package gateway

import (
	"strings"
	"testing"
)

func TestAcceptedFormat(t *testing.T) {
	const none = format(0)
	for _, test := range []struct {
		accept      []string
		want        format
		eventSource bool
	}{
		{nil, formatSSE, false},
		{[]string{""}, formatSSE, false},
		{[]string{"*/*"}, formatSSE, false},
		{[]string{"text/event-stream"}, formatSSE, true},
		{[]string{"Text/Event-Stream"}, formatSSE, true},
		{[]string{"text/event-stream, */*;q=0.1"}, formatSSE, true},
		{[]string{"text/*"}, formatSSE, false},
		{[]string{"application/x-ndjson"}, formatNDJSON, false},
		{[]string{"application/x-ndjson; charset=utf-8"}, formatNDJSON, false},
		{[]string{"application/x-ndjson, */*"}, formatNDJSON, false},
		{[]string{"application/x-ndjson, text/event-stream"}, formatSSE, true},
		{[]string{"application/x-ndjson", "text/event-stream;q=0.5"}, formatNDJSON, true},
		{[]string{"text/html, application/xhtml+xml, */*;q=0.8"}, formatSSE, false},
		{[]string{"*/*, text/event-stream;q=0, application/*"}, formatNDJSON, false},
		{[]string{"*/*;q=0"}, none, false},
		{[]string{"text/event-stream;q=0"}, none, false},
		{[]string{"text/event-stream;q=high"}, none, false},
		{[]string{"text/event-stream;q=-1"}, none, false},
		{[]string{"text/event-stream;q=NaN"}, none, false},
		{[]string{"application/json"}, none, false},
		{[]string{"text/html"}, none, false},
		{[]string{"nonsense"}, none, false},
	} {
		got, p := chooseFormat("", false, test.accept)
		if got != test.want || (p != nil) != (test.want == none) {
			t.Errorf("Accept %q: got format %d, %v; want %d", test.accept, got, p, test.want)
		}
		if p != nil && (p.Status != 406 || p.Parameter != "Accept" || !strings.Contains(p.Detail, typeSSE)) {
			t.Errorf("Accept %q: got %+v", test.accept, p)
		}
		if got := namesEventStream(test.accept); got != test.eventSource {
			t.Errorf("Accept %q: names event-stream: %t, want %t", test.accept, got, test.eventSource)
		}
	}
}

func TestFormatParameterWins(t *testing.T) {
	if got, p := chooseFormat("ndjson", true, []string{"text/html"}); got != formatNDJSON || p != nil {
		t.Errorf("got %d, %v", got, p)
	}
}
