package log

import (
	"fmt"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/frame"
	"github.com/watchtide/watchtide/stream/log/internal/version"
)

// turns reads everything from a subscription, turn by turn, and returns the events
// and how many turns found nothing.
func turns(t *testing.T, s *Subscription) (events []string, empty int) {
	t.Helper()
	var b Batch
	for {
		switch {
		case s.NextTurn(&b):
			for e := range b.Events() {
				events = append(events, string(frame.AppendEvent(nil, e)))
			}
		case s.Busy():
			empty++
		default:
			return events, empty
		}
		if looked := s.walk.examined; looked > version.TurnEntries+flushBytes/perEntry {
			t.Fatalf("a turn looked at %d entries", looked)
		}
	}
}

// perEntry is the size of an entry in the table of its segment.
const perEntry = 48

// TestTurns: a reader that wants few of many resources, or none, gets the same turn
// by turn as at once, and no turn is long.
func TestTurns(t *testing.T) {
	const resources = 10 * version.TurnEntries
	l := NewWriter(Config{Watch: "w"})
	var changes []Change
	for i := range resources {
		changes = append(changes, Change{Resource: stream.Resource{Key: fmt.Sprintf("k%06d", i), Revision: uint64(i + 1), Value: []byte("1")}})
	}
	mustReplace(t, l, "e", resources, changes...)
	for i := range 3 * version.TurnEntries {
		mustCommit(t, l, uint64(resources+i+1), Change{Resource: stream.Resource{Key: fmt.Sprintf("k%06d", i), Revision: uint64(resources + i + 1)}, Deleted: true})
	}
	for _, prefix := range []string{"", "none", "k000", "k0399", "k000001"} {
		for _, from := range []uint64{0, 1, resources - 1, resources + 1} {
			options := SubscribeOptions{Prefix: prefix}
			if from > 0 {
				options.Resume = &stream.Position{Watch: "w", Epoch: stream.NarrowEpoch("e", prefix), Upserts: from, AsOf: from}
			}
			if from > 0 && from < resources {
				options.Resume.AsOf = resources
			}
			atOnce, inTurns := l.Subscribe(options), l.Subscribe(options)
			var want []string
			for b := (Batch{}); atOnce.Next(&b); {
				for e := range b.Events() {
					want = append(want, string(frame.AppendEvent(nil, e)))
				}
			}
			got, empty := turns(t, inTurns)
			if !slices.Equal(got, want) {
				t.Errorf("prefix %q from %d: %d events in turns, %d at once", prefix, from, len(got), len(want))
			}
			if prefix == "none" && empty < 3 {
				t.Errorf("prefix %q from %d: only %d turns found nothing", prefix, from, empty)
			}
			if p, q := inTurns.position, atOnce.position; p != q {
				t.Errorf("prefix %q from %d: at %v in turns, at %v at once", prefix, from, p, q)
			}
			inTurns.Close()
			atOnce.Close()
		}
	}
}
