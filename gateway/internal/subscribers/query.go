package subscribers

import (
	"cmp"
	"slices"
)

const (
	// ReportedAtOnce is how many streams of a carrier are examined at once: before its
	// streams have their turn.
	ReportedAtOnce = 2048
	// describedAtOnce is how many of them are described at once.
	describedAtOnce = 128
)

// Carrier carries many streams in one goroutine, and reports on them.
//
// Its methods may be called from any goroutine.
type Carrier interface {
	// Report adds the matching streams of the slice that begins at from, and
	// returns the start of the next slice; negative: there is none.
	Report(q *Query, from int32) (next int32)
	// Detail describes the candidates that are still open, each at its index
	// among the candidates.
	Detail(all []Candidate, some []int, found []Subscriber)
	// Lags adds the lag of the streams of the slice that begins at from, and returns the
	// start of the next slice; negative: there is none.
	Lags(l Lags, from int32) (next int32)
}

// Query determines how many streams are open, and which come first in the list of
// subscribers. Carriers report in slices, so that a request for the list delays no
// stream for long: first about all streams for what decides the order, then about the
// listed ones for the rest.
//
// Owned by the caller; by a carrier while it answers.
type Query struct {
	Watch string // only its streams; empty: all
	Limit int

	Count int
	Best  []Candidate // in order up to the limit
	full  bool        // streams after the last one are not listed
	last  Candidate
}

// Candidate has the data that decides a stream's position in the list: a stream of a
// carrier, or one with its own goroutine.
type Candidate struct {
	Lag      uint64
	Stamp    int64
	Carrier  Carrier
	Key      uint64             // of the stream, for its carrier
	progress *PublishedProgress // nil: it has a carrier
}

// compare puts the stream with the most lag first, then the oldest.
func (c Candidate) compare(o Candidate) int {
	return cmp.Or(cmp.Compare(o.Lag, c.Lag), cmp.Compare(c.Stamp, o.Stamp))
}

// Ask asks all streams: those with their own goroutine, and those of the carriers.
func (q *Query) Ask(all *List, carriers []Carrier) {
	q.Best = make([]Candidate, 0, q.Limit+ReportedAtOnce) // so that no carrier has to grow it
	for _, one := range all.Standalone() {
		if one.follows(q.Watch) {
			q.Add(Candidate{Lag: one.lag(), Stamp: one.who.Stamp, progress: one})
		}
	}
	q.cut()
	for _, c := range carriers {
		for from := int32(0); from >= 0; q.cut() {
			from = c.Report(q, from)
		}
	}
}

// Add counts a stream, and keeps it if it may be listed.
func (q *Query) Add(c Candidate) {
	q.Count++
	if q.Limit > 0 && (!q.full || c.compare(q.last) < 0) {
		q.Best = append(q.Best, c)
	}
}

// cut drops the streams that are not listed.
func (q *Query) cut() {
	slices.SortFunc(q.Best, Candidate.compare)
	if len(q.Best) < q.Limit || q.Limit == 0 {
		return
	}
	q.Best = q.Best[:q.Limit]
	q.full, q.last = true, q.Best[q.Limit-1]
}

// List describes the listed streams. It omits streams that have ended meanwhile.
func (q *Query) List(all *List) []Subscriber {
	found := make([]Subscriber, len(q.Best))
	of := map[Carrier][]int{}
	for i, c := range q.Best {
		if c.progress == nil {
			of[c.Carrier] = append(of[c.Carrier], i)
			continue
		}
		found[i] = c.progress.subscriber()
		found[i].UserAgent = all.agentOf(c.progress)
	}
	for c, listed := range of {
		for some := range slices.Chunk(listed, describedAtOnce) {
			c.Detail(q.Best, some, found)
		}
	}
	for i := range found {
		found[i].Lag = q.Best[i].Lag // this lag decided its place
	}
	return slices.DeleteFunc(found, func(s Subscriber) bool { return s.ID == "" })
}
