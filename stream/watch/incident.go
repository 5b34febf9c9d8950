package watch

import "time"

// IncidentKind is what happened to the connection to an upstream.
type IncidentKind string

// The kinds of incidents.
const (
	// IncidentReconnect: a connection ended, or could not be made.
	IncidentReconnect IncidentKind = "reconnect"
	// IncidentResync: a complete snapshot was taken over.
	IncidentResync IncidentKind = "resync"
)

// Incident is something that happened to the connection to an upstream, once or
// several times in a row.
type Incident struct {
	// At is when it last happened.
	At time.Time
	// First is when the first of those in a row happened.
	First time.Time
	// Times is how often it happened.
	Times int
	Kind  IncidentKind
	// Reason is a key of Stats.Reconnects or of Stats.Resyncs.
	Reason string
	// Detail is the text of the error; empty where there was none.
	Detail string
}

// maxIncidents is how many incidents a watch remembers.
const maxIncidents = 100

// recordIncident records an incident. Repetitions in a row count as one: an upstream that is
// unreachable for a day must not push out how that began.
func (o *published) recordIncident(kind IncidentKind, reason, detail string) {
	now := time.Now()
	one := Incident{At: now, First: now, Times: 1, Kind: kind, Reason: reason, Detail: detail}
	before := o.recordedIncidents()
	if len(before) > 0 && before[0].repeats(one) {
		one.First, one.Times = before[0].First, before[0].Times+1
		before = before[1:]
	}
	after := append(make([]Incident, 0, len(before)+1), one)
	after = append(after, before[:min(len(before), maxIncidents-1)]...)
	o.incidents.Store(&after)
}

func (i Incident) repeats(o Incident) bool {
	return i.Kind == o.Kind && i.Reason == o.Reason && i.Detail == o.Detail
}

// recordedIncidents returns the incidents, newest first. They must not be modified.
func (o *published) recordedIncidents() []Incident {
	if all := o.incidents.Load(); all != nil {
		return *all
	}
	return nil
}
