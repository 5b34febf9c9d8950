package client

// Tail holds back the events of one watch until an id comes. What stands behind the
// newest id when a connection ends is dropped: the next connection brings it again,
// from a replica that may be behind, and would take back what was applied already.
// Owned by one goroutine.
type Tail struct {
	events []Event
}

// Take adds an event. It returns it at once if it is a status that nothing stands
// before: how fresh a watch is may change without an id.
func (t *Tail) Take(e Event) []Event {
	if e.Type == "status" && len(t.events) == 0 {
		return []Event{e}
	}
	t.events = append(t.events, e)
	return nil
}

// Commit returns the events that are held: an id of their stream has come.
func (t *Tail) Commit() []Event {
	events := t.events
	t.events = nil
	return events
}

// Drop forgets the events that are held: the connection is gone.
func (t *Tail) Drop() { t.events = nil }
