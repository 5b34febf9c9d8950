package introspection

import "strings"

// Figures are those of several streams together.
type Figures struct {
	Count   int       `json:"count"`
	Events  uint64    `json:"events"`
	Bytes   uint64    `json:"bytes"`
	Skipped uint64    `json:"skipped"`
	Lag     LagCounts `json:"lag"`
}

// LagCounts are how many streams are how far behind.
type LagCounts struct {
	Max     uint64      `json:"max"`
	Buckets []LagBucket `json:"buckets"`
}

// LagBucket is how many streams have a lag up to a bound, and above that of the bucket before.
type LagBucket struct {
	UpTo  *uint64 `json:"up_to,omitempty"` // nil: without a bound
	Count int     `json:"count"`
}

// Figures returns the figures of the group.
func (g *Group) Figures() Figures {
	return Figures{Count: g.Count, Events: g.Delivered.Events, Bytes: g.Delivered.Bytes, Skipped: g.Delivered.Skipped, Lag: g.Lags.Counts()}
}

// Counts returns the counts with their bounds.
func (l *Lags) Counts() LagCounts {
	out := LagCounts{Max: l.Max}
	for i, n := range l.Count {
		b := LagBucket{Count: n}
		if i < len(LagBounds) {
			b.UpTo = &LagBounds[i]
		}
		out.Buckets = append(out.Buckets, b)
	}
	return out
}

// NamedGroup is a group of streams with one property in common.
type NamedGroup struct {
	Name string `json:"name"`
	Figures
}

// Named returns the largest groups of the query, and the figures of those that are left out; nil:
// none are.
func (q *Query) Named(groups int) (listed []NamedGroup, others *Figures) {
	if q.By == "" {
		return nil, nil
	}
	listed = []NamedGroup{}
	for _, g := range q.Groups.Largest(groups, strings.Compare) {
		listed = append(listed, NamedGroup{g.Key, g.Figures()})
	}
	if q.Groups.Left > 0 {
		rest := q.Groups.Others.Figures()
		others = &rest
	}
	return listed, others
}
