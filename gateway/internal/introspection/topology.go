package introspection

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// maxViews is how many views are listed.
const maxViews = 20

// Topology is how data flows: from the sources to the watches, to the views, and to the
// groups of subscribers.
type Topology struct {
	Instance   string           `json:"instance"`
	At         time.Time        `json:"at"`
	Sources    []TopologySource `json:"sources"`
	Watches    []TopologyWatch  `json:"watches"`
	Views      []TopologyView   `json:"views"`
	OtherViews *ViewFigures     `json:"other_views,omitempty"`
	Groups     []TopologyGroup  `json:"groups"`
	Others     *Others          `json:"others,omitempty"`
	All        Figures          `json:"all"`
}

// TopologySource is a source, with the connections of its watches.
type TopologySource struct {
	Name      string    `json:"name"`
	Type      string    `json:"type,omitempty"` // as in the configuration
	Watches   int       `json:"watches"`
	Connected int       `json:"connected"`          // how many of the watches are
	Since     time.Time `json:"since,omitzero"`     // of the longest outage
	Attempts  int       `json:"attempts,omitempty"` // since then
	Reason    string    `json:"reason,omitempty"`
}

// TopologyWatch is a watch, as a node.
type TopologyWatch struct {
	Name        string    `json:"name"`
	Source      string    `json:"source"`
	Template    string    `json:"template,omitempty"`
	By          string    `json:"by,omitempty"` // of a count of another watch: the paths of the fields, with commas between them
	State       string    `json:"state"`
	Since       time.Time `json:"since,omitzero"`
	Reason      string    `json:"reason,omitempty"`
	Resources   int       `json:"resources"`
	Bytes       int64     `json:"bytes"`
	Changes     uint64    `json:"changes"`
	Subscribers int       `json:"subscribers"`
}

// ViewFigures are those of several views together.
type ViewFigures struct {
	Views       int   `json:"views"`
	Resources   int   `json:"resources"`
	Bytes       int64 `json:"bytes"`
	Subscribers int   `json:"subscribers"`
}

// TopologyView is a view that clients have asked for.
type TopologyView struct {
	ID string `json:"id"`
	View
	Resources   int   `json:"resources"`
	Bytes       int64 `json:"bytes"`
	Subscribers int   `json:"subscribers"`
}

// TopologyGroup is a group of subscribers, with what it follows. It has the texts by which the census
// counted.
type TopologyGroup struct {
	Application string `json:"application,omitempty"`
	Network     string `json:"network,omitempty"`
	Transport   string `json:"transport,omitempty"`
	Principal   string `json:"principal,omitempty"`
	ClientID    string `json:"client_id,omitempty"`
	Figures
	Follows []TopologyEdge `json:"follows"`
}

// Others are the groups that are not listed.
type Others struct {
	Groups int `json:"groups"`
	Figures
	Follows []TopologyEdge `json:"follows"`
}

// TopologyEdge is how many subscribers of a group follow a watch, or a view of it.
type TopologyEdge struct {
	Watch string `json:"watch"`
	View  string `json:"view,omitempty"` // absent: the whole watch; "others": a view that is not listed
	Count int    `json:"count"`
}

// otherViews is the id of all views that are not listed.
const otherViews = "others"

// NewTopology returns the topology at a time.
func NewTopology(now time.Time, instance string, watches []*watch.Watch, all []views.Listed, c *Census) Topology {
	out := Topology{Instance: instance, At: Instant(now), Watches: []TopologyWatch{}, Sources: sourcesOf(watches)}
	for _, w := range watches {
		out.Watches = append(out.Watches, watchOf(w))
	}
	out.addGroups(c, out.addViews(all))
	return out
}

// addViews adds the largest views, and returns the ids of those that are listed. all has the
// largest first.
func (t *Topology) addViews(all []views.Listed) map[ViewRef]string {
	ids := map[ViewRef]string{}
	t.Views = []TopologyView{}
	listed := min(len(all), maxViews)
	for _, v := range all[:listed] {
		ref := ViewOf(v.Watch, v.Definition)
		ids[ref] = viewID(v)
		t.Views = append(t.Views, TopologyView{ids[ref], ref.View(), v.Resources, v.Bytes, v.Subscribers})
	}
	if listed < len(all) {
		t.OtherViews = &ViewFigures{}
	}
	for _, v := range all[listed:] {
		t.OtherViews.add(v)
	}
	return ids
}

