package introspection

import (
	"cmp"
	"slices"
)

// Lags counts streams by their lag.
type Lags struct {
	Max   uint64
	Count [lagBuckets]int // by upper bound, see LagBounds
}

// LagBounds are the upper bounds of the lags that are counted together, inclusive. The last
// count is that of all above.
var LagBounds = [lagBuckets - 1]uint64{0, 9, 99, 999, 9999}

const lagBuckets = 6

// Add counts a stream.
func (l *Lags) Add(lag uint64) {
	l.Max = max(l.Max, lag)
	i, _ := slices.BinarySearch(LagBounds[:], lag)
	l.Count[i]++
}

func (l *Lags) join(o *Lags) {
	l.Max = max(l.Max, o.Max)
	for i, n := range o.Count {
		l.Count[i] += n
	}
}

// Group has the figures of streams with a common property.
type Group struct {
	Count     int
	Delivered Delivered
	Lags      Lags
	edges     []Edge // what they follow
	more      int    // what they follow besides
}

// Edge is how many streams of a group follow a part of a watch.
type Edge struct {
	Followed
	Count int
}

// maxEdges is how many parts of watches are counted apart for a group.
const maxEdges = 32

// Add counts a stream.
func (g *Group) Add(one *Stream) {
	g.Count++
	g.Delivered = g.Delivered.Plus(one.Delivered)
	g.Lags.Add(one.Lag)
}

// Follow counts what a stream follows.
func (g *Group) Follow(f Followed, n int) {
	i := slices.IndexFunc(g.edges, func(e Edge) bool { return e.Followed == f })
	switch {
	case i >= 0:
		g.edges[i].Count += n
	case len(g.edges) < maxEdges:
		g.edges = append(g.edges, Edge{f, n})
	default:
		g.more += n
	}
}

// Edges returns what the streams follow, and how many subscriptions are left out of it.
func (g *Group) Edges() (all []Edge, more int) { return g.edges, g.more }

func (g *Group) join(o *Group) {
	g.Count += o.Count
	g.Delivered = g.Delivered.Plus(o.Delivered)
	g.Lags.join(&o.Lags)
	for _, e := range o.edges {
		g.Follow(e.Followed, e.Count)
	}
	g.more += o.more
}

// GroupTable has the largest groups of streams by a key. Clients choose some of the keys, such
// as user agents, so it keeps a bounded number: when it is full, the smaller half of the groups
// joins the others. A group with many streams is missing only what was counted before it was large.
//
// The zero value is ready for use. Owned by the caller.
type GroupTable[K comparable] struct {
	groups map[K]*Group
	Others Group // the streams of all other groups
	Left   int   // how many groups have joined Others
}

// maxGroups is how many groups a table has at most.
const maxGroups = 4096

// Of returns the group of a key.
func (t *GroupTable[K]) Of(key K) *Group {
	g, known := t.groups[key]
	if known {
		return g
	}
	if t.groups == nil {
		t.groups = map[K]*Group{}
	}
	if len(t.groups) >= maxGroups {
		t.keep(maxGroups / 2)
	}
	g = &Group{}
	t.groups[key] = g
	return g
}

// Keyed is a group with its key.
type Keyed[K comparable] struct {
	Key K
	*Group
}

// Largest returns the n largest groups. All the others join Others.
func (t *GroupTable[K]) Largest(n int, compare func(a, b K) int) []Keyed[K] {
	t.keep(n)
	out := t.list()
	slices.SortFunc(out, func(a, b Keyed[K]) int { return cmp.Or(cmp.Compare(b.Count, a.Count), compare(a.Key, b.Key)) })
	return out
}

// keep keeps the n largest groups.
func (t *GroupTable[K]) keep(n int) {
	all := t.list()
	if len(all) <= n {
		return
	}
	slices.SortFunc(all, func(a, b Keyed[K]) int { return cmp.Compare(b.Count, a.Count) })
	for _, small := range all[n:] {
		t.Others.join(small.Group)
		t.Left++
		delete(t.groups, small.Key)
	}
}

func (t *GroupTable[K]) list() []Keyed[K] {
	out := make([]Keyed[K], 0, len(t.groups))
	for key, g := range t.groups {
		out = append(out, Keyed[K]{key, g})
	}
	return out
}
