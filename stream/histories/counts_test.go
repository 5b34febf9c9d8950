package histories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// eventCounts counts the events of all histories, to show their coverage.
type eventCounts struct {
	mu     sync.Mutex // guards the following field
	counts map[string]int
}

var reached = eventCounts{counts: map[string]int{}}

func (t *eventCounts) add(n int, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[fmt.Sprintf(format, args...)] += n
}

func (t *eventCounts) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&b, "\n%10d %s", t.counts[what], what)
	}
	return b.String()
}

// count counts the events of a history.
func (w *world) count() {
	for _, n := range w.nodes {
		n.count()
	}
	for _, c := range w.connections() {
		reached.add(1, "subscriptions that began: %s", c.Outcome())
		countEvents(c)
	}
}

// count counts the final figures of a node.
func (n *node) count() {
	kind := "of nodes behind others"
	if n.endpoint != nil {
		kind = "of roots"
	}
	stats := n.watch.Stats()
	for reason, times := range stats.Reconnects {
		reached.add(int(times), "reconnects %s: %s", kind, reason)
	}
	for reason, times := range stats.Resyncs {
		reached.add(int(times), "snapshots %s: %s", kind, reason)
	}
}

func countEvents(c *streamtest.Connection) {
	if c.From != nil && !c.From.Exact() {
		reached.add(1, "subscriptions with more than the state of their id")
	}
	if c.Difference() {
		reached.add(1, "moves of windows")
	}
	for _, f := range c.Flushes {
		if f.Cut {
			reached.add(1, "flushes cut")
		}
		if f.Mark != nil && f.Mark.Position.Partial() {
			reached.add(1, "ids in the middle of something")
		}
		for _, e := range f.Events {
			switch e.Type {
			case stream.StatusChange:
				reached.add(1, "status %v", e.State)
			case stream.Reset:
				reached.add(1, "reset %s", e.Reason)
			}
		}
	}
}
