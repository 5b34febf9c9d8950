package introspection

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
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
	// Report adds the streams of the slice that begins at from, and returns the start
	// of the next slice; negative: there is none.
	Report(to *Slice, from int32) (next int32)
	// Detail describes the candidates that are still open, each at its index
	// among the candidates.
	Detail(all []Candidate, some []int, found []Subscriber)
	// Lags adds the lag of the streams of the slice that begins at from, and returns the
	// start of the next slice; negative: there is none.
	Lags(l WatchLags, from int32) (next int32)
}

// Query determines how many streams are open, and which come first in the list of
// subscribers. Carriers report in slices, so that a request for the list delays no
// stream for long: first about all streams for what decides the order, then about the
// listed ones for the rest.
//
// Owned by the caller.
type Query struct {
	Filter Filter
	Order  Order
	By     Property // groups are counted by it; empty: none are
	After  Place    // the list continues after it; the zero value: it begins
	Limit  int

	Count  int
	Lags   Lags
	Groups GroupTable[string]
	Best   []Candidate // in order up to the limit
	full   bool        // streams after the last one are not listed
	more   bool        // there are such streams
	last   Candidate
}

// Order is the order of the list of subscribers.
type Order string

// The orders.
const (
	ByLag Order = "lag"   // the most lag first, then the oldest
	ByAge Order = "since" // the oldest first; no stream changes its place
)

// Orders are all of them.
var Orders = []Order{ByLag, ByAge}

// rank returns what comes before the age of a stream, the highest first.
func (o Order) rank(one *Stream) uint64 {
	if o == ByAge {
		return 0
	}
	return one.Lag
}

// Candidate has the data that decides a stream's position in the list: a stream of a
// carrier, or one with its own goroutine.
type Candidate struct {
	Lag      uint64
	rank     uint64 // see Order.rank
	Stamp    int64
	Carrier  Carrier
	Key      uint64             // of the stream, for its carrier
	progress *PublishedProgress // nil: it has a carrier
}

// Place is a place in the list of subscribers, in one order. The zero value is its beginning.
type Place struct {
	Order Order // ByLag or ByAge
	Rank  uint64
	Stamp int64
}

func (p Place) before() Candidate { return Candidate{rank: p.Rank, Stamp: p.Stamp} }

// String returns the text that ParsePlace parses; empty for the zero value.
func (p Place) String() string {
	if p == (Place{}) {
		return ""
	}
	stamp := strconv.FormatInt(p.Stamp, 36)
	if p.Order == ByAge {
		return stamp
	}
	return strconv.FormatUint(p.Rank, 36) + "." + stamp
}

// ParsePlace parses a place. It returns false if the text is not that of a place.
func ParsePlace(text string) (Place, bool) {
	p := Place{Order: ByAge}
	rank, stamp, ranked := strings.Cut(text, ".")
	var wrong error
	if ranked {
		p.Order = ByLag
		p.Rank, wrong = strconv.ParseUint(rank, 36, 64)
	} else {
		stamp = text
	}
	s, invalid := strconv.ParseInt(stamp, 36, 64)
	p.Stamp = s
	return p, wrong == nil && invalid == nil && p.String() == text
}

// compare puts the stream with the highest rank first, then the oldest.
func (c Candidate) compare(o Candidate) int {
	return cmp.Or(cmp.Compare(o.rank, c.rank), cmp.Compare(c.Stamp, o.Stamp))
}

// Ask asks all streams.
func (q *Query) Ask(all *List, carriers []Carrier) {
	q.Best = make([]Candidate, 0, q.Limit+ReportedAtOnce)
	Walk(all, carriers, q.visit)
}

func (q *Query) visit(s *Slice, clients []Client) {
	for i := range s.Streams {
		if one := &s.Streams[i]; q.Filter.accepts(s, one, &clients[i]) {
			q.count(s, one, &clients[i])
			q.add(Candidate{Lag: one.Lag, rank: q.Order.rank(one), Stamp: one.Stamp, Carrier: one.carrier, Key: one.Key, progress: one.progress})
		}
	}
	q.cut()
}

// count adds a stream to the figures of all that match.
func (q *Query) count(s *Slice, one *Stream, client *Client) {
	q.Count++
	q.Lags.Add(one.Lag)
	switch q.By {
	case "":
	case ByWatch:
		for _, f := range s.Follows(one) {
			q.Groups.Of(f.Watch).Add(one)
		}
	default:
		q.Groups.Of(q.By.of(one, client)).Add(one)
	}
}

// add keeps a stream if it may be listed.
func (q *Query) add(c Candidate) {
	if q.After != (Place{}) && q.After.before().compare(c) >= 0 {
		return
	}
	if q.Limit == 0 || q.full && c.compare(q.last) > 0 {
		q.more = true
		return
	}
	q.Best = append(q.Best, c)
}

// Next returns the place after which the list continues; the zero value: nothing follows.
func (q *Query) Next() Place {
	if !q.more || q.Limit == 0 {
		return Place{}
	}
	return Place{cmp.Or(q.Order, ByLag), q.last.rank, q.last.Stamp}
}

// cut drops the streams that are not listed.
func (q *Query) cut() {
	slices.SortFunc(q.Best, Candidate.compare)
	if len(q.Best) < q.Limit || q.Limit == 0 {
		return
	}
	q.more = q.more || len(q.Best) > q.Limit
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
		found[i].OfClient(all.clientOf(c.progress))
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
