package gateway

import (
	"slices"

	"github.com/watchtide/watchtide/gateway/internal/subscribers"
)

// Report implements subscribers.Carrier.
func (s *shard) Report(q *subscribers.Query, from int32) (next int32) {
	next = -1
	s.ask(func() { next = s.answer(q, from) })
	return next
}

// Detail implements subscribers.Carrier.
func (s *shard) Detail(all []subscribers.Candidate, some []int, found []subscribers.Subscriber) {
	s.ask(func() { s.describe(all, some, found) })
}

// answer adds the streams of a slice of the table, and returns where the next slice
// begins; negative: there is none.
func (s *shard) answer(r *subscribers.Query, from int32) (next int32) {
	to := min(from+subscribers.ReportedAtOnce, int32(len(s.table.slots)))
	of, wanted, lag := int32(vacant), false, uint64(0) // the group of the previous stream
	for at := from; at < to; at++ {
		c := &s.table.slots[at]
		switch {
		case c.group == vacant:
			continue
		case c.group == lonely:
			l := s.lones[at]
			wanted, lag = l.wanted(r.Watch), l.lag()
		case c.group != of:
			g := s.groups[c.group]
			wanted, lag = g.wanted(r.Watch), g.lag()
		}
		of = c.group
		if wanted {
			r.Add(subscribers.Candidate{Lag: lag, Stamp: c.stamp, Carrier: s, Key: s.table.key(at)})
		}
	}
	if int(to) == len(s.table.slots) {
		return -1
	}
	return to
}

// wanted reports whether a request for the streams of a watch, or of all, includes
// this one.
func (c *conversation) wanted(watch string) bool {
	return watch == "" || slices.ContainsFunc(c.watches, func(w watchChoice) bool { return w.name == watch })
}

// describe describes those of some candidates that are still there.
func (s *shard) describe(all []subscribers.Candidate, some []int, found []subscribers.Subscriber) {
	for _, i := range some {
		at, there := s.table.find(all[i].Key)
		if !there {
			continue
		}
		who := s.table.identity(at)
		if l := s.lones[at]; l != nil {
			found[i] = l.describe(l.delivered)
		} else {
			found[i] = s.describeMember(at)
		}
		found[i].Identify(who)
		found[i].UserAgent = s.deps.subscribers.Agent(who)
	}
}

func (s *shard) describeMember(at int32) subscribers.Subscriber {
	g := s.groups[s.table.slots[at].group]
	return g.describe(s.table.visitors.at(at).differs.Plus(g.delivered))
}
