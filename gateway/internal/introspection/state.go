package introspection

import (
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// State is the freshness of a watch in an interval: the worst one, which is the greatest number.
type State uint8

// The states of a watch. Missing: there is no sample. Idle: nobody follows it, and it runs on
// demand.
const (
	Missing State = iota
	Idle
	InSync
	Priming
	Resyncing
	Stale
)

var stateNames = [...]string{"", "idle", "in_sync", "priming", "resyncing", "stale"}

// String returns the name on the wire; empty for Missing.
func (s State) String() string { return stateNames[s] }

// stateOf returns the state of a watch over the time since the last sample, in which it was
// before.
func stateOf(w *watch.Watch, before State, since time.Time) State {
	status := w.Status()
	switch status.State {
	case stream.InSync:
		if before == InSync && !since.IsZero() && status.Since.After(since) {
			return Resyncing // it was not in sync for a moment in between
		}
		return InSync
	case stream.Resyncing:
		return Resyncing
	case stream.Stale:
		return Stale
	}
	if w.Upstream().Since.IsZero() && w.OnDemand() {
		return Idle
	}
	return Priming
}
