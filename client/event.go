package client

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Event is one event of a stream.
type Event struct {
	Type  string `json:"type"`
	Watch string `json:"watch"`
	Resource

	// Reason is set for reset, status and goodbye.
	Reason string `json:"reason"`
	// State and Since are set for status.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Count and Resumed are set for end_of_snapshot.
	Count   int  `json:"count"`
	Resumed bool `json:"resumed"`
	// Horizon is set for a bookmark that reports an outage; empty: it does not.
	Horizon string `json:"horizon"`
	// Conflated is set for a bookmark before changes, up to this revision, of which values may
	// be missing. Empty: none is.
	Conflated string `json:"conflated"`
	// RetryMS is set for goodbye.
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
}

// HelloWatch is one watch of a stream.
type HelloWatch struct {
	Watch string `json:"watch"`
	Mode  string `json:"mode"` // snapshot or resume
}

// parseEvent reads the data of an event. Its type must match the event
// field, so that a stream garbled on the way is noticed.
func parseEvent(name string, data []byte) (Event, error) {
	if !stream.OneLine(data) {
		// Several fields data. Without the line breaks, it is what follows one.
		if compact, ok := stream.CompactJSON(data); ok {
			data = compact
		}
	}
	if name == "upsert" || name == "delete" {
		if e, ok := quickChange(name, data); ok {
			return e, nil
		}
	}
	var e Event
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("%w: the data of a %s event is not JSON: %w", stream.ErrInvalid, name, err)
	}
	if e.Type != name {
		return e, fmt.Errorf("%w: the data of a %s event has the type %q", stream.ErrInvalid, name, e.Type)
	}
	e.Data = data
	return e, nil
}
