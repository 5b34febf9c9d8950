package grpc

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// declare follows an upstream with a watch of a registry with short timeouts.
func declare(t *testing.T, u *upstream, c Config) *streamwatch.Watch {
	t.Helper()
	c.Address, c.Watch = u.address, "services"
	source, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := streamwatch.NewRegistry()
	t.Cleanup(r.Close)
	w, err := r.Add(streamwatch.Config{
		Name: "services", SourceName: "backend", Source: source,
		Backoff:    streamwatch.Backoff{Min: time.Millisecond, Max: 4 * time.Millisecond},
		StaleAfter: time.Millisecond, SnapshotTimeout: 20 * time.Millisecond, BehindTimeout: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// subscriber follows a watch and keeps its events.
type subscriber struct {
	t      *testing.T
	sub    *log.Subscription
	batch  log.Batch
	events []stream.Event
	state  map[string]string
}

func subscribe(t *testing.T, w *streamwatch.Watch) *subscriber {
	s := &subscriber{t: t, sub: w.Subscribe(log.SubscribeOptions{}), state: map[string]string{}}
	t.Cleanup(s.sub.Close)
	return s
}

// until reads whole flushes until one contains a wanted event.
func (s *subscriber) until(what string, wanted func(stream.Event) bool) {
	s.t.Helper()
	timeout := time.NewTimer(10 * time.Second)
	defer timeout.Stop()
	for {
		for s.sub.Next(&s.batch) {
			if slices.ContainsFunc(s.take(), wanted) {
				return
			}
		}
		select {
		case <-s.sub.Changed():
		case <-timeout.C:
			s.t.Fatalf("no %s in %v", what, s.events)
		}
	}
}

// take applies a flush.
func (s *subscriber) take() []stream.Event {
	flush := slices.Collect(s.batch.Events())
	for _, e := range flush {
		switch e.Type {
		case stream.Reset:
			clear(s.state)
		case stream.Upsert:
			s.state[e.Resource.Key] = string(e.Resource.Value)
		case stream.Delete:
			delete(s.state, e.Resource.Key)
		}
	}
	s.events = append(s.events, flush...)
	return flush
}

func (s *subscriber) untilStatus(state stream.State, reason string) {
	s.t.Helper()
	s.until(state.String()+" because "+reason, func(e stream.Event) bool {
		return e.Type == stream.StatusChange && e.State == state && strings.Contains(e.Reason, reason)
	})
}

func (s *subscriber) untilKey(key string) {
	s.t.Helper()
	s.until("upsert of "+key, func(e stream.Event) bool { return e.Type == stream.Upsert && e.Resource.Key == key })
}

// resets returns the reasons of the resets so far.
func (s *subscriber) resets() (reasons []string) {
	for _, e := range s.events {
		if e.Type == stream.Reset {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// first is the first snapshot of each upstream below: x and y at revision 2.
func first(more ...*message) []*message {
	return append([]*message{
		reset(), upsert("x", 1, "1"), upsert("y", 2, "1"), at("services@e1-2", endOfSnapshot(2, 2)),
	}, more...)
}

// A fault hits a subscriber that has the first snapshot. The subscriber sees that
// the watch is stale (operators see why), then exactly the changes, and no reset.
func TestFaultsAreReportedAndOutlived(t *testing.T) {
	tests := map[string]struct {
		config   Config
		fault    script // of the first call
		counted  string // as a reconnect of this kind
		reason   string // of the status
		position string // that the second call brings
		snapshot bool   // the second call is answered with a snapshot, not the changes
	}{
		"it ends": {
			fault:   sayAndEnd(nil, first()...),
			counted: "ended", reason: "the upstream ended the stream", position: "services@e1-2",
		},
		"it ends, and cannot resume": {
			fault:   sayAndEnd(nil, first()...),
			counted: "ended", reason: "the upstream ended the stream", position: "services@e1-2", snapshot: true,
		},
		"it sends goodbye": {
			fault:   say(first(goodbye("draining", 1))...),
			counted: "ended", reason: "the upstream ended the stream", position: "services@e1-2",
		},
		"it takes the watch away": {
			fault:   say(first(goodbye("watch_removed", 1))...),
			counted: "error", reason: "goodbye, watch_removed", position: "services@e1-2",
		},
		"it fails": {
			fault:   sayAndEnd(status.Error(codes.DataLoss, "disk on fire"), first()...),
			counted: "error", reason: "disk on fire", position: "services@e1-2",
		},
		"it fails in the middle of a transaction": {
			fault:   sayAndEnd(status.Error(codes.Aborted, "half"), first(upsert("half", 3, "1"))...),
			counted: "error", reason: "half", position: "services@e1-2",
		},
		"it stalls": {
			config:  Config{StallAfter: 250 * time.Millisecond},
			fault:   say(first()...),
			counted: "stalled", reason: "nothing received for 250ms", position: "services@e1-2",
		},
		"it sends what is not JSON": {
			fault:   say(first(at("services@e1-3", upsert("bad", 3, "{")))...),
			counted: "invalid", reason: `event 5: value of key "bad" is "{": want JSON text in UTF-8`, position: "services@e1-2",
		},
		"it sends a malformed position": {
			fault:   say(first(at("garbage", bookmark(3)))...),
			counted: "invalid", reason: `event 5: position "garbage": want watch@epoch-revision`, position: "services@e1-2",
		},
		"it sends an empty message": {
			fault:   say(first(&message{})...),
			counted: "invalid", reason: "event 5: empty message", position: "services@e1-2",
		},
		"it sends too large a message": {
			config:  Config{MaxMessageBytes: 1000},
			fault:   say(first(upsert("large", 3, `"`+strings.Repeat("x", 2000)+`"`))...),
			counted: "error", reason: "want a larger maximum message size", position: "services@e1-2",
		},
		"it goes back in revision": {
			fault:   say(first(at("services@e1-1", upsert("z", 1, "1")))...),
			counted: "order", reason: "upstream went back in revision", position: "", snapshot: true,
		},
		"its positions go back": {
			fault:   say(first(at("services@e1-1", bookmark(1)))...),
			counted: "order", reason: "upstream went back in revision", position: "", snapshot: true,
		},
		"it goes back in revision in a transaction": {
			fault:   say(first(upsert("a", 3, "1"), at("services@e1-3", upsert("z", 1, "1")))...),
			counted: "order", reason: "upstream went back in revision", position: "", snapshot: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			told, seen := context.WithCancel(t.Context())
			recovered := []*message{remove("x", 3), upsert("z", 4, "1"), at("services@e1-4", caughtUp(4))}
			if test.snapshot {
				recovered = []*message{reset(), upsert("y", 2, "1"), upsert("z", 4, "1"), at("services@e1-4", endOfSnapshot(4, 2))}
			}
			positions := make(chan string, 1)
			u := serve(t, test.fault, func(c *call) error {
				select {
				case positions <- c.Position:
				default:
				}
				select {
				case <-told.Done():
				case <-c.out.Context().Done():
				}
				c.send(recovered...)
				return c.hold()
			})
			w := declare(t, u, test.config)
			s := subscribe(t, w)
			s.untilStatus(stream.Stale, "the upstream ")
			if !slices.ContainsFunc(w.Incidents(), func(i streamwatch.Incident) bool { return strings.Contains(i.Detail, test.reason) }) {
				t.Errorf("incidents %+v, want %q", w.Incidents(), test.reason)
			}
			if got := <-positions; got != test.position {
				t.Errorf("the second call resumes from %q, want %q", got, test.position)
			}
			seen()
			s.untilStatus(stream.InSync, "")
			s.wantState(map[string]string{"y": "1", "z": "1"})
			if got := s.resets(); !slices.Equal(got, []string{"initial"}) {
				t.Errorf("resets %q, want the initial one alone", got)
			}
			if got := w.Stats().Reconnects[test.counted]; got < 1 {
				t.Errorf("reconnects %v, want %s", w.Stats().Reconnects, test.counted)
			}
			wantResyncs(t, w, "initial", 1)
			if test.snapshot {
				wantResyncs(t, w, "reconnect", 1)
			} else {
				wantResyncs(t, w, "reconnect", 0)
			}
		})
	}
}

func (s *subscriber) wantState(want map[string]string) {
	s.t.Helper()
	if !maps.Equal(s.state, want) {
		s.t.Errorf("the subscriber has %v, want %v", s.state, want)
	}
}

// wantResyncs waits, since a resync is counted right after it became visible.
func wantResyncs(t *testing.T, w *streamwatch.Watch, reason string, n uint64) {
	t.Helper()
	for began := time.Now(); w.Stats().Resyncs[reason] < n && time.Since(began) < 10*time.Second; {
		runtime.Gosched()
	}
	if got := w.Stats().Resyncs[reason]; got != n {
		t.Errorf("%d resyncs because of %s, want %d (%v)", got, reason, n, w.Stats().Resyncs)
	}
}
