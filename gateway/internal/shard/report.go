package shard

import (
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// Report implements introspection.Carrier.
func (s *shard) Report(out *introspection.Slice, from int32) (next int32) {
	next = -1
	s.ask(func() { next = s.answer(out, from) })
	return next
}

// Detail implements introspection.Carrier.
func (s *shard) Detail(all []introspection.Candidate, some []int, found []introspection.Subscriber) {
	s.ask(func() { s.describe(all, some, found) })
}

// answer adds the streams of a slice of the table, and returns the start of the
// next slice; negative: there is none.
func (s *shard) answer(out *introspection.Slice, from int32) (next int32) {
	to := min(from+introspection.ReportedAtOnce, int32(len(s.table.slots)))
	r := reporter{out: out}
	for at := from; at < to; at++ {
		switch c := &s.table.slots[at]; c.kind {
		case vacantSlot:
			continue
		case unsharedSlot:
			l := s.unshared[at]
			r.turnTo(&l.Session)
			r.add(s, at, l.Delivered)
		case memberSlot:
			g := s.groups[c.group]
			r.turnTo(&g.Session)
			r.add(s, at, s.table.visitors.at(at).differs.Plus(g.Delivered))
		}
	}
	if int(to) == len(s.table.slots) {
		return -1
	}
	return to
}

// Lags implements introspection.Carrier.
func (s *shard) Lags(l introspection.WatchLags, from int32) (next int32) {
	next = -1
	s.ask(func() { next = s.addLags(l, from) })
	return next
}

// addLags adds the lags of a slice of the groups, whose members all have the same, or of a slice of
// the table, for the unshared streams. If groups come or go between two slices, a few streams may
// be left out.
func (s *shard) addLags(l introspection.WatchLags, from int32) (next int32) {
	groups := int32(len(s.groups))
	all, to := groups+int32(len(s.table.slots)), from+introspection.ReportedAtOnce
	for at := from; at < min(to, groups); at++ {
		if g := s.groups[at]; g != nil {
			g.AddLags(l)
		}
	}
	for at := max(from, groups); at < min(to, all); at++ {
		if slot := at - groups; s.table.slots[slot].kind == unsharedSlot {
			s.unshared[slot].AddLags(l)
		}
	}
	if to >= all {
		return -1
	}
	return to
}

// reporter fills a slice. Streams of one session share what they follow.
//
// Owned by one shard.
type reporter struct {
	out        *introspection.Slice
	of         *session.Session // of the previous stream
	lag        uint64
	first, end int32
}

// turnTo sets the session of the next streams.
func (r *reporter) turnTo(of *session.Session) {
	if r.of == of {
		return
	}
	r.of, r.lag = of, of.Lag()
	r.first, r.end = of.Report(r.out)
}

func (r *reporter) add(s *shard, at int32, d introspection.Delivered) {
	r.out.Add(introspection.Stream{
		Identity: s.table.identity(at), Delivered: d, Lag: r.lag, Transport: r.of.Transport(), Key: s.table.key(at),
	}, r.first, r.end)
}

// describe describes the candidates that are still open.
func (s *shard) describe(all []introspection.Candidate, some []int, found []introspection.Subscriber) {
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
		found[i].OfClient(s.deps.Subscribers.Client(who))
	}
}

func (s *shard) describeMember(at int32) introspection.Subscriber {
	g := s.groups[s.table.slots[at].group]
	return g.Describe(s.table.visitors.at(at).differs.Plus(g.Delivered))
}
