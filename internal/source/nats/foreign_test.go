package nats

import (
	"strings"
	"testing"
)

// TestHeadersOfWriters: a writer can set any header. It changes one key, and never
// ends the watch or makes the source publish something.
func TestHeadersOfWriters(t *testing.T) {
	for name, header := range map[string]string{
		"end of the consumer": "Status: 409\r\nDescription: Consumer Deleted",
		"heartbeat":           "Status: 100\r\nNats-Last-Consumer: 99",
		"not a heartbeat":     "Status: 100\r\nNats-Last-Consumer: x",
		"flow control":        "Status: 100\r\nNats-Consumer-Stalled: orders.delete",
		"not a header":        "no colon",
	} {
		t.Run(name, func(t *testing.T) {
			published := make(chan string, 10)
			s := newScripted(t, func(s *scripted) {
				s.messages = []scriptedMessage{{key: "a", body: "1"}, {key: "b", header: header}, {key: "c", body: "3"}}
				s.answer = func(_ *peer, subject, _ string, _ []byte) bool {
					if !strings.HasPrefix(subject, "$JS.") {
						published <- subject
					}
					return false
				}
			})
			w := s.watch()
			w.wantValue(t, "c", "3")
			w.wantValue(t, "b", `""`)
			select {
			case subject := <-published:
				t.Errorf("the source published on %s", subject)
			default:
			}
		})
	}
}

// TestMarkerWithABody: what the server leaves for an expired key is empty.
func TestMarkerWithABody(t *testing.T) {
	s := newScripted(t, func(s *scripted) {
		s.messages = []scriptedMessage{
			{key: "a", header: "Nats-Marker-Reason: MaxAge", body: "1"}, {key: "b", header: "Nats-Marker-Reason: MaxAge"}, {key: "c", body: "3"},
		}
	})
	w := s.watch()
	w.wantValue(t, "c", "3")
	w.wantValue(t, "a", "1")
	if b, ok := w.State()["b"]; ok {
		t.Errorf("b is %v, want nothing", b)
	}
}
