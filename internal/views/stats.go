package views

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/watchtide/watchtide/internal/view"
)

// Stats are figures of all views together.
type Stats struct {
	Views       int    // those that exist, lingering ones included
	Idle        int    // those of them without subscribers
	Bytes       int64  // that they hold
	MaxBytes    int64  // that they may hold
	Builds      uint64 // how often a view was made from all of its watch
	Evaluations uint64 // how often it was decided whether a view has a resource
	Found       uint64 // how many of these the index asked for
	// Failures are those of the evaluations that had no result, by reason.
	Failures map[string]uint64
}

// failures are the names of the failures in metrics.
var failures = [view.Failures]string{
	view.NoResult: "no_result", view.NotJSON: "not_json", view.Repeated: "repeated_member", view.TooCostly: "too_costly",
}

// counters count what all views do.
type counters struct {
	builds, evaluations, found atomic.Uint64
	failures                   [view.Failures]atomic.Uint64
}

// evaluated counts one decision about a resource.
func (c *counters) evaluated(err error) {
	c.evaluations.Add(1)
	if f, failed := err.(view.Failure); failed {
		c.failures[f].Add(1)
	}
}

// Stats returns the figures.
func (v *Views) Stats() Stats {
	s := Stats{
		Bytes: v.holds(), MaxBytes: v.limits().MaxBytes, Builds: v.count.builds.Load(), Evaluations: v.count.evaluations.Load(), Found: v.count.found.Load(),
		Failures: map[string]uint64{},
	}
	for f, name := range failures {
		s.Failures[name] = v.count.failures[f].Load()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s.Views, s.Idle = v.number, v.idle.Len()
	return s
}

// Listed is a view in a list of views.
type Listed struct {
	Watch       string
	Definition  *view.Definition
	Resources   int
	Bytes       int64
	Subscribers int
}

// Largest returns the n views that hold the most, largest first: those of one watch, or of
// all if it has no name.
func (v *Views) Largest(n int, watch string) []Listed {
	largest := slices.SortedFunc(slices.Values(v.list(watch)), func(a, b Listed) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Watch, b.Watch), cmp.Compare(a.Definition.ID(), b.Definition.ID()))
	})
	return largest[:min(n, len(largest))]
}

func (v *Views) list(watch string) (out []Listed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for w, p := range v.watches {
		if watch != "" && w.Name() != watch {
			continue
		}
		for _, e := range p.views {
			if e.order != nil {
				out = append(out, e.listWindows(w.Name())...)
				continue
			}
			out = append(out, Listed{
				Watch: w.Name(), Definition: e.definition, Resources: e.watch.Snapshot().Count(), Bytes: e.bytes(), Subscribers: e.watch.Subscribers(),
			})
		}
	}
	return out
}
