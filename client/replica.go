package client

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Replica holds the state of one watch as a stream reports it: the resources,
// and how fresh they are. Owned by one goroutine.
type Replica struct {
	resources map[string]Resource // by ID
	ids       []string            // of resources, in order; nil: to be computed

	synced   bool // there was a complete snapshot since the last reset
	loading  bool // until end_of_snapshot: a snapshot, or what follows a resume, has not ended
	skipping bool // until the next bookmark or end_of_snapshot: the server said that it skips values
	state    string
	since    time.Time
	reason   string
	revision string
}

// NewReplica returns the replica of a watch whose state is still unknown.
func NewReplica() *Replica {
	return &Replica{resources: map[string]Resource{}, loading: true, state: "connecting"}
}

// Apply applies one event of the watch, or a hello. Unknown types change nothing.
func (r *Replica) Apply(e Event) {
	switch e.Type {
	case "hello":
		// What follows a resume is consistent again at its end_of_snapshot. A bookmark before
		// that is only progress.
		r.loading, r.skipping = true, false
		r.setState("in_sync", time.Time{}, "")
	case "reset":
		clear(r.resources)
		r.ids = nil
		r.synced, r.loading, r.skipping = false, true, false
		r.revision = "" // from here on, revisions may be of another order
	case "upsert":
		r.upsert(e.Resource)
	case "delete":
		r.delete(e.Resource)
	case "end_of_snapshot":
		r.synced, r.loading, r.skipping = true, false, false
		r.revision = e.Revision
	case "bookmark":
		r.skipping = false
		r.reached(e.Revision)
	case "status":
		r.setState(e.State, e.Since, e.Reason)
		r.skipping = r.skipping || e.State == "catching_up"
	}
}

// Disconnected records that nothing is known until the next hello.
func (r *Replica) Disconnected(since time.Time, reason string) {
	if r.state == "disconnected" {
		since = r.since // the same disconnection continues
	}
	r.setState("disconnected", since, reason)
}

func (r *Replica) setState(state string, since time.Time, reason string) {
	r.state, r.since, r.reason = state, since, reason
}

func (r *Replica) upsert(u Resource) {
	if _, known := r.resources[u.ID()]; !known {
		r.ids = nil
	}
	r.resources[u.ID()] = u
	r.reached(u.Revision)
}

func (r *Replica) delete(d Resource) {
	if _, known := r.resources[d.ID()]; known {
		delete(r.resources, d.ID())
		r.ids = nil
	}
	r.reached(d.Revision)
}

// reached records the revision of an event. It may be older than what was reported before: where
// deletes have no revision of their own, a delete may show that of the resource's last version.
func (r *Replica) reached(revision string) {
	if n := cmp.Compare(len(revision), len(r.revision)); n > 0 || n == 0 && revision > r.revision {
		r.revision = revision
	}
}

// Consistent reports whether the resources are exactly a state that the
// upstream had, as far as events with an ID have been applied.
func (r *Replica) Consistent() bool { return !r.loading && !r.skipping }

// Synced reports whether there was a complete snapshot since the last reset.
func (r *Replica) Synced() bool { return r.synced }

// Count returns the number of resources.
func (r *Replica) Count() int { return len(r.resources) }

// Revision returns the newest revision that was reported since the last reset; empty: none.
func (r *Replica) Revision() string { return r.revision }

// State returns the freshness: that of the watch, or connecting or
// disconnected. since is zero if unknown.
func (r *Replica) State() (state string, since time.Time, reason string) {
	return r.state, r.since, r.reason
}

// IDs returns the IDs of the resources, in order. The result must not be changed.
func (r *Replica) IDs() []string {
	if r.ids == nil {
		r.ids = slices.SortedFunc(maps.Keys(r.resources), CompareIDs)
	}
	return r.ids
}

// CompareIDs orders the IDs of resources as a person would: whole numbers by their
// size, before all others, which are in byte order.
func CompareIDs(a, b string) int {
	x, y := isNumber(a), isNumber(b)
	switch {
	case x && y && len(a) != len(b):
		return cmp.Compare(len(a), len(b))
	case x == y:
		return strings.Compare(a, b)
	case x:
		return -1
	}
	return 1
}

// isNumber reports whether an ID is a whole number, written without unneeded zeros.
func isNumber(id string) bool {
	for i := range len(id) {
		if id[i] < '0' || id[i] > '9' {
			return false
		}
	}
	return id == "0" || id != "" && id[0] != '0'
}

// Resource returns the resource with the ID.
func (r *Replica) Resource(id string) (Resource, bool) {
	u, ok := r.resources[id]
	return u, ok
}
