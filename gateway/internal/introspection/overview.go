package introspection

import (
	"net/http"
	"net/url"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream/watch"
)

// Overview lists the open streams, those that ended last, and the state of the
// upstreams.
type Overview struct {
	Instance    string                     `json:"instance"`
	Count       int                        `json:"count"`
	Lag         LagCounts                  `json:"lag"`
	Subscribers []Subscriber               `json:"subscribers"`
	Next        string                     `json:"next,omitempty"`
	Groups      []NamedGroup               `json:"groups,omitempty"`
	Others      *Figures                   `json:"others,omitempty"`
	Left        []Departure                `json:"left"`
	LeftReasons map[DepartureReason]uint64 `json:"left_reasons"`
	LeftMinutes []DepartureMinute          `json:"left_minutes"`
	Upstreams   []upstream                 `json:"upstreams"`
	Views       []listedView               `json:"views"`
}

// listedView is a view that clients have asked for.
type listedView struct {
	View
	Resources   int   `json:"resources"`
	Bytes       int64 `json:"bytes"`
	Subscribers int   `json:"subscribers"`
}

// maxListedViews is how many views are listed.
const maxListedViews = 20

// upstream is the state of one watch's upstream.
type upstream struct {
	Watch      string            `json:"watch"`
	Source     string            `json:"source"`
	Connected  bool              `json:"connected"`
	Reconnects map[string]uint64 `json:"reconnects"`
	Resyncs    map[string]uint64 `json:"resyncs"`
	Retained   *int64            `json:"retained_bytes,omitempty"` // nil: it is not known
	Incidents  []incident        `json:"incidents"`
}

// incident is a watch.Incident as it is served.
type incident struct {
	At     time.Time          `json:"at"`
	First  time.Time          `json:"first"`
	Times  int                `json:"times"`
	Kind   watch.IncidentKind `json:"kind"`
	Reason string             `json:"reason"`
	Detail string             `json:"detail,omitempty"`
}

// Subscribers serves the overview.
func (o *Operators) Subscribers(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r, "watch", "limit", "after", "search", "application", "network", "transport", "principal", "client_id", "group", "sort")
	q, p := subscribersQuery(query, p)
	watches, p := o.upstreamsOf(query, p)
	if p != nil {
		problem.Write(w, p)
		return
	}
	problem.WriteJSON(w, o.Overview(&q, watches))
}

// upstreamsOf returns the watches whose upstreams are listed.
func (o *Operators) upstreamsOf(query url.Values, before *problem.Problem) ([]*watch.Watch, *problem.Problem) {
	if before != nil || !query.Has("watch") {
		return o.Registry.Watches(), before
	}
	w, p := o.Lookup.Known(query.Get("watch"))
	return []*watch.Watch{w}, p
}

// Overview returns what a query selects, with the upstreams of some watches.
func (o *Operators) Overview(q *Query, watches []*watch.Watch) Overview {
	q.Ask(o.Streams, o.Carriers())
	out := Overview{
		Instance: o.Instance, Count: q.Count, Lag: q.Lags.Counts(), Subscribers: q.List(o.Streams), Next: q.Next().String(),
		Upstreams: []upstream{}, Views: []listedView{}, LeftMinutes: o.Streams.DepartureMinutes(),
	}
	out.Groups, out.Others = q.Named(MaxListedGroups)
	watch := q.Filter.Watch
	out.Left, out.LeftReasons = o.Streams.Departures(watch)
	for _, w := range watches {
		out.Upstreams = append(out.Upstreams, upstreamOf(w))
	}
	for _, v := range o.Views.Largest(maxListedViews, watch) {
		out.Views = append(out.Views, listedView{ViewOf(v.Watch, v.Definition).View(), v.Resources, v.Bytes, v.Subscribers})
	}
	return out
}

func upstreamOf(w *watch.Watch) upstream {
	stats := w.Stats()
	out := upstream{
		Watch: w.Name(), Source: w.SourceName(), Connected: w.Upstream().Connected,
		Reconnects: stats.Reconnects, Resyncs: stats.Resyncs, Incidents: []incident{},
	}
	if bytes, ok := w.RetainedBytes(); ok {
		out.Retained = &bytes
	}
	for _, i := range w.Incidents() {
		out.Incidents = append(out.Incidents, incident{
			At: Instant(i.At), First: Instant(i.First), Times: i.Times,
			Kind: i.Kind, Reason: i.Reason, Detail: i.Detail,
		})
	}
	return out
}
