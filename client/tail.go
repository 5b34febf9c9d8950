package client

// Tail holds back the events of one watch until an id comes. The events after the
// newest id when a connection ends are dropped: the next connection repeats them,
// from a replica that may be behind, and would undo changes already applied. Owned
// by one goroutine.
type Tail struct {
	events []Event
}

// Take adds an event. It returns it immediately if it is a status with nothing
// held before it: the freshness of a watch may change without an id.
func (t *Tail) Take(e Event) []Event {
	if e.Type == "status" && len(t.events) == 0 {
		return []Event{e}
	}
	t.events = append(t.events, e)
	return nil
}

// Commit returns the held events: an id of their stream has come.
func (t *Tail) Commit() []Event {
	events := t.events
	t.events = nil
	return events
}

// Drop discards the held events: the connection is gone.
func (t *Tail) Drop() { t.events = nil }
