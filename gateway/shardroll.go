package gateway

import "slices"

const (
	// rolledAtOnce is how many connections of a shard are examined before its streams
	// have their turn.
	rolledAtOnce = 2048
	// describedAtOnce is how many of them are described at once.
	describedAtOnce = 128
)

// answer adds the streams of a slice of the table, and returns where the next slice
// begins; negative: there is none.
func (s *shard) answer(r *roll, from int32) (next int32) {
	to := min(from+rolledAtOnce, int32(len(s.table.slots)))
	of, wanted, lag := int32(vacant), false, uint64(0) // the group of the previous stream
	for at := from; at < to; at++ {
		c := &s.table.slots[at]
		switch {
		case c.group == vacant:
			continue
		case c.group == lonely:
			l := s.lones[at]
			wanted, lag = l.wanted(r.watch), l.lag()
		case c.group != of:
			g := s.groups[c.group]
			wanted, lag = g.wanted(r.watch), g.lag()
		}
		of = c.group
		if wanted {
			r.add(candidate{lag: lag, stamp: c.stamp, shard: s, key: s.table.key(at)})
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
func (s *shard) describe(all []candidate, some []int, found []subscriber) {
	for _, i := range some {
		at, there := s.table.find(all[i].key)
		if !there {
			continue
		}
		who := s.table.identity(at)
		if l := s.lones[at]; l != nil {
			found[i] = l.describe(l.delivered)
		} else {
			found[i] = s.describeMember(at)
		}
		found[i].identify(who)
		found[i].UserAgent = s.deps.subscribers.agent(who)
	}
}

func (s *shard) describeMember(at int32) subscriber {
	g := s.groups[s.table.slots[at].group]
	return g.describe(s.table.visitors.at(at).differs.plus(g.delivered))
}
