package views

import (
	"container/heap"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/internal/decimal"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// tally has the groups of a count.
//
// Owned by one goroutine.
type tally struct {
	// Static after construction.
	of   *view.Grouping
	most int // groups

	counter  *view.Counter
	groups   map[string]*group
	touched  []*group // since the last commit
	live     int      // groups with a resource
	distinct int      // different numbers, of all groups together
	texts    int64    // bytes of the keys and the parts of all groups
}

// group is one group.
type group struct {
	key   string
	parts []string // the values of its fields
	bytes int64    // of all of these

	count   int
	numbers numbers

	touched bool
}

func newTally(of *view.Grouping, most int) *tally {
	return &tally{of: of, most: most, counter: of.Counter(), groups: map[string]*group{}}
}

// add adds n resources, 1 or -1, like r.
func (t *tally) add(r stream.Resource, n int) {
	t.counter.Read(r)
	g := t.group()
	before := g.count
	g.count += n
	t.live += min(g.count, 1) - min(before, 1)
	if number, ok := t.counter.Number(); ok {
		was := len(g.numbers.all)
		g.numbers.add(number, n)
		t.distinct += len(g.numbers.all) - was
	}
	if !g.touched {
		g.touched = true
		t.touched = append(t.touched, g)
	}
}

// group returns the group of the resource that was read.
func (t *tally) group() *group {
	key := t.counter.Key()
	if g := t.groups[string(key)]; g != nil {
		return g
	}
	g := &group{key: string(key), bytes: int64(len(key))}
	for i := range t.of.By() {
		part := t.counter.Part(i)
		g.parts = append(g.parts, part)
		g.bytes += int64(len(part))
	}
	t.groups[g.key] = g
	t.texts += g.bytes
	return g
}

// overflows returns why there are too many groups; nil: there are not.
func (t *tally) overflows() *TooManyGroups {
	if t.live <= t.most {
		return nil
	}
	why := &TooManyGroups{Limit: t.most}
	for i, field := range t.of.By() {
		values := map[string]struct{}{}
		for _, g := range t.groups {
			values[g.parts[i]] = struct{}{}
		}
		if len(values) > why.Values {
			why.Field, why.Values = field, len(values)
		}
	}
	return why
}

// bursts reports whether so many groups come and go in one transaction that it is given up.
func (t *tally) bursts() bool { return len(t.groups) > 2*t.most }

// bytes is about how much memory the tally takes.
func (t *tally) bytes() int64 {
	return int64(len(t.groups))*groupBytes + t.texts + int64(t.distinct)*numberBytes
}

const (
	groupBytes  = 1 << 10 // besides its texts
	numberBytes = 256
)

// changes returns the groups that were touched since the last call, by their keys, and forgets
// those that are empty.
func (t *tally) changes() []*group {
	touched := t.touched
	t.touched = nil
	slices.SortFunc(touched, func(a, b *group) int { return strings.Compare(a.key, b.key) })
	for _, g := range touched {
		g.touched = false
		if g.count == 0 {
			delete(t.groups, g.key)
			t.texts -= g.bytes
		}
	}
	return touched
}

// gone makes changes of the groups that were shown and are no more.
func (t *tally) gone(shown map[string]string) {
	for key := range shown {
		if t.groups[key] == nil {
			g := &group{key: key, touched: true}
			t.groups[key] = g
			t.touched = append(t.touched, g)
		}
	}
}

// value returns the value of a group as JSON.
func (t *tally) value(g *group) string {
	out := append(make([]byte, 0, 64), `{"count":`...)
	out = strconv.AppendInt(out, int64(g.count), 10)
	if n := &g.numbers; len(n.all) > 0 {
		out = decimal.Append(append(out, `,"sum":`...), &n.sum)
		out = append(append(out, `,"min":`...), n.least.top().text...)
		out = append(append(out, `,"max":`...), n.greatest.top().text...)
	}
	return string(append(out, '}'))
}

// numbers are the numbers of a group: how often each occurs. The least and the greatest are at the
// top of a heap each. A number that does not occur any more stays in the heaps until it gets to
// the top, or until there are more of these than others.
//
// So a change takes O(log n) for n different numbers, on average.
type numbers struct {
	sum             big.Int
	all             map[string]*number
	least, greatest numberHeap
}

// number is one number that occurs, or that has occurred.
type number struct {
	text  string
	units *big.Int
	count int
}

// add adds n occurrences of a number, if it can be added.
func (s *numbers) add(d decimal.Number, n int) {
	units, fits := d.Units()
	if !fits {
		return
	}
	if s.all == nil {
		s.all = map[string]*number{}
		s.greatest.descends = true
	}
	if n > 0 {
		s.sum.Add(&s.sum, units)
	} else {
		s.sum.Sub(&s.sum, units)
	}
	text := d.String()
	x := s.all[text]
	if x == nil {
		x = &number{text: text, units: units}
		s.all[text] = x
		heap.Push(&s.least, x)
		heap.Push(&s.greatest, x)
	}
	if x.count += n; x.count == 0 {
		delete(s.all, text)
		s.least.clean(s.all)
		s.greatest.clean(s.all)
	}
}

// numberHeap has the least number at the top, or the greatest.
type numberHeap struct {
	descends bool
	of       []*number
}

// top returns the number at the top, which occurs.
func (h *numberHeap) top() *number { return h.of[0] }

// clean removes numbers that do not occur any more: from the top, or all of them if there are
// more than others.
func (h *numberHeap) clean(all map[string]*number) {
	if len(h.of) > 2*len(all)+16 {
		h.of = h.of[:0:0]
		for _, x := range all {
			h.of = append(h.of, x)
		}
		heap.Init(h)
	}
	for len(h.of) > 0 && h.of[0].count == 0 {
		heap.Pop(h)
	}
}

// Len implements heap.Interface.
func (h *numberHeap) Len() int { return len(h.of) }

// Less implements heap.Interface.
func (h *numberHeap) Less(i, j int) bool {
	order := h.of[i].units.Cmp(h.of[j].units)
	if h.descends {
		return order > 0
	}
	return order < 0
}

// Swap implements heap.Interface.
func (h *numberHeap) Swap(i, j int) { h.of[i], h.of[j] = h.of[j], h.of[i] }

// Push implements heap.Interface.
func (h *numberHeap) Push(x any) { h.of = append(h.of, x.(*number)) }

// Pop implements heap.Interface.
func (h *numberHeap) Pop() any {
	n := len(h.of) - 1
	x := h.of[n]
	h.of[n] = nil
	h.of = h.of[:n]
	return x
}
