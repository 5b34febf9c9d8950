package gateway

import (
	"cmp"
	"slices"
)

// roll is a roll call of all open streams: how many there are, and which come first in
// the list of subscribers. Shards are asked in slices, so that a request for the list
// delays no stream for long: first about all streams for what decides the order, then
// about the listed ones for the rest. The caller does the sorting.
//
// Owned by the caller; by a shard while it answers.
type roll struct {
	watch string // only its streams; empty: all
	limit int

	count int
	best  []candidate // in order up to the limit
	full  bool        // streams after the last one are not listed
	last  candidate
}

// candidate is what decides a stream's place in the list: a stream of a shard, or one
// with its own goroutine.
type candidate struct {
	lag      uint64
	stamp    int64
	shard    *shard
	key      uint64 // in the shard
	standing *standing
}

// compare puts the stream with the most lag first, then the oldest.
func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(o.lag, c.lag), cmp.Compare(c.stamp, o.stamp))
}

// call asks all streams.
func (r *roll) call(g *Gateway) {
	r.best = make([]candidate, 0, r.limit+rolledAtOnce) // so that no shard has to grow it
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

// add counts a stream, and keeps it if it may be listed.
func (r *roll) add(c candidate) {
	r.count++
	if r.limit > 0 && (!r.full || c.compare(r.last) < 0) {
		r.best = append(r.best, c)
	}
}

// cut drops the streams that are not listed.
func (r *roll) cut() {
	slices.SortFunc(r.best, candidate.compare)
	if len(r.best) < r.limit || r.limit == 0 {
		return
	}
	r.best = r.best[:r.limit]
	r.full, r.last = true, r.best[r.limit-1]
}

// list describes the listed streams. It omits streams that have ended meanwhile.
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
		found[i].Lag = r.best[i].lag // this lag decided its place
	}
	return slices.DeleteFunc(found, func(s subscriber) bool { return s.ID == "" })
}
