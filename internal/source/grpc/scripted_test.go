package grpc

import (
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault is one way in which an upstream is wrong or hostile.
type fault struct {
	name    string
	reason  string // why the connection ends; see watch.Stats.Reconnects
	outcome string // in the text of the error
	play    script
}

// thenSay is a script of a state at 2, and events after it.
func thenSay(events ...*message) script { return say(append(first(), events...)...) }

func scriptedFaults() []fault {
	return []fault{
		{"two changes with one revision", "order", "changed a second time at 3",
			thenSay(at("services@e1-3", upsert("x", 3, "3")), at("services@e1-3", upsert("x", 3, "4")))},
		{"a delete and a value with one revision", "order", "changed a second time at 3",
			thenSay(at("services@e1-3", remove("x", 3)), at("services@e1-3", upsert("x", 3, "4")))},
		{"an older change of another key", "order", "after everything up to 3 was committed",
			thenSay(at("services@e1-3", upsert("x", 3, "3")), at("services@e1-4", upsert("y", 1, "3")))},
		{"a position that goes back", "order", "commit at 2 after one at 3",
			thenSay(at("services@e1-3", upsert("x", 3, "3")), at("services@e1-2", bookmark(2)))},
		{"a value that is no JSON", "invalid", "want JSON text", thenSay(upsert("x", 3, "{"))},
		{"a long key before reset", "invalid", "before reset", say(upsert(strings.Repeat("k", 1<<20), 3, "3"))},
		{"a value larger than the watch may hold", "memory", "too large", thenSay(at("services@e1-3", upsert("x", 3, `"`+strings.Repeat("1", 7<<20)+`"`)))},
		{"an error with a long text", "error", "a long text, a long text", func(*call) error {
			return status.Error(codes.Unavailable, strings.Repeat("a long text, ", 700))
		}},
		{"an end after each event", "ended", "the upstream ended the stream", sayAndEnd(nil, first()...)},
		{"a goodbye that revokes", "error", "goodbye, revoked", thenSay(goodbye("revoked", 1<<30))},
	}
}

// TestScriptedFaults: an upstream that breaks the protocol is left with a reason, and nothing that
// it sent beyond that is served.
func TestScriptedFaults(t *testing.T) {
	for _, row := range scriptedFaults() {
		t.Run(row.name, func(t *testing.T) {
			u := serve(t, row.play)
			source, err := New(Config{Address: u.address, Watch: "services"})
			if err != nil {
				t.Fatal(err)
			}
			r := streamwatch.NewRegistry()
			t.Cleanup(r.Close)
			w, err := r.Add(streamwatch.Config{Name: "services", Source: source, MaxBytes: 32 << 20})
			if err != nil {
				t.Fatal(err)
			}
			s := subscribe(t, w)
			begin := time.Now()
			over := func() bool { // published one after the other
				return w.Stats().Reconnects[row.reason] > 0 && w.Upstream().LastError != "" && (row.reason != "memory" || w.Status().State != stream.InSync)
			}
			for !over() {
				if time.Since(begin) > 20*time.Second {
					t.Fatalf("reconnects %v, last error %q, the watch is %s; want %s", w.Stats().Reconnects, w.Upstream().LastError, w.Status().State, row.reason)
				}
				time.Sleep(time.Millisecond)
			}
			if text := w.Upstream().LastError; !strings.Contains(text, row.outcome) || len(text) > 1<<10 {
				t.Errorf("error %.200q of %d bytes, want %q in it", text, len(text), row.outcome)
			}
			for s.sub.Next(&s.batch) {
				s.take()
			}
			if v := s.state["x"]; v != "" && v != "1" && v != "3" {
				t.Errorf("the subscriber has %.20q", v)
			}
			t.Logf(" scripted | grpc | %s | refused: %s |", row.name, row.outcome)
		})
	}
}
