package watch

import (
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

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

// cause is why a watch is not in sync: reason for every subscriber, detail for
// operators.
type cause struct{ reason, detail string }

// publicCause is a cause that may be shown to the public.
func publicCause(reason string) cause { return cause{reason: reason} }

// upstreamCause is the cause of a watch whose upstream reports that it is itself not
// in sync. The reason that the upstream gives may name its own upstream.
func upstreamCause(up stream.Status) cause {
	return cause{"the upstream says that it is " + up.State.String(), "the upstream says: " + up.Reason}
}

// maxDetail bounds a text of an upstream, in bytes. Logs, statuses, incidents and the
// answers to operators repeat it.
const maxDetail = 1 << 10

// upstreamText returns a text as it may be kept: an upstream wrote some of it, and some
// may be what Config.Hide hides. Every text of a source passes through here, and nowhere
// else into a watch.
func (in *ingest) upstreamText(text string) string { return upstreamText(&in.config, text) }

func upstreamText(c *Config, text string) string {
	text = c.Hide(text)
	const cut = "…"
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail-len(cut)], "") + cut
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// reasons are the texts for subscribers about a lost upstream, by the keys of
// Stats.Reconnects.
var reasons = map[string]string{
	"ended":       "the upstream ended the stream",
	"memory":      "too large for the memory ceiling",
	"stalled":     "the upstream stalled",
	"invalid":     "the upstream sent something invalid",
	"order":       "the upstream went back in revision",
	"behind":      "the upstream is behind what was served already",
	"unresumable": "the upstream cannot go on from the last revision",
	"error":       "the upstream is unreachable or refuses the watch",
}
