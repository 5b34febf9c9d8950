package adapter

import "github.com/watchtide/watchtide/stream"

// Event is one event of a watch, on any transport.
type Event struct {
	Type      EventType
	Position  string          // of the watch, after this event; empty: none
	Resource  stream.Resource // of an Upsert; of a Delete, its key and revision
	Revision  uint64          // of an EndOfSnapshot or a Bookmark
	Count     uint64          // of an EndOfSnapshot
	Horizon   uint64          // of a Bookmark that reports an outage; 0: it does not
	Conflated uint64          // of a Bookmark before changes that may lack values: those up to it; 0: none
	State     stream.State    // of a Status; 0: one that a newer server may send
	Reason    string          // of a Status
}

// EventType is the type of an event.
type EventType uint8

// The types. Other is framing, or an event that a newer server may send.
const (
	Other EventType = iota
	Reset
	Upsert
	Delete
	EndOfSnapshot
	Bookmark
	Status
)

// changeRevision is the revision of a change that is a transaction of its own. A
// delete may have no revision of its own, or an old one.
func (e *Event) changeRevision(committed uint64) (revision uint64, ok bool) {
	switch e.Type {
	case Upsert:
		return e.Resource.Revision, true
	case Delete:
		return max(e.Resource.Revision, committed), true
	}
	return 0, false
}
