package stream

import "time"

// EventType is the type of an event on the wire.
type EventType uint8

// The eight event types of the protocol. A correct client needs four lines:
// Reset clears, Upsert puts, Delete removes, EndOfSnapshot says "now
// consistent: render".
const (
	Hello EventType = iota + 1
	Reset
	Upsert
	Delete
	EndOfSnapshot
	Bookmark
	StatusChange
	Goodbye
)

var eventNames = [...]string{
	Hello:         "hello",
	Reset:         "reset",
	Upsert:        "upsert",
	Delete:        "delete",
	EndOfSnapshot: "end_of_snapshot",
	Bookmark:      "bookmark",
	StatusChange:  "status",
	Goodbye:       "goodbye",
}

// String returns the name on the wire, for instance "end_of_snapshot".
func (t EventType) String() string {
	if int(t) < len(eventNames) && eventNames[t] != "" {
		return eventNames[t]
	}
	return "unknown"
}

// ResetReason is why a full snapshot follows.
type ResetReason string

// The reasons for a full snapshot.
const (
	// ResetInitial: the subscriber came without a position.
	ResetInitial ResetReason = "initial"
	// ResetExpired: the position is older than the history.
	ResetExpired ResetReason = "expired"
	// ResetAhead: the position is newer than what this replica reached within a
	// bounded wait.
	ResetAhead ResetReason = "ahead"
	// ResetEpochChanged: the position belongs to another revision order.
	ResetEpochChanged ResetReason = "epoch_changed"
	// ResetInvalidPosition: the position could not be read.
	ResetInvalidPosition ResetReason = "invalid_position"
)

// Event is one event of one watch as a value. The bytes on the wire are made once,
// when a change enters the log (see log.Batch). An Event is for callers that need the
// fields: gRPC, tests, a log of a log.
type Event struct {
	Type  EventType
	Watch string

	// Resource is set for Upsert; for Delete only its Key and Revision are. Value
	// aliases the log and must not be modified.
	Resource Resource

	// Unseen is set for a Delete of a resource that this log did not have. Readers from another
	// replica may have it.
	Unseen bool

	// Left is set for a Delete of a resource that only left a window, and is still in the view.
	Left bool

	// Reason is set for Reset and StatusChange.
	Reason string

	// Revision is set for EndOfSnapshot and Bookmark.
	Revision uint64
	// Count is the number of resources, set for EndOfSnapshot.
	Count int
	// Window is set for EndOfSnapshot and Bookmark of a window. Total is the number of resources that
	// it is a window of.
	Window bool
	Total  int
	// Before is how many of them come before it. Next is the cursor of its last resource; empty: none
	// comes after it.
	Before int
	Next   string
	// Move is the number of the newest move of the window that the subscriber has with the EndOfSnapshot or
	// Bookmark; 0: none that it was not told of.
	Move uint64
	// Resumed is set for the EndOfSnapshot that says "caught up".
	Resumed bool
	// Verify is set for the EndOfSnapshot of which the subscriber must find out whether it has that
	// state.
	Verify bool
	// Digest is set for EndOfSnapshot and Bookmark if the subscriber asked for it, and has exactly
	// the state with that digest then. Empty: it did not, or that is not known.
	Digest string
	// Skipped is set for the Bookmark after a catch-up: changes that this
	// subscriber did not see one by one.
	Skipped uint64
	// Deletes is set for the EndOfSnapshot of a snapshot that began with deletes, for a subscriber
	// that asked for them. Those after Horizon are all there.
	Deletes bool
	// Horizon is set for the Bookmark that precedes the changes after an outage: no
	// position of the watch below it can be resumed. See RaiseHorizon.
	Horizon uint64
	// Conflated is set for the Bookmark that precedes changes which may lack values: those
	// up to this revision. See Conflater.
	Conflated uint64

	// State and Since are set for StatusChange.
	State State
	Since time.Time
}
