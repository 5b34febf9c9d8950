package shard

import "github.com/watchtide/watchtide/gateway/internal/subscribers"

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

// answer adds the streams of a slice of the table, and returns the start of the
// next slice; negative: there is none.
func (s *shard) answer(r *subscribers.Query, from int32) (next int32) {
	to := min(from+subscribers.ReportedAtOnce, int32(len(s.table.slots)))
	var of *group // of the previous member
	wanted, lag := false, uint64(0)
	for at := from; at < to; at++ {
		c := &s.table.slots[at]
		switch c.kind {
		case vacantSlot:
			continue
		case unsharedSlot:
			of = nil
			l := s.unshared[at]
			wanted, lag = l.Wanted(r.Watch), l.Lag()
		case memberSlot:
			if g := s.groups[c.group]; g != of {
				of, wanted, lag = g, g.Wanted(r.Watch), g.Lag()
			}
		}
		if wanted {
			r.Add(subscribers.Candidate{Lag: lag, Stamp: c.stamp, Carrier: s, Key: s.table.key(at)})
		}
	}
	if int(to) == len(s.table.slots) {
		return -1
	}
	return to
}

// Lags implements subscribers.Carrier.
func (s *shard) Lags(l subscribers.Lags, from int32) (next int32) {
	next = -1
	s.ask(func() { next = s.addLags(l, from) })
	return next
}

// addLags adds the lags of a slice of the table. The members of a group have the same, so that
// most slots cost nothing.
func (s *shard) addLags(l subscribers.Lags, from int32) (next int32) {
	to := min(from+subscribers.ReportedAtOnce, int32(len(s.table.slots)))
	var of *group // of the previous member
	for at := from; at < to; at++ {
		switch c := &s.table.slots[at]; c.kind {
		case unsharedSlot:
			s.unshared[at].AddLags(l)
		case memberSlot:
			if g := s.groups[c.group]; g != of {
				of = g
				g.AddLags(l)
			}
		}
	}
	if int(to) == len(s.table.slots) {
		return -1
	}
	return to
}

// describe describes the candidates that are still open.
func (s *shard) describe(all []subscribers.Candidate, some []int, found []subscribers.Subscriber) {
	for _, i := range some {
		at, there := s.table.find(all[i].Key)
		if !there {
			continue
		}
		who := s.table.identity(at)
		if l := s.unshared[at]; l != nil {
			found[i] = l.Describe(l.Delivered)
		} else {
			found[i] = s.describeMember(at)
		}
		found[i].Identify(who)
		found[i].UserAgent = s.deps.Subscribers.Agent(who)
	}
}

func (s *shard) describeMember(at int32) subscribers.Subscriber {
	g := s.groups[s.table.slots[at].group]
	return g.Describe(s.table.visitors.at(at).differs.Plus(g.Delivered))
}
