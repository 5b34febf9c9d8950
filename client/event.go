package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// EventType is what an event says.
type EventType string

// The types of events. A newer server may send others, which change nothing.
const (
	Hello         EventType = "hello"
	Reset         EventType = "reset"
	Upsert        EventType = "upsert"
	Delete        EventType = "delete"
	EndOfSnapshot EventType = "end_of_snapshot"
	Bookmark      EventType = "bookmark"
	Status        EventType = "status"
	Goodbye       EventType = "goodbye"
)

// State is how fresh what a client has of a watch is.
type State string

// The states that a server reports.
const (
	// Priming: the first complete snapshot has not arrived at the server yet.
	Priming State = "priming"
	// InSync: what is served is what the upstream has.
	InSync State = "in_sync"
	// Resyncing: the upstream is back; what changed meanwhile is being loaded.
	Resyncing State = "resyncing"
	// Stale: the upstream is lost, or behind what was already served.
	Stale State = "stale"
	// CatchingUp: this client fell so far behind that values are skipped.
	CatchingUp State = "catching_up"
)

// The states that the client adds.
const (
	// Connecting: the first connection is not open yet.
	Connecting State = "connecting"
	// Offline: the connection is lost; the next one continues where it ended.
	Offline State = "offline"
	// Closed: the stream has ended for good.
	Closed State = "closed"
)

// Reason is why there is a reset or a goodbye. That of a status is a sentence for a person.
type Reason string

// The reasons for a reset.
const (
	ResetInitial         Reason = "initial"
	ResetExpired         Reason = "expired"
	ResetAhead           Reason = "ahead"
	ResetEpochChanged    Reason = "epoch_changed"
	ResetInvalidPosition Reason = "invalid_position"
)

// The reasons for a goodbye.
const (
	GoodbyeDraining      Reason = "draining"
	GoodbyeMaxAge        Reason = "max_age"
	GoodbyeOverloaded    Reason = "overloaded"
	GoodbyeTokenExpired  Reason = "token_expired"
	GoodbyeRevoked       Reason = "revoked"
	GoodbyeWatchRemoved  Reason = "watch_removed"
	GoodbyeWatchReplaced Reason = "watch_replaced"
	GoodbyeComplete      Reason = "complete"
)

// Modes of a watch in a stream, as hello has them.
const (
	ModeSnapshot = "snapshot"
	ModeResume   = "resume"
)

var (
	// ErrInvalid means that the server sent what the protocol does not allow, or too large an event.
	ErrInvalid = errors.New("the server sent something invalid")
	// ErrStalled means that nothing has come for too long, not even a heartbeat.
	ErrStalled = errors.New("the server stalled")
)

// Event is one event of a stream.
type Event struct {
	Type EventType `json:"type"`
	// Watch is the name of the watch; empty for hello, goodbye, and the state Offline.
	Watch string `json:"watch"`
	// Stream is set for hello if the stream has a name, which only its client is told.
	Stream string `json:"stream"`
	Resource

	// Reason is set for reset, status and goodbye.
	Reason Reason `json:"reason"`
	// State and Since are set for status.
	State State     `json:"state"`
	Since time.Time `json:"since"`
	// Count and Resumed are set for end_of_snapshot.
	Count   int  `json:"count"`
	Resumed bool `json:"resumed"`
	// Total is set for end_of_snapshot and bookmark of a window: the number of resources that it is a
	// window of.
	Total int `json:"total"`
	// Before is how many of them come before the window. Next is the After of what comes next; empty:
	// nothing does.
	Before int    `json:"before"`
	Next   string `json:"next"`
	// Move is set for the first end_of_snapshot or bookmark after a move of the window: the number of the
	// newest move in the stream that it includes.
	Move uint64 `json:"move"`
	// Left is set for a delete of a resource that is still there after that change, but not in the window any more.
	// It is not set where a stream resumes, catches up or has a maximal rate, as it is not known then.
	Left bool `json:"left"`
	// Verify is set for an end_of_snapshot of a stream that resumes by digest: what was sent may not
	// be all that differs.
	Verify bool `json:"verify"`
	// Digest is set for end_of_snapshot and bookmark in a stream with digests, where the client has
	// exactly the state with that digest; empty: it is not known.
	Digest string `json:"digest"`
	// Horizon is set for a bookmark that reports an outage; empty: it does not.
	Horizon string `json:"horizon"`
	// Conflated is set for a bookmark before changes, up to this revision, of which values may
	// be missing. Empty: none is.
	Conflated string `json:"conflated"`
	// RetryMS is set for goodbye, and for the state Offline.
	RetryMS int64 `json:"retry_ms"`
	// HeartbeatMS and Watches are set for hello.
	HeartbeatMS int64        `json:"heartbeat_ms"`
	Watches     []HelloWatch `json:"watches"`

	// Data is the event as received: one line of JSON. It must not be changed.
	Data []byte `json:"-"`
	// ID is the position after this event; empty if the event has none. An
	// event with an ID ends a flush between two transactions of the upstream,
	// or is inside a snapshot.
	ID string `json:"-"`

	// Err and Wait are set for the state Offline: why the connection ended, and the time until the
	// next attempt.
	Err  error         `json:"-"`
	Wait time.Duration `json:"-"`
}

// HelloWatch is one watch of a stream.
type HelloWatch struct {
	Watch string `json:"watch"`
	Mode  string `json:"mode"` // ModeSnapshot or ModeResume
}

// parseEvent reads the data of an event. Its type must match the event
// field, so that a stream garbled on the way is noticed.
func parseEvent(name EventType, data []byte) (Event, error) {
	if bytes.ContainsAny(data, "\r\n") {
		// Several fields data. Without the line breaks, it is what follows one.
		data = oneLine(data)
	}
	if name == Upsert || name == Delete {
		if e, ok := quickChange(name, data); ok {
			return e, nil
		}
	}
	var e Event
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("%w: the data of a %s event is not JSON: %w", ErrInvalid, name, err)
	}
	if e.Type != name {
		return e, fmt.Errorf("%w: the data of a %s event has the type %q", ErrInvalid, name, e.Type)
	}
	e.Data = data
	return e, nil
}
