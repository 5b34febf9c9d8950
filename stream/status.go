package stream

import (
	"cmp"
	"time"
)

// State is the freshness of a watch, or of one subscriber.
type State uint8

// The states of a watch, and CatchingUp, which only a subscriber has.
const (
	// Priming: the first complete snapshot has not arrived yet.
	Priming State = iota + 1
	// InSync: what is served is what the upstream has.
	InSync
	// Resyncing: the upstream is back; what changed meanwhile is being loaded.
	Resyncing
	// Stale: the upstream is lost, or behind what was already served.
	Stale
	// CatchingUp: this subscriber fell so far behind that values are skipped.
	CatchingUp
)

var stateNames = [...]string{
	Priming:    "priming",
	InSync:     "in_sync",
	Resyncing:  "resyncing",
	Stale:      "stale",
	CatchingUp: "catching_up",
}

// String returns the name on the wire, for instance "in_sync".
func (s State) String() string {
	if int(s) < len(stateNames) && stateNames[s] != "" {
		return stateNames[s]
	}
	return "unknown"
}

// ParseState parses a name as on the wire; false for an unknown one.
func ParseState(name string) (State, bool) {
	for s, n := range stateNames {
		if n != "" && n == name {
			return State(s), true
		}
	}
	return 0, false
}

// Status is the freshness of a watch.
type Status struct {
	State State
	// Since is when the state began. For Resyncing and Stale it is when the
	// watch was last in sync, so that a flapping upstream does not look fresh.
	Since time.Time
	// Reason is one sentence for a person; empty for InSync. Every subscriber gets
	// it, so it names no address, file or other detail of the upstream.
	Reason string
	// Detail is the full reason, for operators: the text of the error, or what the
	// upstream says. Empty where Reason says everything.
	Detail string
}

// Full returns everything that is known about the reason, for operators.
func (s Status) Full() string { return cmp.Or(s.Detail, s.Reason) }
