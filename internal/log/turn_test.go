package log

import (
	"fmt"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
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
				events = append(events, string(frame.AppendData(nil, e)))
			}
		case s.Busy():
			empty++
		default:
			return events, empty
		}
		if s.walking() && s.walk.examined > storage.TurnEntries+storage.FlushSize/perEntry {
			t.Fatalf("a turn looked at %d entries", s.walk.examined)
		}
	}
}

// perEntry is the size of an entry in the table of its segment.
const perEntry = 48

// TestTurns: a reader that passes over many entries gets the same turn by turn as at
// once, and no turn is long.
func TestTurns(t *testing.T) {
	resources, deletes := uint64(10*storage.TurnEntries), uint64(3*storage.TurnEntries)
	l := NewWriter(Config{Watch: "w"})
	var changes []Change
	for i := range resources {
		changes = append(changes, Change{Resource: stream.Resource{Key: fmt.Sprintf("k%06d", i), Revision: uint64(i + 1), Value: []byte("1")}})
	}
	mustReplace(t, l, "e", resources, changes...)
	for i := range deletes {
		mustCommit(t, l, uint64(resources+i+1), Change{Resource: stream.Resource{Key: fmt.Sprintf("k%06d", i), Revision: uint64(resources + i + 1)}, Deleted: true})
	}
	// The last one is inside a catch-up, in which it has got all deletes: they are all
	// that is left to pass over.
	for _, from := range []struct{ upserts, asOf uint64 }{
		{}, {1, resources}, {resources - 1, resources}, {resources + 1, resources + 1}, {resources, resources + deletes},
	} {
		options := SubscribeOptions{}
		if from.asOf > 0 {
			options.Resume = &stream.Position{Watch: "w", Epoch: "e", Upserts: from.upserts, AsOf: from.asOf}
		}
		atOnce, inTurns := l.Subscribe(options), l.Subscribe(options)
		var want []string
		for b := (Batch{}); atOnce.Next(&b); {
			for e := range b.Events() {
				want = append(want, string(frame.AppendData(nil, e)))
			}
		}
		got, empty := turns(t, inTurns)
		if !slices.Equal(got, want) {
			t.Errorf("from %v: %d events in turns, %d at once", from, len(got), len(want))
		}
		if from.asOf == resources+deletes && empty < 2 {
			t.Errorf("from %v: only %d turns found nothing", from, empty)
		}
		if p, q := inTurns.position, atOnce.position; p != q {
			t.Errorf("from %v: at %v in turns, at %v at once", from, p, q)
		}
		inTurns.Close()
		atOnce.Close()
	}
}