// addGroups adds the largest groups of subscribers.
func (t *Topology) addGroups(c *Census, listed map[ViewRef]string) {
	t.All = c.All.Figures()
	t.Groups = []TopologyGroup{}
	for _, k := range c.Groups {
		t.Groups = append(t.Groups, groupOf(k, listed))
	}
	if c.Left > 0 {
		t.Others = &Others{c.Left, c.Others.Figures(), edgesOf(&c.Others, listed)}
	}
}

func groupOf(k Keyed[Kind], listed map[ViewRef]string) TopologyGroup {
	g := TopologyGroup{
		Application: k.Key.Application, Transport: k.Key.Transport, Principal: k.Key.Principal, ClientID: k.Key.ClientID,
		Figures: k.Figures(), Follows: edgesOf(k.Group, listed),
	}
	if g.Application != "" {
		g.Network = NetworkName(k.Key.Network)
	}
	return g
}

func watchOf(w *watch.Watch) TopologyWatch {
	status, s := w.Status(), w.Snapshot()
	out := TopologyWatch{
		Name: w.Name(), Source: w.SourceName(), State: status.State.String(), Resources: s.Count(), Bytes: s.Bytes(),
		Changes: w.Changes(), Subscribers: w.Subscribers(), By: strings.Join(w.CountedBy(), ","),
	}
	if !status.Since.IsZero() {
		out.Since = Instant(status.Since)
	}
	if status.State != stream.InSync {
		out.Reason = status.Full()
	}
	if t := w.Template(); t != nil {
		out.Template = t.Name()
	}
	return out
}

// sourcesOf returns the sources of the watches, in order of name.
func sourcesOf(all []*watch.Watch) []TopologySource {
	of := map[string]*TopologySource{}
	for _, w := range all {
		s := of[w.SourceName()]
		if s == nil {
			s = &TopologySource{Name: w.SourceName(), Type: w.SourceType()}
			of[s.Name] = s
		}
		s.add(w.Upstream())
	}
	out := []TopologySource{}
	for _, s := range of {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b TopologySource) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// add adds a watch. The longest outage counts.
func (s *TopologySource) add(u watch.Upstream) {
	s.Watches++
	if u.Connected {
		s.Connected++
		return
	}
	if u.Since.IsZero() || !s.Since.IsZero() && !u.Since.Before(s.Since) {
		return
	}
	s.Since, s.Attempts, s.Reason = Instant(u.Since), u.Attempts, u.LastError
}

func (r *ViewFigures) add(v views.Listed) {
	r.Views++
	r.Resources += v.Resources
	r.Bytes += v.Bytes
	r.Subscribers += v.Subscribers
}

// viewID returns a short name of a view, the same in each answer.
func viewID(v views.Listed) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(v.Watch + "\x00" + v.Definition.ID()))
	return strconv.FormatUint(h.Sum64(), 36)
}

// edgesOf returns what a group follows, in order of the watches.
func edgesOf(g *Group, listed map[ViewRef]string) []TopologyEdge {
	counts := map[TopologyEdge]int{}
	all, _ := g.Edges()
	for _, e := range all {
		edge := TopologyEdge{Watch: e.Watch}
		if e.View.of != nil { // counts of a view lead there
			edge.View = cmp.Or(listed[ViewOf(e.Watch, e.View.of)], otherViews)
		}
		counts[edge] += e.Count
	}
	out := []TopologyEdge{}
	for edge, n := range counts {
		edge.Count = n
		out = append(out, edge)
	}
	slices.SortFunc(out, func(a, b TopologyEdge) int {
		return cmp.Or(strings.Compare(a.Watch, b.Watch), strings.Compare(a.View, b.View))
	})
	return out
}
