package watch_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// eventCounts counts what happened over all histories, so that a run in which something
// never happened does not count as proof of it.
type eventCounts struct {
	mu     sync.Mutex
	counts map[string]int
}

// tallied is everything that must happen in a run.
var tallied = []string{
	"histories", "events", "ids", "resumes from an id of the replica", "resumes from an id of another",
	"resumes in mid-snapshot or mid-catch-up", "resumes tried at the end",
	"outcome exact", "outcome expired", "outcome ahead", "outcome epoch_changed", "outcome snapshot",
	"resets", "catch-ups", "walks given up", "changes skipped", "segments rewritten", "flush cut", "snapshot cut",
	"upstream lost", "upstream fell back", "snapshots refused as behind", "restore, new epoch",
	"restore, same epoch", "gateway restarted", "tombstones dropped", "statuses",
	"deletes with their own revision", "deletes without one", "deletes told with snapshots",
}

func newEventCounts() *eventCounts { return &eventCounts{counts: map[string]int{}} }

func (c *eventCounts) add(what string) { c.addN(what, 1) }

func (c *eventCounts) addN(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what] += n
}

// report logs the counts; in a run of any length none may be zero.
func (c *eventCounts) report(t *testing.T) {
	for what := range c.counts {
		if !slices.Contains(tallied, what) {
			t.Errorf("%q is counted and not listed", what)
		}
	}
	for _, what := range tallied {
		t.Logf("%8d %s", c.counts[what], what)
		if c.counts[what] == 0 && c.counts["histories"] >= 100 {
			t.Errorf("in %d histories there was nothing of: %s", c.counts["histories"], what)
		}
	}
}

// count adds the history to the counts.
func (w *world) count() {
	w.eventCounts.add("histories")
	type given struct {
		replica  string
		position stream.Position
	}
	all := map[given]bool{}
	for _, c := range w.history.Connections() {
		for _, f := range c.Flushes {
			if f.Mark != nil {
				all[given{c.Replica, f.Mark.Position}] = true
				w.eventCounts.add("ids")
			}
			w.eventCounts.addN("events", len(f.Events))
			for _, e := range f.Events {
				w.countEvent(e)
			}
		}
	}
	for _, c := range w.history.Connections() {
		switch {
		case c.From == nil:
		case all[given{c.Replica, c.From.Position}]:
			w.eventCounts.add("resumes from an id of the replica")
		default:
			w.eventCounts.add("resumes from an id of another")
		}
		if c.Live() {
			w.countOutcome(c)
			c.Close()
		}
	}
}

func (w *world) countOutcome(c *streamtest.Connection) {
	if o := c.Outcome(); o != log.OutcomePending {
		w.eventCounts.add("outcome " + string(o))
	}
}

func (w *world) countEvent(e stream.Event) {
	switch e.Type {
	case stream.Reset:
		w.eventCounts.add("resets")
	case stream.StatusChange:
		w.eventCounts.add("statuses")
		if e.State == stream.CatchingUp {
			w.eventCounts.add("catch-ups")
			if strings.HasPrefix(e.Reason, "too slow") {
				w.eventCounts.add("walks given up")
			}
		}
	case stream.Bookmark:
		w.eventCounts.addN("changes skipped", int(e.Skipped))
	}
}
