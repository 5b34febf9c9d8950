package gateway

import (
	"net/http"
	"net/url"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream/watch"
)

// overview lists the open streams, those that ended last, and the state of the
// upstreams.
type overview struct {
	Instance    string                                   `json:"instance"`
	Count       int                                      `json:"count"`
	Lag         introspection.LagCounts                  `json:"lag"`
	Subscribers []introspection.Subscriber               `json:"subscribers"`
	Next        string                                   `json:"next,omitempty"`
	Groups      []introspection.NamedGroup               `json:"groups,omitempty"`
	Others      *introspection.Figures                   `json:"others,omitempty"`
	Left        []introspection.Departure                `json:"left"`
	LeftReasons map[introspection.DepartureReason]uint64 `json:"left_reasons"`
	LeftMinutes []introspection.DepartureMinute          `json:"left_minutes"`
	Upstreams   []upstream                               `json:"upstreams"`
	Views       []listedView                             `json:"views"`
}

// listedView is a view that clients have asked for.
type listedView struct {
	introspection.View
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

// handleSubscribers serves the overview.
func (g *settings) handleSubscribers(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r, "watch", "limit", "after", "search", "application", "network", "transport", "principal", "client_id", "group", "sort")
	q, p := subscribersQuery(query, p)
	watches, p := g.upstreamsOf(query, p)
	if p != nil {
		problem.Write(w, p)
		return
	}
	writeJSON(w, g.overview(&q, watches))
}

// upstreamsOf returns the watches whose upstreams are listed.
func (g *settings) upstreamsOf(query url.Values, before *problem.Problem) ([]*watch.Watch, *problem.Problem) {
	if before != nil || !query.Has("watch") {
		return g.registry.Watches(), before
	}
	w, p := g.lookup.Known(query.Get("watch"))
	return []*watch.Watch{w}, p
}

func (g *settings) overview(r *introspection.Query, watches []*watch.Watch) overview {
	r.Ask(g.subscribers, g.shards.Carriers())
	out := overview{
		Instance: g.cfg.Instance, Count: r.Count, Lag: r.Lags.Counts(), Subscribers: r.List(g.subscribers), Next: r.Next().String(),
		Upstreams: []upstream{}, Views: []listedView{}, LeftMinutes: g.subscribers.DepartureMinutes(),
	}
	out.Groups, out.Others = r.Named(maxListedGroups)
	watch := r.Filter.Watch
	out.Left, out.LeftReasons = g.subscribers.Departures(watch)
	for _, w := range watches {
		out.Upstreams = append(out.Upstreams, upstreamOf(w))
	}
	for _, v := range g.views.Largest(maxListedViews, watch) {
		out.Views = append(out.Views, listedView{introspection.ViewOf(v.Watch, v.Definition).View(), v.Resources, v.Bytes, v.Subscribers})
	}
	return out
}

func upstreamOf(w *watch.Watch) upstream {
	stats := w.Stats()
	out := upstream{
		Watch: w.Name(), Source: w.SourceName(), Connected: w.Upstream().Connected,
		Reconnects: stats.Reconnects, Resyncs: stats.Resyncs, Incidents: []incident{},
	}
	for _, i := range w.Incidents() {
		out.Incidents = append(out.Incidents, incident{
			At: introspection.Instant(i.At), First: introspection.Instant(i.First), Times: i.Times,
			Kind: i.Kind, Reason: i.Reason, Detail: i.Detail,
		})
	}
	return out
}
