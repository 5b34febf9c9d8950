package gateway

import (
	"cmp"
	"slices"
)

// roll is a call of all open streams: how many there are, and which stand first in
// the list of subscribers. Shards are asked in slices, so that no stream waits for
// long because somebody looks: first for what decides the order, of all streams,
// then for the rest, of those that are listed. Sorting is left to who asks.
//
// Owned by who asks; by a shard while it answers.
type roll struct {
	watch string // only its streams; empty: all
	limit int

	count int
	best  []candidate // in order up to the limit
	full  bool        // who stands behind the last one is not listed
	last  candidate
}

// candidate is what of a stream decides where it stands: one of a shard, or one
// that has a goroutine of its own.
type candidate struct {
	lag      uint64
	stamp    int64
	shard    *shard
	key      uint64 // in the shard
	standing *standing
}

// compare puts who lags most first, then who is oldest.
func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(o.lag, c.lag), cmp.Compare(c.stamp, o.stamp))
}

// call asks all.
func (r *roll) call(g *Gateway) {
	r.best = make([]candidate, 0, r.limit+rolledAtOnce) // no shard makes room for them
	for _, one := range g.subscribers.standing() {
		if one.follows(r.watch) {
			r.add(candidate{lag: one.lag(), stamp: one.who.stamp, standing: one})
		}
	}
	r.cut()
	if g.shards == nil {
		return
	}
	for _, s := range g.shards.all {
		for from := int32(0); from >= 0; r.cut() {
			next := int32(-1)
			s.ask(func() { next = s.answer(r, from) })
			from = next
		}
	}
}

// add counts one, and keeps it if it may be listed.
func (r *roll) add(c candidate) {
	r.count++
	if r.limit > 0 && (!r.full || c.compare(r.last) < 0) {
		r.best = append(r.best, c)
	}
}

// cut forgets those that are not listed.
func (r *roll) cut() {
	slices.SortFunc(r.best, candidate.compare)
	if len(r.best) < r.limit || r.limit == 0 {
		return
	}
	r.best = r.best[:r.limit]
	r.full, r.last = true, r.best[r.limit-1]
}

// list describes those that are listed. Who has left meanwhile is left out.
func (r *roll) list(g *Gateway) []subscriber {
	found := make([]subscriber, len(r.best))
	ofShard := map[*shard][]int{}
	for i, c := range r.best {
		if c.standing == nil {
			ofShard[c.shard] = append(ofShard[c.shard], i)
			continue
		}
		found[i] = c.standing.subscriber()
		found[i].UserAgent = g.subscribers.agentOf(c.standing)
	}
	for s, all := range ofShard {
		for some := range slices.Chunk(all, describedAtOnce) {
			s.ask(func() { s.describe(r.best, some, found) })
		}
	}
	for i := range found {
		found[i].Lag = r.best[i].lag // that is why it stands here
	}
	return slices.DeleteFunc(found, func(s subscriber) bool { return s.ID == "" })
}
