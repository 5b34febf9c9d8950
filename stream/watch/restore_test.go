package watch

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// TestRestoredOrderKeepsItsName: an upstream was restored without another name for
// its revisions, so that the log gave it one. Whatever happens in between, a
// position from before the restore must never be taken for one from after it.
func TestRestoredOrderKeepsItsName(t *testing.T) {
	before := snapshotThen("e", 60, []log.Change{upsert("x", 50)}, stayFor(time.Minute, nil))
	restored := snapshotThen("e", 20, []log.Change{upsert("y", 10)}, stayFor(3*time.Minute, stream.ErrUnresumable))
	invalid := log.Change{Resource: stream.Resource{Key: "z", Revision: 5, Value: []byte("1\n2")}}
	grown := snapshotThen("e", 70, []log.Change{upsert("y", 70)}, stay)
	for name, between := range map[string][]stream.SourceFunc{
		"nothing":            nil,
		"a refused snapshot": {snapshotThen("e2", 5, []log.Change{invalid}, stay)},
		"a cut snapshot":     {snapshotThen("e2", 5, nil, fail(errBroken))},
		"another order":      {snapshotThen("e2", 5, []log.Change{upsert("z", 5)}, stayFor(time.Second, stream.ErrUnresumable))},
	} {
		t.Run(name, func(t *testing.T) {
			connections := append([]stream.SourceFunc{before, restored, restored}, between...)
			c := Config{BehindTimeout: time.Nanosecond}
			bubble(t, c, append(connections, grown), func(t *testing.T, w *Watch, s *script) {
				old := positionOf(t, w)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				alias := w.Snapshot().Epoch()
				if !strings.HasPrefix(alias, "e~") {
					t.Fatalf("epoch %q after the restore, want one that begins with e~", alias)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := w.Snapshot().Position().String(); got != "w@"+alias+"-70" {
					t.Errorf("the watch is at %s after %d connections, want w@%s-70", got, len(s.resumes), alias)
				}
				wantOutcome(t, w, old, log.OutcomeEpochChanged)
			})
		})
	}
}

// TestRestoredOrderThatDoesNotFit: the snapshot by which the log would take the
// restored order is too large. The order remains another one.
func TestRestoredOrderThatDoesNotFit(t *testing.T) {
	restored := snapshotThen("e", 400, larges(330, 9500), stay)
	bubble(t, Config{BehindTimeout: time.Nanosecond, MaxBytes: 8 * mega}, []stream.SourceFunc{
		snapshotThen("e", 500, []log.Change{upsert("x", 450)}, stayFor(time.Minute, nil)),
		restored, restored,
		snapshotThen("e", 700, []log.Change{upsert("y", 700)}, stay),
	}, func(t *testing.T, w *Watch, s *script) {
		old := positionOf(t, w)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := w.Stats().Reconnects; n["behind"] != 1 || n["memory"] != 1 {
			t.Fatalf("reconnects: %v, want one of an older snapshot and one of a large one", n)
		}
		if got := w.Snapshot().Position().String(); !strings.HasPrefix(got, "w@e~") || !strings.HasSuffix(got, "-700") {
			t.Errorf("the watch is at %s, want w@e~…-700", got)
		}
		wantOutcome(t, w, old, log.OutcomeEpochChanged)
	})
}

// TestRestoredOrderKeepsItsNameOnDemand: a watch that nobody wanted for a while has
// forgotten its state, but not its name for the upstream's order.
func TestRestoredOrderKeepsItsNameOnDemand(t *testing.T) {
	connections := []stream.SourceFunc{
		snapshotThen("e", 60, []log.Change{upsert("x", 50)}, stayFor(time.Second, errors.New("restored"))),
		snapshotThen("e", 20, []log.Change{upsert("y", 10)}, stay),
		snapshotThen("e", 20, []log.Change{upsert("y", 10)}, stay),
		snapshotThen("e", 70, []log.Change{upsert("y", 70)}, stay),
	}
	c := Config{BehindTimeout: time.Nanosecond, OnDemand: true}
	bubble(t, c, connections, func(t *testing.T, w *Watch, _ *script) {
		reader := follow(w)
		reader.next()
		old, _ := reader.s.Position()
		time.Sleep(5 * time.Minute)
		alias := w.Snapshot().Epoch()
		reader.s.Close()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if w.Snapshot().Primed() {
			t.Fatal("the watch has not stopped")
		}
		if err := w.Prime(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.Snapshot().Epoch(); got != alias {
			t.Errorf("epoch %q after a stop, want %q as before", got, alias)
		}
		wantOutcome(t, w, old, log.OutcomeEpochChanged)
	})
}

// positionOf is where a subscriber of the watch is now.
func positionOf(t *testing.T, w *Watch) stream.Position {
	t.Helper()
	r := follow(w)
	defer r.s.Close()
	r.next()
	p, ok := r.s.Position()
	if !ok {
		t.Fatalf("no position yet: %v", w.Status())
	}
	return p
}

// wantOutcome fails unless resuming the position has this outcome.
func wantOutcome(t *testing.T, w *Watch, p stream.Position, want log.ResumeOutcome) {
	t.Helper()
	r := &statusReader{s: w.Subscribe(log.SubscribeOptions{Resume: &p})}
	defer r.s.Close()
	events := r.next()
	if got := r.s.Outcome(); got != want {
		t.Errorf("%v is answered with %q, want %q: %q", p, got, want, events)
	}
}
